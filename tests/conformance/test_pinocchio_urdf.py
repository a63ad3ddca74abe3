"""Every URDF file that can be found, against Pinocchio: the same numbers, or a refusal for a reason that is
stated.

Friction off. A file that Pinocchio loads must load here and agree. Where the mass matrix is singular, forward
dynamics must say so and name the joint.
"""

import os
import warnings
import zlib

import numpy as np
import pytest
from engines import Pinocchio, example_robots, nearly_singular, relative_error, shared_robots, title

import linkwise as lw
from linkwise import compat
from linkwise.functions import arrays
from linkwise.functions.table import Setting, function_named
from linkwise.robot import kernels

pin = pytest.importorskip("pinocchio", reason="Pinocchio (the wheel 'pin') is not installed")

# relative, norm-wise; mostly round-off is seen, 1e-16 to 1e-13, more where π/2 is written with eleven digits
TOLERANCE = 1e-9
STATES = 3
FIXED = "robots compared with Pinocchio (largest relative differences)"
FLOATING = "robots on a floating base compared with Pinocchio (largest relative differences)"
ALL = bool(
    os.environ.get("LINKWISE_ALL_ROBOTS")
)  # else every fifth robot on a floating base, and large functions on arrays, for the time it takes
FILES = example_robots() + shared_robots()
ROBOTS = [pytest.param(path, id=title(path)) for path in FILES] or [
    pytest.param(
        None, marks=pytest.mark.skip(reason="neither example-robot-data nor the shared robot files are here")
    )
]


def load_here(path, base="fixed"):
    """Our robot, or the reason why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        try:
            return lw.load(path, mimic="independent", base=base), ""
        except lw.ModelError as error:
            return None, str(error).replace(str(path), path.name)


def load_there(path, *base):
    """Pinocchio's model, or the reason why there is none."""
    try:
        return pin.buildModelFromUrdf(str(path), *base), ""
    except ValueError as error:
        return None, str(error).replace(str(path), path.name).splitlines()[0]


@pytest.fixture(autouse=True)
def short_programs(monkeypatch):
    """Compiling takes most of the time: large functions of large robots run as loops or on arrays instead.

    LINKWISE_ALL_ROBOTS compiles them all.
    """
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 1_000)
    if not ALL:
        monkeypatch.setattr(kernels, "MOST_WRITTEN_OUT", 15_000)


@pytest.mark.filterwarnings("ignore::linkwise.SlowWarning")
@pytest.mark.parametrize("path", ROBOTS)
def test_agreement(path, record_property):
    robot, refusal = load_here(path)
    peer, peer_refusal = load_there(path)
    try:
        outcome = compare(robot, refusal, peer, peer_refusal, seed=zlib.crc32(title(path).encode()))
    except Exception as error:
        record_property("compared", (FIXED, title(path), f"FAILED: {error}".splitlines()[0]))
        raise
    record_property("compared", (FIXED, title(path), outcome))


def compare(robot, refusal, peer, peer_refusal, seed) -> str:
    """The outcome in words; an AssertionError where it is not as it must be."""
    if peer is None:
        return f"not compared: Pinocchio refuses it ({peer_refusal}); here: {refusal or 'read'}"
    assert robot is not None, f"Pinocchio loads it; refused here: {refusal}"
    assert robot.dof == peer.nv
    if robot.dof == 0:
        return "compared: no moving joint"
    errors, condition, note = differences(robot, Pinocchio.of(pin, peer, robot), np.random.default_rng(seed))
    shown = " ".join(f"{name} {error:.0e}" for name, error in errors.items())
    wrong = {name: error for name, error in errors.items() if not error <= allowed(name, condition)}
    assert not wrong, f"differences above {TOLERANCE}: {wrong} (condition number of M {condition:.0e})"
    return f"compared: {robot.dof} joints, {shown}{note}"


def allowed(name: str, condition: float) -> float:
    """What takes an inverse of M is known to round-off times its condition number, by whatever algorithm."""
    round_off = 4 * np.finfo(float).eps * condition
    return max(TOLERANCE, round_off) if name in ("qdd", "1/M") else TOLERANCE


def differences(robot: lw.Robot, peer: Pinocchio, rng) -> tuple[dict[str, float], float, str]:
    """Relative difference of every quantity, condition number of M, and a note where M is singular."""
    q = robot.integrate(robot.neutral, rng.normal(size=(STATES, robot.dof)))
    qd, qdd, tau = rng.normal(size=(3, STATES, robot.dof))

    def each(function, *arguments):
        return np.array([function(*row) for row in zip(*arguments, strict=True)])

    there = each(peer.mass_matrix, q)
    errors = {
        "tau": relative_error(
            robot.inverse_dynamics(q, qd, qdd, friction=False), each(peer.inverse_dynamics, q, qd, qdd)
        ),
        "M": relative_error(robot.mass_matrix(q), there),
        "J": max(
            relative_error(robot.jacobian(q, leaf), each(lambda q, leaf=leaf: peer.jacobian(q, leaf), q))
            for leaf in farthest_leaves(robot)
        ),
    }
    if not peer.planar():  # a planar joint is three links here
        columns = 10 * len(robot.joint_names)
        errors["Y"] = relative_error(
            robot.regressor(q, qd, qdd)[..., :columns], each(peer.regressor, q, qd, qdd)
        )
    if nearly_singular(there):
        for compute in (
            lambda: robot.forward_dynamics(q, qd, tau, friction=False),
            lambda: robot.inverse_mass_matrix(q),
        ):
            with pytest.raises(lw.SingularError) as caught:
                compute()
            culprit = [name for name in robot.joint_names if repr(name) in str(caught.value)]
            assert culprit, f"the error names no joint: {caught.value}"
        return errors, np.inf, f"; singular, said so: {culprit[0]}"
    errors["qdd"] = relative_error(
        robot.forward_dynamics(q, qd, tau, friction=False), each(peer.forward_dynamics, q, qd, tau)
    )
    errors["1/M"] = relative_error(robot.inverse_mass_matrix(q), each(peer.inverse_mass_matrix, q))
    return errors, float(np.linalg.cond(there).max()), ""


