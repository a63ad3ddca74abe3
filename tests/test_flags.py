"""Options that are flags take True and False only: ``friction="no"`` would otherwise count as true."""

import inspect
import os
import re
from functools import lru_cache, partial
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise import collision, control, gpu, identify, motion, optimal, realtime, report, simulate, view
from linkwise.arguments.flags import flag, flag_or_none
from linkwise.model import Model
from linkwise.model.generators import random_model
from public_functions import public_functions

NOT_OPTIONS = {
    "realtime.Report": {"braked"},  # a result
    "optimal.Solution": {"converged"},
    "optimal.Problem": {"torque_limits"},  # True, or numbers
    "optimal.Predictive": {"position_limits", "velocity_limits"},  # True, or numbers
    "optimal.StateLimits": {"position", "velocity"},
    "optimal.reaching": {"torque_limits"},
}


@lru_cache
def _four_legs():
    """A body on four legs of one joint each."""
    links, joints, feet = [lw.Link("body", lw.Inertia.from_com(1.0, (0, 0, 0), (0.01, 0.01, 0.01)))], [], []
    for leg, (x, y) in enumerate(((0.1, 0.1), (0.1, -0.1), (-0.1, 0.1), (-0.1, -0.1))):
        links.append(lw.Link(f"leg{leg}", lw.Inertia.from_com(0.1, (0, 0, -0.1), (1e-3, 1e-3, 1e-3))))
        place = lw.Transform.from_rpy((x, y, 0.0))
        joints.append(lw.Joint(f"hip{leg}", "revolute", "body", f"leg{leg}", place, (0, 1, 0)))
        feet.append(lw.Contact(f"leg{leg}", offset=(0.0, 0.0, -0.2), radius=0.01))
    return lw.Robot("four", links, joints).with_base("floating").with_contacts(feet)


REFUSED = ("no", "False", "", 0, 1, 1.0, [], np.array([True]))


@pytest.fixture(scope="module")
def robot():
    return lw.load("two_link")


def _path(robot):
    return motion.quintic(robot.neutral, robot.neutral + 0.5, 1.0)


def _log(robot):
    t = np.linspace(0, 1, 50)
    q = np.sin(t)[:, None] * np.ones(robot.dof)
    return identify.Log(name="log", t=t, q=q, tau=q)


STATE = ([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])

