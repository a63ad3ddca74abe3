"""Laws of control on plain numbers beside the results that are recorded: several samples of each, with its memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import linkwise as lw
from linkwise import control
from linkwise.control.bounds import commanded
from linkwise.control.controller import Reference
from recorded import Scenarios, everything, packed, told
from recorded_robots import ROBOTS, chain, coupled, limited, states, swimmer, with_laws

scenarios = Scenarios("control")
PERIOD = 0.007


@cache
def six() -> lw.Robot:
    """As many joints as a task has rows, with limits."""
    return limited(lw.random_robot(53, 6, joints="R", friction=True))


def floats(x: Any) -> list[Any]:
    return [float(each) for each in np.ravel(np.asarray(x, dtype=object))]


def samples(law: Any, count: int = 3, **given: Any) -> dict[str, np.ndarray]:
    """Commanded torques and memories of a few samples along a motion, on plain numbers."""
    robot: lw.Robot = law.robot
    here, there = states(robot, count, 2), states(robot, count, 3)
    memory: list[Any] = [0.0] * law.memory_size
    gains = law.shaped({name: floats(v) for name, v in law.settings().items()} | given)
    torques, memories = [], []
    for k in range(count):
        reference = Reference(*(floats(there[name][k]) for name in ("q", "qd", "qdd")))
        state = floats(here["q"][k]), floats(here["qd"][k])
        found = law.commanded(law.links(), gains, *state, reference, memory, PERIOD)
        memory = found.memory
        torques.append([*floats(found.tau), float(found.fault)])
        memories.append(floats(memory))
    return {"tau": np.array(torques), "memory": np.array(memories)}


def result(law: Any, **given: Any) -> dict[str, Any]:
    settings = {name: np.asarray(values, float) for name, values in law.settings().items()}
    return {"run": packed(samples(law, **given)), "settings": packed(settings), "options": repr(law.feedback)}


@scenarios
def laws_by_name():
    found = {}
    for make in (chain, with_laws, six, coupled, swimmer):
        for name, law in control.CONTROLLERS.items():
            if name == "whole_body_tracking":
                continue
            options = {"frequency": 7.0, "damping": 0.8} if law.feedback else {}
            try:
                made = control.named(name, make(), torque_limits=23.0, **options)
                found[f"{make.__name__} {name}"] = result(made)
            except (lw.LinkwiseError, ValueError) as error:
                found[f"{make.__name__} {name}"] = f"{type(error).__name__}: {error}"
    return found


@scenarios(tolerance=1e-6)
def tracking_by_whole_bodies():
    """Iterated, from random robots whose last bits are those of BLAS."""
    robots = (chain(), six(), coupled())
    return {each.name: result(control.named("whole_body_tracking", each, frequency=7.0)) for each in robots}


@scenarios
def laws_of_joints_with_options():
    robot, n = with_laws(), 3
    gains = control.Gains(np.array([90.0, 70.0, 110.0]), np.array([13.0, 17.0, 11.0]), 31.0)
    found = {
        "integral": result(control.IntegralTracking(robot, gains, torque_limits=False)),
        "online": result(control.FeedForward(robot, gravity="online", torque_limits=[3.0, 5.0, 70.0])),
        "constant": result(control.ConstantTorque(robot, [3.0, -2.0, 40.0])),
        "gains": [float(x) for x in control.GravityPD.gains_for(robot, 7.0, 0.8).kp],
        "elsewhere": control.GravityPD.gains_for(robot, 7.0, q=np.array([0.3, -0.4, 0.9])).kd,
        "integral gains": everything(control.IntegralTracking.gains_for(robot, 7.0, 0.8)),
        "stable": [control.Gains(3.0, 2.0, ki).stable() for ki in (1.0, 5.9, 6.1)],
        "vectors": control.Gains(3.0, np.array([1.0, 2.0, 3.0])).vectors(n),
        "other gains": control.Tracking(robot, gains).with_gains(kp=[1.0, 2.0, 3.0]).gains,
        "passive": result(control.Passive(limited(robot))),
        "key": control.Tracking(robot, gains).key()
        != control.Tracking(robot, gains, torque_limits=3.0).key(),
    }
    wrong = [1.0, np.nan, 3.0]
    for name, tau in (("finite", [1.0, 2.0, 3.0]), ("nan", wrong)):
        for valid in ((), (True, False)):
            given = commanded(tau, [0.5, 2.0, 3.0], [7.0, 8.0], [5.0, 6.0], valid)
            found[f"commanded {name} {valid}"] = [floats(given.tau), floats(given.memory), float(given.fault)]
    return found


TARGET = lw.Transform.from_rpy((0.2, -0.3, 0.4), (0.5, 0.6, -0.7)).matrix
WALLS = [(0.3, 0.1, 1.0, -0.2), (1.0, 0.0, 0.2, 0.1)]


def _task_laws(robot: lw.Robot) -> dict[str, Any]:
    gains = control.Gains(
        np.array([130.0, 90.0, 70.0, 23.0, 11.0, 17.0]), np.array([9.0, 8.0, 7.0, 2.0, 3.0, 4.0])
    )
    frame = robot.moving_joints[-1].child
    return {
        "impedance": lambda: control.CartesianImpedance(robot, frame, gains.kp, damping_ratio=0.7),
        "impedance base": lambda: control.CartesianImpedance(robot, frame, gains.kp, gains.kd, axes="base"),
        "impedance target": lambda: control.CartesianImpedance(
            robot,
            frame,
            target=TARGET,
            posture=3.0,
            posture_damping=1.7,
            posture_energy=0.4,
            singularities=2.0,
        ),
        "operational": lambda: control.OperationalSpace(robot, frame, gains, posture=0.0),
        "operational target": lambda: control.OperationalSpace(
            robot, frame, gains, target=TARGET, singularities=3.0, friction=False, heaviest=2.0
        ),
        "admittance": lambda: control.CartesianAdmittance(
            robot, frame, gains.kp, gains.kd, observer_gain=30.0
        ),
        "admittance delay": lambda: control.CartesianAdmittance(robot, frame, inertia=3.0, delay=1),
        "hybrid": lambda: control.HybridForceMotion(
            robot, frame, [0.0, 0.0, 1.0, 0.0, 0.3, 0.0], [0, 0, -9.0, 0, 0, 0], gains=gains, force_gain=0.3
        ),
        "hybrid axes": lambda: control.HybridForceMotion(
            robot,
            frame,
            1.0,
            2.0,
            task_axes=lw.Transform.from_rpy((0, 0, 0), (0.3, 0.2, 0.1)).rotation,
            run_time_selection=True,
            delay=2,
        ),
        "guiding": lambda: control.HandGuiding(robot, frame, friction_energy=0.3, guiding_energy=0.2),
        "guiding walls": lambda: control.HandGuiding(
            robot, frame, walls=WALLS, wall_stiffness=700.0, wall_damping=30.0, margin=0.6, damping=2.3
        ),
    }


@scenarios
def laws_of_the_tool():
    found: dict[str, Any] = {}
    for make in (six, chain):
        for name, law in _task_laws(make()).items():
            try:
                found[f"{make.__name__} {name}"] = result(law())
            except (lw.LinkwiseError, ValueError) as error:
                found[f"{make.__name__} {name}"] = f"{type(error).__name__}: {error}"
    found["inertia"] = [control.usual_inertia(six(), None, axes) for axes in ("tool", "base")]
    return found


@scenarios
def laws_around_laws():
    robot = six()
    tracking = control.Tracking(robot, control.Gains.from_frequency(6.0, 0.7))
    impedance = control.CartesianImpedance(robot)
    observer = control.MomentumObserver(robot, 20.0, threshold=0.5, confirm=0.01)
    float_law = control.Guarded(tracking, observer, reaction="float", damping=3.0, delay=1)
    switched = control.Switched({"joints": tracking, "tool": impedance}, duration=0.03, jump=0.01)
    return {
        "stop": result(control.Guarded(tracking, observer)),
        "float": result(float_law),
        "reflex": result(control.Guarded(impedance, observer, reaction="reflex", reflex_gain=1.7)),
        "none": result(control.Guarded(tracking, observer, reaction="none")),
        "switched": result(switched),
        "switched to": result(switched.selecting("tool")),
        "not finite": result(switched, selected=[0.5]),
        "avoiding": result(control.Avoiding(tracking, margin=0.7, frequency=9.0)),
        "avoiding singular": result(control.Avoiding(impedance, margin=0.4, singularities=2.0)),
        "meaning": [switched.meaning(name) for name in switched.settings()],
        "impedance meaning": [impedance.meaning(name) for name in impedance.settings()],
    }


@cache
def recording(name: str, count: int = 12) -> tuple[np.ndarray, ...]:
    """(q, qd, qdd, tau) of a smooth motion; torques with an error."""
    robot = ROBOTS[name]()
    t = PERIOD * np.arange(count)[:, None]
    phase = np.arange(robot.dof) + 0.3
    q, qd = 0.4 * np.sin(7.0 * t + phase), 2.8 * np.cos(7.0 * t + phase)
    qdd = -49.0 * q
    tau = robot.inverse_dynamics(q, qd, qdd) + 0.4 * np.sin(31.0 * t + 2.0 * phase)
    return q, qd, qdd, tau


@scenarios
def observers():
    found = {}
    for name in ("chain", "with_laws", "tree"):
        robot, (q, qd, _, tau) = ROBOTS[name](), recording(name)
        observer = control.MomentumObserver(robot, 30.0, threshold=0.6, confirm=0.015, cutoff=12.0)
        found[name] = {
            "observed": packed(everything(observer.over(q, qd, tau, PERIOD))),
            "numbers": observer.numbers(),
        }
    robot, (q, qd, _, tau) = chain(), recording("chain")
    observer = control.MomentumObserver(
        robot, [10.0, 300.0, 40.0], rest_speed=0.5, frame="link3", damping=0.03
    )
    found["frame"] = packed(everything(observer.over(q, qd, tau, PERIOD)))
    found["calibrated"] = observer.calibrated(q, qd, tau, PERIOD, margin=1.3).numbers()
    force = control.MomentumObserver(robot, 30.0, frame="link2", force_only=True)
    found["force"] = packed(everything(force.over(q, qd, tau, PERIOD)))
    return found


@scenarios
def filters_and_estimators():
    robot, (q, qd, qdd, tau) = chain(), recording("chain")
    names = ("joint1.viscous_friction", "link2.m", "link3.hx")
    kalman = control.ExtendedKalmanFilter(
        robot,
        PERIOD,
        names,
        position_noise=1e-3,
        torque_noise=0.4,
        drift=0.05,
        parameter_deviation=[0.3, 0.5, 0.1],
    )
    speeds = control.ExtendedKalmanFilter(
        robot, PERIOD, position_noise=2e-3, velocity_noise=0.1, deviation=(0.2, 0.7), friction_speed=0.3
    )
    squares = control.RecursiveLeastSquares(robot, noise=[0.3, 0.2, 0.5], forgetting=0.9, deviation=3.0)
    chosen = control.RecursiveLeastSquares(robot, names, start=[0.3, 2.0, 0.1], bound=20.0, forgetting=0.8)
    load = control.RecursiveLeastSquares(robot, "payload", frame="link3", deviation=0.7)
    filtered = kalman.over(q, tau)
    found = {
        "kalman": packed(everything(filtered)),
        "covariance": kalman.covariance(filtered.memory),
        "labels": list(kalman.labels),
        "memory": kalman.memory_of(q[0], qd[0], [0.3, 1.0, 0.2]),
        "speeds": packed(everything(speeds.over(q, tau, qd))),
        "squares": packed(everything(squares.over(q, qd, qdd, tau))),
        "chosen": packed(everything(chosen.over(q, qd, qdd, tau))),
        "load": packed(everything(load.over(q, qd, qdd, tau))),
        "names": [list(each.labels) for each in (squares, chosen, load)],
    }
    kernel = control.StateObserver(with_laws(), 60.0, 0.8).kernel(PERIOD)
    rng = np.random.default_rng(6)
    given = [rng.uniform(-0.4, 0.6, (2, 3)) for _ in kernel.inputs]
    found["observer"] = everything(list(kernel(*given)))
    return found


def legs() -> lw.Robot:
    """A body on two legs whose feet are frames."""
    rng = np.random.default_rng(8)
    links = [lw.Link("body", lw.Inertia.from_com(6.0, (0.01, 0.02, 0.03), (0.1, 0.15, 0.2)))]
    bones, frames = [], []
    for leg in range(2):
        parent, at = "body", (0.25 * np.cos(2.1 * leg), 0.25 * np.sin(2.1 * leg), -0.05)
        for k in range(3):
            name, axis = f"leg{leg}_{k}", rng.normal(size=3)
            inertia = lw.Inertia.from_com(0.6 + 0.1 * k, (0.0, 0.02, -0.1), (3e-3, 4e-3, 1e-3))
            links.append(lw.Link(name, inertia))
            place, limits = (
                lw.Transform.from_rpy(at),
                lw.Limits(-2.0, 1.7, velocity=8.0, effort=25.0 + 5.0 * k),
            )
            axis = tuple(axis / np.linalg.norm(axis))
            bones.append(lw.Joint(name, "revolute", parent, name, place, axis, limits=limits))
            parent, at = name, (0.02, 0.01, -0.2)
        frames.append(lw.Frame(f"foot{leg}", parent, lw.Transform.from_rpy((0.0, 0.03, -0.2))))
    return lw.Robot("legs", links, bones, frames=frames).with_base("floating")


CORNERS = ((0.1, 0.05, 0.0), (0.1, -0.05, 0.0), (-0.08, -0.05, 0.0), (-0.08, 0.04, 0.0))
BONE = ((0.0, 0.0, 0.0), (0.0, 0.0, -0.1))
LIMITS = control.MotionLimits(velocity=3.0, deceleration=7.0, period=PERIOD)


def bodies() -> dict[str, Any]:
    robot, arm = legs(), six()
    body = [
        control.CenterOfMassTask(frequency=4.0),
        control.PoseTask("body", "turn", weight=0.4, frequency=5.0),
        control.AngularMomentumTask(weight=0.1),
        control.PostureTask(weight=0.05),
        control.ForceTask(weight=1e-3),
    ]
    tool = [
        control.PoseTask("link6", frequency=6.0),
        control.PointTask("link4", weight=0.3),
        control.PostureTask(),
    ]
    points = [control.Support(f"foot{k}", friction=0.6, smallest=1.0, largest=90.0) for k in range(2)]
    soles = [
        control.Support(f"foot{k}", CORNERS, friction=0.5, normal=(0.1, 0.0, 1.0), radius=0.01)
        for k in (0, 1)
    ]
    apart = control.Separation("leg0_1", BONE, "leg1_1", BONE, radius=0.03, margin=0.02)
    strict = [control.PoseTask("link6", "turn", level=1), control.PostureTask(level=2)]
    return {
        "points": lambda: control.WholeBody(robot, body, LIMITS, supports=points),
        "soles": lambda: control.WholeBody(robot, body, LIMITS, supports=soles, iterations=14),
        "apart": lambda: control.WholeBody(robot, body, supports=points, separations=[apart], damping=0.01),
        "interior": lambda: control.WholeBody(robot, body, LIMITS, supports=points, method="interior_point"),
        "arm": lambda: control.WholeBody(arm, tool, LIMITS),
        "free": lambda: control.WholeBody(arm, tool, control.MotionLimits(torque=False, ahead=False)),
        "strict": lambda: control.WholeBody(arm, strict, LIMITS),
    }


@scenarios(tolerance=1e-6)
def whole_bodies():
    found: dict[str, Any] = {}
    for name, made in bodies().items():
        law = made()
        robot = law.robot
        here, there = states(robot, 1, 2), states(robot, 1, 3)
        q, qd = robot.integrate(robot.neutral, 0.3 * here["qd"][0]), 0.4 * here["qd"][0]
        given = {
            "q": q,
            "qd": qd,
            "targets": law.targets(
                robot.integrate(q, 0.05 * there["qd"][0]), 0.3 * qd, 0.5 * there["qdd"][0]
            ),
            "gains": law.default_gains,
            "stance": np.ones(len(law.supports)),
            "start": law.cold_start,
        }
        numbers = {key: np.asarray(given[key], float).astype(object) for key in law.input_shapes()}
        results = {key: np.asarray(v, dtype=float) for key, v in law._run(**numbers).items()}
        report = results.pop("report", np.zeros(0))
        found[name] = {key: packed({"": value}) for key, value in results.items()}
        found[name] |= {
            "tau": results["tau"],
            "report": (np.abs(report) > 1e-5).tolist(),
            "size": len(report),
        }
        found[name] |= {"names": " ".join(law.limit_names), "rows": law.rows.count}
        found[name] |= {
            "shapes": f"{law.input_shapes()} {law.output_shapes()}",
            "tasks": " ".join(law.task_names),
        }
    return found


@scenarios
def supports():
    found = {}
    for name, made in {
        "point": control.Support("a", friction=0.6, smallest=1.0, largest=90.0, facets=6),
        "sole": control.Support("a", CORNERS, normal=(0.1, 0.2, 1.0), friction=0.4),
        "outside": control.Support("a", CORNERS, facets=5, inside=False, largest=70.0),
        "ball": control.Support("a", radius=0.1, normal=(0.0, 1.0, 0.2)),
    }.items():
        found[name] = {
            "edges": packed({"": made.pyramid_edges()}),
            "pyramid": packed(dict(enumerate(made.pyramid()))),
            "axes": made.axes(),
            "limited": packed(
                {f"{k} {j}": x for k, pair in enumerate(made.limited()) for j, x in enumerate(pair)}
            ),
            "rows": [made.rows, made.label],
        }
    return found


@scenarios
def policies():
    found = {}
    rng = np.random.default_rng(4)
    observation = rng.normal(size=5)
    for activation in ("elu", "relu", "tanh"):
        policy = control.Policy.random((5, 7, 2), 3, activation=activation, squash="tanh")
        found[activation] = floats(policy.action(floats(observation), floats(policy.weights)))
    layers = [(rng.normal(size=(4, 3)), rng.normal(size=4)), (rng.normal(size=(2, 4)), rng.normal(size=2))]
    made = control.Policy.of_layers(
        layers, mean=[0.1, 0.2, 0.3], deviation=[2.0, 1.0, 3.0], log_std=[-0.5, -0.3]
    )
    return found | {"made": made.weights, "count": made.weight_count, "key": made.key}


@scenarios
def refusals():
    robot, gains = six(), control.Gains(1.0, 2.0)
    law = control.Tracking(robot, gains)
    observer = control.MomentumObserver(robot)
    return {
        "name": told(control.named, "trackin", robot),
        "both": told(control.named, "tracking", robot, gains, frequency=3.0),
        "no gains": told(control.named, "passive", robot, gains),
        "negative": told(control.Gains, -1.0, 2.0),
        "unstable": told(lambda: control.IntegralTracking(robot, control.Gains(1.0, 1.0, 2.0))),
        "limits": told(control.Tracking, robot, gains, torque_limits=[1.0, 2.0]),
        "limit": told(control.Tracking, robot, gains, torque_limits=-1.0),
        "gain": told(law.with_gains, kq=1.0),
        "shape": told(law.with_gains, kp=[1.0, 2.0]),
        "finite": told(law.with_gains, kp=np.nan),
        "axes": told(control.CartesianImpedance, robot, axes="world"),
        "stiffness": told(control.CartesianImpedance, robot, stiffness=[1.0, 2.0]),
        "target": told(control.CartesianImpedance, robot, target=np.ones((4, 4))),
        "frame": told(control.OperationalSpace, robot, "tip"),
        "selection": told(control.HybridForceMotion, robot, None, 1.5),
        "rotation": told(control.HybridForceMotion, robot, task_axes=np.ones((3, 3))),
        "share": told(control.HandGuiding, robot, friction_share=1.2),
        "reaction": told(control.Guarded, law, observer, reaction="halt"),
        "models": told(control.Guarded, law, control.MomentumObserver(chain())),
        "none": told(control.Switched, {}),
        "others": told(control.Switched, {"a": law, "b": control.Tracking(chain(), gains)}),
        "law": told(control.Switched({"a": law}).selecting, "b"),
        "margin": told(control.Avoiding, law, margin=-1.0),
        "gravity": told(control.FeedForward, robot, gravity="none"),
        "threshold": told(control.MomentumObserver, robot, threshold=-1.0),
        "confirm": told(control.MomentumObserver, robot, confirm=-1.0),
        "observer": told(control.MomentumObserver, robot, 0.0),
        "period": told(control.ExtendedKalmanFilter, robot, 0.0),
        "label": told(control.ExtendedKalmanFilter, robot, 0.01, ["link1.mass"]),
        "noise": told(control.ExtendedKalmanFilter, robot, 0.01, position_noise=0.0),
        "forgetting": told(control.RecursiveLeastSquares, robot, forgetting=1.1),
        "parameters": told(control.RecursiveLeastSquares, robot, "every"),
        "sizes": told(control.Policy, (3,), np.zeros(3)),
        "weights": told(control.Policy, (3, 2), np.zeros(3)),
        "activation": told(control.Policy, (3, 2), np.zeros(3), "selu"),
    }


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