@pytest.mark.parametrize("path", ROBOTS if ALL else ROBOTS[::5])
def test_agreement_on_a_floating_base(path, record_property):
    """JointModelFreeFlyer; here on arrays, so that nothing is compiled."""
    peer, _ = load_there(path, pin.JointModelFreeFlyer())
    if peer is None:
        pytest.skip("Pinocchio refuses it")
    robot, refusal = load_here(path, base="floating")
    assert robot is not None, refusal
    assert robot.dof == peer.nv
    other = Pinocchio.of(pin, peer, robot)
    rng = np.random.default_rng(zlib.crc32(title(path).encode()))
    q = robot.integrate(robot.neutral, rng.normal(size=(STATES, robot.dof)))
    qd, qdd, tau = rng.normal(size=(3, STATES, robot.dof))

    def there(function, *arguments):
        return np.array([function(*row) for row in zip(*arguments, strict=True)])

    M = there(other.mass_matrix, q)
    errors = {
        "tau": relative_error(
            on_arrays(robot, "inverse_dynamics", q=q, qd=qd, qdd=qdd),
            there(other.inverse_dynamics, q, qd, qdd),
        ),
        "M": relative_error(on_arrays(robot, "mass_matrix", q=q), M),
    }
    if not nearly_singular(M):
        errors["qdd"] = relative_error(
            on_arrays(robot, "forward_dynamics", q=q, qd=qd, tau=tau),
            there(other.forward_dynamics, q, qd, tau),
        )
    condition = float(np.linalg.cond(M).max())
    shown = " ".join(f"{name} {error:.0e}" for name, error in errors.items())
    record_property("compared", (FLOATING, title(path), f"compared: {robot.dof} velocities, {shown}"))
    wrong = {name: error for name, error in errors.items() if not error <= allowed(name, condition)}
    assert not wrong


def on_arrays(robot: lw.Robot, name: str, **given) -> np.ndarray:
    """A function by its default algorithm, without friction."""
    row = function_named(name)
    found = arrays.run_on_arrays(row, Setting(robot, friction=False), row.default, given)
    return next(iter(found.values()))


BODY = (
    '<inertial><origin xyz=".1 .2 -.1" rpy=".1 .2 .3"/><mass value="2"/>'
    '<inertia ixx=".3" iyy=".4" izz=".5" ixy=".01" ixz=".02" iyz=".03"/></inertial>'
)


@pytest.mark.parametrize(("kind", "axis"), [("planar", "0 -1 0"), ("planar", "1 2 3"), ("floating", "0 0 1")])
def test_joints_of_several_degrees_of_freedom(kind, axis, tmp_path):
    """In the middle of a robot, with masses, in any plane."""
    text = f'''<robot name="r"><link name="world"/>
      <link name="a">{BODY}</link><link name="b">{BODY}</link><link name="c">{BODY}</link>
      <joint name="first" type="continuous"><parent link="world"/><child link="a"/><axis xyz="1 0 1"/></joint>
      <joint name="wide" type="{kind}"><parent link="a"/><child link="b"/>
        <origin xyz=".3 .1 0" rpy=".3 -.2 .5"/><axis xyz="{axis}"/></joint>
      <joint name="last" type="continuous"><parent link="b"/><child link="c"/>
        <origin xyz=".1 .2 .3" rpy="1 0 0"/><axis xyz="0 1 1"/></joint></robot>'''
    path = tmp_path / "r.urdf"
    path.write_text(text)
    robot = lw.load(path)
    peer = pin.buildModelFromXML(text)
    assert robot.dof == peer.nv == {"planar": 5, "floating": 8}[kind]
    errors, _, _ = differences(robot, Pinocchio.of(pin, peer, robot), np.random.default_rng(0))
    q = robot.integrate(robot.neutral, np.linspace(-2, 2, robot.dof))
    there = compat.q_to_pinocchio(robot, peer, q)
    np.testing.assert_allclose(compat.q_from_pinocchio(robot, peer, there), q, atol=1e-15)
    assert max(errors.values()) < TOLERANCE, errors


def farthest_leaves(robot: lw.Robot) -> list[str]:
    """The two leaves with the most moving joints between them and the base."""
    above = {joint.child: joint for joint in robot.joints}

    def depth(link: str) -> int:
        moving = 0
        while link in above:
            moving += above[link].moves
            link = above[link].parent
        return moving

    return sorted(robot.leaf_names, key=depth)[-2:]


def test_there_are_robots_to_compare():
    if not example_robots():
        pytest.skip("the wheel example-robot-data is not installed")
    assert len(example_robots()) >= 60