# (callable, flag) -> a call with the flag
CALLS = {
    ("Robot", "reduced"): lambda r, **f: lw.Robot("r", r.links, r.joints, **f),
    ("Robot.inverse_dynamics", "friction"): lambda r, **f: r.inverse_dynamics(*STATE, **f),
    ("Robot.inverse_dynamics", "nearest"): lambda r, **f: r.inverse_dynamics(*STATE, **f),
    ("Robot.forward_dynamics", "friction"): lambda r, **f: r.forward_dynamics(*STATE, **f),
    ("Robot.inverse_dynamics_derivatives", "friction"): lambda r, **f: r.inverse_dynamics_derivatives(
        *STATE, **f
    ),
    ("Robot.forward_dynamics_derivatives", "friction"): lambda r, **f: r.forward_dynamics_derivatives(
        *STATE, **f
    ),
    ("Robot.constraint_forces", "friction"): lambda r, **f: _held(r).constraint_forces(*STATE, **f),
    **{
        (f"Robot.{name}", "friction"): lambda r, name=name, **f: getattr(_touching(r), name)(*STATE, **f)
        for name in ("contact_step", "contact_forces", "contact_velocities", "contact_residual")
    },
    ("Robot.with_contacts", "stops"): None,  # or names of joints
    ("Robot.filter", "friction"): lambda r, **f: r.filter(*STATE, **f),
    ("Robot.acceleration_parts", "friction"): lambda r, **f: r.acceleration_parts(*STATE, **f),
    ("Robot.conjugate_gradient", "preconditioned"): lambda r, **f: r.conjugate_gradient(*STATE, **f),
    ("Robot.as_ode", "friction"): lambda r, **f: r.as_ode(**f),
    ("Robot.base_parameters", "links_only"): lambda r, **f: r.base_parameters(**f),
    ("Robot.compile", "background"): lambda r, **f: r.compile("mass_matrix", **f),
    ("Robot.compile", "batches"): lambda r, **f: r.compile("mass_matrix", **f),
    ("Robot.kernel", "friction"): lambda r, **f: r.kernel("inverse_dynamics", **f),
    ("Robot.kernel", "wrench"): lambda r, **f: r.kernel("inverse_dynamics", **f),
    ("Robot.kernel", "base_parameters"): lambda r, **f: r.kernel("inverse_dynamics", **f),
    ("Robot.inverse_kinematics", "limits"): lambda r, **f: r.inverse_kinematics(r.pose(STATE[0]), **f),
    ("Robot.inverse_kinematics", "closest"): lambda r, **f: r.inverse_kinematics(r.pose(STATE[0]), **f),
    ("Robot.inverse_kinematics", "strict"): lambda r, **f: r.inverse_kinematics(r.pose(STATE[0]), **f),
    ("Robot.save", "strict"): lambda r, **f: r.save("nowhere/arm.toml", **f),
    ("Robot.show", "dark"): lambda r, **f: r.show(**f),
    ("Robot.show", "live"): lambda r, **f: r.show(**f),
    ("Robot.show", "shadows"): lambda r, **f: r.show(**f),
    ("Robot.show", "wait"): lambda r, **f: r.show(**f),
    ("Robot.with_mimics", "coupled"): lambda r, **f: r.with_mimics(**f),
    ("Robot.with_mimics", "undecided_only"): lambda r, **f: r.with_mimics(True, **f),
    ("model.Model", "reduced"): lambda r, **f: Model("r", r.links, r.joints, **f),
    ("model.Model.with_mimics", "coupled"): lambda r, **f: Model.with_mimics(r, **f),
    ("model.Model.with_mimics", "undecided_only"): lambda r, **f: Model.with_mimics(r, True, **f),
    ("Mimic", "coupled"): lambda r, **f: lw.Mimic("joint", **f),
    ("load", "strict"): lambda r, **f: lw.load("two_link", **f),
    ("load", "contact"): lambda r, **f: lw.load("two_link", **f),
    ("save", "strict"): lambda r, **f: lw.save(r, "nowhere/arm.toml", **f),
    **{
        ("random_robot", option): lambda r, **f: lw.random_robot(0, 3, **f)
        for option in ("tree", "friction", "rotor")
    },
    ("general_chain", "base_offsets"): lambda r, **f: lw.general_chain(2, **f),
    ("control.Gains.from_frequency", "integral"): lambda r, **f: control.Gains.from_frequency(10.0, **f),
    ("control.MomentumObserver", "force_only"): lambda r, **f: control.MomentumObserver(r, **f),
    **{
        (f"control.{name}.kernel", option): lambda r, **f: _law(r).kernel(1e-3, **f)
        for name in (
            *("Controller", "ComputedTorque", "ConstantTorque", "FeedForward", "GravityPD", "Guarded"),
            *("IntegralTracking", "Passive", "PointToPoint", "Switched", "Tracking"),
            *("Avoiding", "CartesianAdmittance", "CartesianImpedance", "HandGuiding", "HybridForceMotion"),
            "OperationalSpace",
            "WholeBodyTracking",
        )
        for option in ("fault", "tunable")
    },
    ("control.WholeBody.kernel", "constant_time"): lambda r, **f: control.WholeBody(
        r, [control.PostureTask()]
    ).kernel(**f),
    ("control.CartesianImpedance", "friction"): lambda r, **f: control.CartesianImpedance(r, **f),
    ("control.OperationalSpace", "friction"): lambda r, **f: control.OperationalSpace(r, **f),
    ("control.HybridForceMotion", "run_time_selection"): lambda r, **f: control.HybridForceMotion(r, **f),
    ("control.MotionLimits", "position"): lambda r, **f: control.MotionLimits(**f),
    ("control.MotionLimits", "ahead"): lambda r, **f: control.MotionLimits(**f),
    ("control.Support", "inside"): lambda r, **f: control.Support("tip", **f),
    ("optimal.ContactSchedule", "surface"): lambda r, **f: optimal.ContactSchedule(["tip"], **f),
    ("gpu.call", "fast"): lambda r, **f: gpu.call(r.kernel("mass_matrix"), [np.zeros(2)], **f),
    ("collision.Room", "links"): lambda r, **f: collision.Room(**f),
    ("identify.condition", "use_velocities"): lambda r, **f: identify.condition(_log(r), **f),
    ("identify.identify", "network"): lambda r, **f: identify.identify(r, _log(r), **f),
    ("identify.ClosedLoopIdentification", "converged"): None,  # a result
    ("identify.Excited", "converged"): None,  # a result
    ("span", "parallel"): lambda r, **f: lw.span(2, **f),
    ("identify.Stages.condition", "use_velocities"): None,  # a function that ``identify`` calls
    ("identify.friction_named", "rotor"): lambda r, **f: identify.friction_named("viscous", 2, **f),
    ("identify.read_log", "drop_bad_rows"): lambda r, **f: identify.read_log("missing.csv", r, **f),
    ("identify.Identification.code", "reduced"): lambda r, **f: identify.Identification.code(None, **f),
    ("identify.Identification.predict", "in_order"): lambda r, **f: identify.Identification.predict(
        None, *STATE, **f
    ),
    ("identify.Identification.predict_range", "in_order"): lambda r, **f: (
        identify.Identification.predict_range(None, *STATE, **f)
    ),
    ("identify.Identification.write_code", "reduced"): lambda r, **f: identify.Identification.write_code(
        SimpleNamespace(code=partial(identify.Identification.code, None)), "code.c", **f
    ),
    ("identify.WalkingIdentification.code", "reduced"): lambda r, **f: identify.Identification.code(
        None, **f
    ),
    ("identify.WalkingIdentification.predict", "in_order"): lambda r, **f: (
        identify.WalkingIdentification.predict(None, *STATE, **f)
    ),
    ("identify.WalkingIdentification.predict_range", "in_order"): lambda r, **f: (
        identify.WalkingIdentification.predict_range(None, *STATE, **f)
    ),
    ("identify.WalkingIdentification.write_code", "reduced"): lambda r, **f: (
        identify.Identification.write_code(
            SimpleNamespace(code=partial(identify.Identification.code, None)), "code.c", **f
        )
    ),
    ("collision.Validity", "divided"): lambda r, **f: collision.Validity(r, **f),
    ("optimal.iteration", "constant_time"): lambda r, **f: optimal.iteration(optimal.reaching(r), **f),
    ("optimal.iteration", "curved"): lambda r, **f: optimal.iteration(optimal.reaching(r), **f),
    ("motion.Online", "together"): lambda r, **f: motion.Online(1.0, 1.0, 1.0, **f),
    ("motion.Online.of", "together"): lambda r, **f: motion.Online.of(lw.load("panda"), 1.0, 1.0, **f),
    ("motion.check", "torque"): lambda r, **f: motion.check(_path(r), r, **f),
    ("motion.fastest", "velocity"): lambda r, **f: motion.fastest(_path(r), r, torque=100.0, **f),
    ("motion.fastest", "speed_up"): lambda r, **f: motion.fastest(_path(r), r, torque=100.0, **f),
    ("motion.plan", "timing"): lambda r, **f: motion.plan(r, np.zeros(r.nq), np.full(r.nq, 0.1), **f),
    ("motion.time_optimal", "friction"): lambda r, **f: motion.time_optimal(r, _path(r), torque=100.0, **f),
    ("motion.reach_frames", "limits"): lambda r, **f: motion.reach_frames(r, {"tip": np.ones(3)}, **f),
    ("motion.reach_frames", "strict"): lambda r, **f: motion.reach_frames(r, {"tip": np.ones(3)}, **f),
    ("motion.inverse_kinematics", "limits"): lambda r, **f: motion.inverse_kinematics(
        r, r.pose(STATE[0]), **f
    ),
    ("motion.inverse_kinematics", "closest"): lambda r, **f: motion.inverse_kinematics(
        r, r.pose(STATE[0]), **f
    ),
    ("motion.inverse_kinematics", "strict"): lambda r, **f: motion.inverse_kinematics(
        r, r.pose(STATE[0]), **f
    ),
    ("optimal.Own", "least_squares"): lambda r, **f: optimal.Own(len, **f),
    ("optimal.Predictive", "follow"): lambda r, **f: optimal.Predictive(optimal.reaching(r), **f),
    ("optimal.Problem", "friction"): lambda r, **f: optimal.Problem(r, costs=[optimal.Effort()], **f),
    ("optimal.Problem", "implicit_damping"): lambda r, **f: optimal.Problem(r, costs=[optimal.Effort()], **f),
    ("optimal.Problem", "state_limits"): lambda r, **f: optimal.Problem(r, costs=[optimal.Effort()], **f),
    ("optimal.Walking", "state_limits"): lambda r, **f: optimal.Walking(_four_legs(), **f),
    ("optimal.reaching", "tip"): lambda r, **f: optimal.reaching(r, **f),
    ("realtime.SimulatedPlant", "brakes"): lambda r, **f: realtime.SimulatedPlant(r, **f),
    ("report.Fold", "opened"): lambda r, **f: report.Fold("more", [], **f),
    ("report.Section", "folded"): lambda r, **f: report.Section("all", [], **f),
    ("report.Line", "dashed"): lambda r, **f: report.Line("line", np.zeros(2), **f),
    ("report.line_plot", "zero"): lambda r, **f: report.line_plot(
        np.arange(2.0), [report.Line("l", np.ones(2))], **f
    ),
    ("report.line_plot", "hover"): lambda r, **f: report.line_plot(
        np.arange(2.0), [report.Line("l", np.ones(2))], **f
    ),
    ("simulate.Plant", "friction"): lambda r, **f: simulate.Plant(r, **f),
    ("simulate.simulate", "continuous"): lambda r, **f: _simulated(r, **f),
    ("simulate.simulate", "fused"): lambda r, **f: _simulated(r, **f),
    ("simulate.simulate", "warn"): lambda r, **f: _simulated(r, **f),
    ("simulate.simulate_adaptive", "friction"): lambda r, **f: simulate.simulate_adaptive(
        r, duration=0.01, **f
    ),
    ("simulate.source", "continuous"): lambda r, **f: simulate.source(r, _law(r), **f),
    ("view.Page", "dark"): lambda r, **f: view.Page(r, **f),
    ("view.Page", "shadows"): lambda r, **f: view.Page(r, **f),
    ("view.Page", "framed"): lambda r, **f: view.Page(r, **f),
    ("view.Page.darken", "dark"): lambda r, **f: view.Page.darken(SimpleNamespace(), **f),
    ("view.Page.shade", "shadows"): lambda r, **f: view.Page.shade(SimpleNamespace(), **f),
    ("view.page_file", "dark"): lambda r, **f: view.page_file(r, **f),
    ("view.serve", "dark"): lambda r, **f: view.serve(r, **f),
    ("view.serve", "shadows"): lambda r, **f: view.serve(r, **f),
    ("view.serve", "framed"): lambda r, **f: view.serve(r, **f),
    ("view.show", "dark"): lambda r, **f: view.show(r, **f),
    ("view.show", "live"): lambda r, **f: view.show(r, **f),
    ("view.show", "shadows"): lambda r, **f: view.show(r, **f),
    ("view.write_page", "dark"): lambda r, **f: view.write_page(r, os.devnull, **f),
    ("view.show", "wait"): lambda r, **f: view.show(r, **f),
}
OPTIONAL = {  # None is allowed
    ("view.page_file", "dark"),
    ("view.write_page", "dark"),
    *(("Robot.kernel", "base_parameters"), ("simulate.simulate", "fused"), ("Mimic", "coupled")),
    *(("Robot.show", "wait"), ("view.show", "wait"), ("Robot.show", "live"), ("view.show", "live")),
}
FURTHER = {  # options that reach their function through **options
    "random_robot friction": lambda r, **f: lw.random_robot(0, 3, friction=f["flag"]),
    "random_robot rotor": lambda r, **f: lw.random_robot(0, 3, rotor=f["flag"]),
    "random_model tree": lambda r, **f: random_model(0, 3, tree=f["flag"]),
    "conjugate_gradient friction": lambda r, **f: r.forward_dynamics(
        *STATE, algorithm="conjugate_gradient", friction=f["flag"]
    ),
    "compile friction": lambda r, **f: r.compile("inverse_dynamics", friction=f["flag"]),
    "compile wrench": lambda r, **f: r.compile("inverse_dynamics", wrench=f["flag"]),
    "source main": lambda r, **f: r.kernel("mass_matrix").source("c", main=f["flag"]),
    "source header": lambda r, **f: r.kernel("mass_matrix").source("c", header=f["flag"]),
    "source fma": lambda r, **f: r.kernel("mass_matrix").source("c", fma=f["flag"]),
    "source fast": lambda r, **f: r.kernel("mass_matrix").source("cuda", fast=f["flag"]),
    "kernels friction": lambda r, **f: r.kernel(["mass_matrix", "energy"], friction=f["flag"]),
    "study resume": lambda r, **f: _study().run("missing", resume=f["flag"]),
    "study accept_changed_code": lambda r, **f: _study().run("missing", accept_changed_code=f["flag"]),
    "study progress": lambda r, **f: _study().run("missing", progress=f["flag"]),
}


