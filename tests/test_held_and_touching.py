"""Robots with constraints, and robots that touch things: every public name that takes a robot knows of them, or refuses
them by name. What does neither moves joints that are held, or lets robots pass through the ground, in silence."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, identify, motion, optimal, realtime, systems, tour
from linkwise.errors import LinkwiseError
from linkwise.identify.estimation.friction import check_springs
from linkwise.simulate import simulate_adaptive

PARTS = ("control", "motion", "optimal", "simulate", "identify", "embedded", "realtime", "systems")
TAKES = {"robot", "model", "problem", "plant"}
RESULTS = {
    "MotionPlan", "Solution", "Result", "Calibration", "Elasticity", "Excited", "Identification", "Observer",
    "StandingMotion", "WalkingIdentification", "Report", "TwoRatePrograms", "validate", "resonances", "iteration",
    "split_torques", "usual_inertia", "base_by_rank", "prior_bodies", "coverage", "locked_joint", "read_poses",
}  # fmt: skip
"""What other names of this list return, or parts of them."""
KEEPS = {
    "simulate": "tests/simulate/test_constrained_motion.py, test_scenes.py",
    "source": "C of simulate",
    "Plant": "of simulate",
    "SimulatedPlant": "tests/simulate/test_one_step.py",
    "Package": "tests/embedded/test_package_functions.py: rollouts",
    "entries": "functions of packages",
    "Walking": "contacts are its feet",
    "solve": "of a Problem",
    "solve_many": "of a Problem",
}
"""Constraints and contacts act in the result; where that is tested."""
CONSTRAINED_LAWS = {
    "CartesianImpedance", "ComputedTorque", "ConstantTorque", "Controller", "FeedForward", "GravityPD", "HandGuiding",
    "IntegralTracking", "OperationalSpace", "Passive", "PointToPoint", "Tracking", "named", "StateObserver",
    "Ros2Controller", "TwoRateController", "split_error", "Problem", "Mppi", "Predictive", "reaching",
    "PredictiveController", "simulated_log", "simulate_adaptive", "ElasticMotion", "time_optimal", "check", "require",
    "fastest",
}  # fmt: skip
"""Constraints act: torques of laws are those of held robots, paths keep constraints or are refused."""
NO_DYNAMICS = {
    "calibrate": "poses alone",
    "read_log": "reads",
    "elastic_joints": "torques and deflections that were measured",
    "excite_standing": "feet hold",
    "drive_gains": "known loads",
}
POSE, Q = np.eye(4), np.array([0.3, 0.7, -0.5])
LOG = identify.Log(np.arange(0.0, 1.0, 0.01), np.zeros((100, 3)), tau=np.zeros((100, 3)))
REFUSE_CONSTRAINTS = {
    "inverse_kinematics": lambda r: motion.inverse_kinematics(r, POSE),
    "reach_frames": lambda r: motion.reach_frames(r, {"tip": POSE}),
    "closed_form_inverse_kinematics": lambda r: motion.closed_form_inverse_kinematics(r, POSE),
    "plan": lambda r: motion.plan(r, Q, Q),
    "line": lambda r: motion.line(r, POSE, POSE, duration=1.0).at(0.5),
    "arc": lambda r: motion.arc(r, POSE, centre=(1, 0, 0), axis=(0, 1, 0), angle=1.0, duration=1.0).at(0.5),
    "CartesianMove": lambda r: motion.line(r, POSE, POSE, duration=1.0).at(0.5),
    "MomentumObserver": lambda r: control.MomentumObserver(r),
    "CartesianAdmittance": lambda r: control.CartesianAdmittance(r),
    "HybridForceMotion": lambda r: control.HybridForceMotion(r),
    "ExtendedKalmanFilter": lambda r: control.ExtendedKalmanFilter(r, 0.001),
    "RecursiveLeastSquares": lambda r: control.RecursiveLeastSquares(r),
    "WholeBody": lambda r: control.WholeBody(r, [control.PostureTask()]),
    "WholeBodyTracking": lambda r: control.WholeBodyTracking(r),
    "identify": lambda r: identify.identify(r, LOG),
    "identify_payload": lambda r: identify.identify_payload(r, LOG, LOG),
    "didim": lambda r: identify.didim(r, LOG),
    "cloe": lambda r: identify.cloe(r, LOG),
    "excite": lambda r: identify.excite(r, duration=2.0),
    "Fmu": lambda r: systems.Fmu(r, "forward_dynamics"),
}
REFUSE_CONTACTS = {
    "Problem": lambda r: optimal.Problem(r, costs=[optimal.Effort()]),
    "Mppi": lambda r: optimal.Mppi(r, costs=[optimal.Effort()], samples=64),
    "reaching": lambda r: optimal.reaching(r),
    "Predictive": lambda r: optimal.Predictive(r),
    "PredictiveController": lambda r: realtime.PredictiveController(r),
    "simulate_adaptive": lambda r: simulate_adaptive(r, control.Passive(r), np.zeros(3), duration=0.1),
    "Fmu": lambda r: systems.Fmu(r, "forward_dynamics"),
    "ExtendedKalmanFilter": lambda r: control.ExtendedKalmanFilter(r, 0.001),
    "StateObserver": lambda r: control.StateObserver(r),
    "as_ode": lambda r: r.as_ode(),
}
MOVE = motion.quintic(Q, Q + 0.5, 1.0)
REFUSE_TENDONS = {
    "inverse_kinematics": REFUSE_CONSTRAINTS["inverse_kinematics"],
    "reach_frames": REFUSE_CONSTRAINTS["reach_frames"],
    "closed_form_inverse_kinematics": REFUSE_CONSTRAINTS["closed_form_inverse_kinematics"],
    "plan": REFUSE_CONSTRAINTS["plan"],
    "line": REFUSE_CONSTRAINTS["line"],
    "WholeBody": REFUSE_CONSTRAINTS["WholeBody"],
    "WholeBodyTracking": REFUSE_CONSTRAINTS["WholeBodyTracking"],
    "excite": REFUSE_CONSTRAINTS["excite"],
    "Problem": REFUSE_CONTACTS["Problem"],
    "Mppi": REFUSE_CONTACTS["Mppi"],
    "reaching": REFUSE_CONTACTS["reaching"],
    "Predictive": REFUSE_CONTACTS["Predictive"],
    "check": lambda r: motion.check(MOVE, r),
    "fastest": lambda r: motion.fastest(MOVE, r, torque=100.0),
    "time_optimal": lambda r: motion.time_optimal(r, [Q, Q + 0.5], torque=100.0),
}
"""What moves joints one by one does not know that a tendon bounds a sum of them."""
REFUSE_JOINTS_WITHOUT_A_MOTOR = {
    "fastest": REFUSE_TENDONS["fastest"],
    "time_optimal": REFUSE_TENDONS["time_optimal"],
    "plan": lambda r: motion.plan(r, Q, Q + 0.1, torque=100.0),
    "excite": REFUSE_CONSTRAINTS["excite"],
    "payload_capability": tour.payload_capability,
    "TwoRateController": lambda r: realtime.TwoRateController(r, control.Gains.from_frequency(10.0)),
}
REFUSE_SPRINGS = {
    name: REFUSE_CONSTRAINTS[name] for name in ("identify", "identify_payload", "didim", "cloe")
}


def public_names() -> set[str]:
    found = set()
    for part in PARTS:
        module = importlib.import_module(f"linkwise.{part}")
        for name in getattr(module, "__all__", dir(module)):
            thing = getattr(module, name)
            if callable(thing) and not name.startswith("_"):
                try:
                    given = set(inspect.signature(thing).parameters)
                except (TypeError, ValueError):
                    continue
                if given & TAKES:
                    found.add(name)
    return found - RESULTS


def test_every_public_name_that_takes_a_robot_is_in_a_table():
    known = KEEPS.keys() | CONSTRAINED_LAWS | NO_DYNAMICS.keys() | REFUSE_CONSTRAINTS.keys()
    assert sorted(public_names() - known) == [], "say what it does with constraints and contacts"
    assert sorted(known - public_names()) == []


@pytest.fixture(scope="module")
def chain() -> lw.Robot:
    return lw.planar_chain(3)


def taken(calls, robot: lw.Robot, word: str) -> list[str]:
    """What takes the robot, or refuses it by another name."""
    found = []
    for name, call in calls.items():
        try:
            call(robot)
        except LinkwiseError as error:
            if word in str(error):
                continue
        found.append(name)
    return found


def test_constraints_are_refused_by_name(chain):
    held = chain.with_constraints([lw.Point("tip", chain.pose(Q)[:3, 3], name="ring")])
    assert taken(REFUSE_CONSTRAINTS, held, "constraint") == []


def test_contacts_are_refused_by_name(chain):
    touching = chain.with_contacts([lw.Contact("tip", radius=0.02, friction=0.5)])
    assert taken(REFUSE_CONTACTS, touching, "contacts") == []


def test_tendons_are_kept_or_refused_by_name(chain):
    tied = chain.with_contacts([lw.Tendon({"joint1": 1.0, "joint3": 1.0}, upper=0.0, name="cable")])
    assert taken(REFUSE_TENDONS, tied, "cable") == []
    within = chain.with_contacts([lw.Tendon({"joint1": 1.0, "joint3": 1.0}, upper=0.81, name="cable")])
    assert motion.check(MOVE, within, torque=False) == []
    crossing = chain.with_contacts([lw.Tendon(through=("link1", "tip"), upper=0.5, name="rope")])
    with pytest.raises(lw.ConstraintError, match="rope"):
        motion.check(MOVE, crossing)


def test_joints_without_a_motor_are_not_driven(chain):
    loose = lw.Robot("loose", chain.links, chain.joints, frames=chain.frames, passive=["joint2"])
    assert taken(REFUSE_JOINTS_WITHOUT_A_MOTOR, loose, "'joint2' of loose has no motor") == []
    quadruped = lw.quadruped()
    limp = quadruped._with(passive=quadruped.joint_names[1:2])
    with pytest.raises(lw.ModelError, match="has no motor"):
        identify.excite_standing(limp)
    found = motion.check(MOVE, loose)
    assert {(each.joint, each.quantity, each.limit) for each in found} == {("joint2", "torque", 0.0)}
    still = lw.Robot(
        "still", chain.links, chain.joints, frames=chain.frames, passive=["joint2"], gravity=(0, 0, 0)
    )
    assert motion.check(motion.hold(Q, 1.0), still) == []


def test_identification_does_not_take_springs_for_friction(chain):
    """A spring of 30 N·m/rad left 38 % of a joint's torque unexplained, and a load of 2 kg was 1.84 kg."""
    sprung = chain.with_parameters({"joint2.stiffness": 30.0})
    calls = REFUSE_SPRINGS | {"drive_gains": lambda r: identify.drive_gains(r, LOG, LOG, 1.0)}
    assert taken(calls, sprung, "spring of 'joint2'") == []
    plain = (identify.Term("viscous"),)
    check_springs(sprung, (plain, (*plain, identify.Term("stiffness")), plain))
    with pytest.raises(LinkwiseError, match="joint2"):
        check_springs(sprung, (plain,) * 3)