def _law(robot):
    return control.GravityPD(robot, control.Gains(10.0, 1.0))


def _simulated(robot, **options):
    return simulate.simulate(robot, _law(robot), duration=0.002, **options)


def _touching(robot):
    return robot.with_contacts([lw.Contact("tip")])


def _held(robot):
    return robot.with_constraints([lw.Point("tip", (0.0, 0.0, 0.0))])


def _study():
    return lw.study(
        {"robot": "two_link", "vary": {"x": {"grid": [0.0]}}, "compute": {"y": "x"}, "keep": {"y": ["mean"]}}
    )


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_what_is_no_flag_is_refused(value):
    with pytest.raises(lw.DtypeError, match=r"^friction: expected True or False, got "):
        flag("friction", value)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_a_flag_becomes_a_bool(value):
    assert type(flag("friction", value)) is bool
    assert flag("friction", value) == value
    assert flag_or_none("friction", value) is bool(value)
    assert flag_or_none("friction", None) is None


def test_a_long_value_is_shortened():
    with pytest.raises(lw.DtypeError) as error:
        flag("friction", "no" * 1000)
    assert len(str(error.value)) < 100


def test_every_flag_of_the_public_functions_is_tried_here():
    assert sorted(_public_flags()) == sorted(CALLS)


@pytest.mark.parametrize(("where", "name"), [key for key, call in CALLS.items() if call is not None])
def test_text_and_numbers_are_refused(robot, where, name):
    for value in ("no", 1, *(() if (where, name) in OPTIONAL else (None,))):
        with pytest.raises(
            lw.DtypeError, match=rf"^{name}: expected True or False, got {re.escape(repr(value))}$"
        ):
            CALLS[where, name](robot, **{name: value})


@pytest.mark.parametrize("what", FURTHER)
def test_options_of_options_are_refused(robot, what):
    with pytest.raises(lw.DtypeError, match=rf"^{what.split()[1]}: expected True or False, got 'no'$"):
        FURTHER[what](robot, flag="no")


def test_numpy_bools_mean_the_same(robot):
    rubbing = lw.load("puma560")
    state = (np.full(6, 0.3), np.full(6, 0.5), np.full(6, 0.1))
    for _ in range(3):  # by Python first, then by machine code
        for value in (True, False):
            wanted = rubbing.inverse_dynamics(*state, friction=value)
            assert (rubbing.inverse_dynamics(*state, friction=np.bool_(value)) == wanted).all()
    assert (rubbing.inverse_dynamics(*state) != rubbing.inverse_dynamics(*state, friction=False)).any()


def test_numbers_are_refused_after_a_call_with_the_flag_that_equals_them(robot):
    for _ in range(3):
        robot.inverse_dynamics(*map(np.array, STATE), friction=True)
    with pytest.raises(lw.DtypeError, match=r"friction: expected True or False, got 1$"):
        robot.inverse_dynamics(*map(np.array, STATE), friction=1)
    with pytest.raises(lw.DtypeError, match=r"friction: expected True or False, got 1\.0$"):
        robot.inverse_dynamics(*map(np.array, STATE), friction=1.0)


def _public_flags() -> set[tuple[str, str]]:
    found = set()
    for public in public_functions():
        options = {p.name for p in inspect.signature(public.function).parameters.values() if _is_flag(p)}
        found |= {(public.label, name) for name in options - NOT_OPTIONS.get(public.label, set())}
    return found


def _is_flag(parameter: inspect.Parameter) -> bool:
    return parameter.annotation in ("bool", "bool | None", bool) or isinstance(parameter.default, bool)
