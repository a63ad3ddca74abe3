"""Methods of robots by every kind of call: the same bits, the same errors; what can be asked of a method stays."""

import inspect
import pickle
import pydoc
import threading

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import dispatch
from linkwise.robot.methods import SLOT, Method
from linkwise.robot.robot import Robot

METHODS = [name for name, method in inspect.getmembers(Robot) if isinstance(method, Method)]
CONSTRAINED = ("constraint_jacobian", "constraint_errors", "delassus_matrix")
SIX_JOINTS = ("task_inertia", "consistent_inverse")


@pytest.fixture(scope="module")
def robots():
    arm = lw.load("two_link")
    # a frame of the robot: where in the world something is held is one more input of the code, which Python adds
    held = arm.with_constraints([lw.Point(arm.default_frame(), arm.moving_joints[0].child, [0.3, 0.2, 0.5])])
    touching = arm.with_contacts([lw.Contact(arm.default_frame())])
    return {"free": arm, "held": held, "six joints": lw.load("ur10e"), "touching": touching}


def robot_for(robots, name):
    if name.startswith("contact_"):
        return robots["touching"]
    return robots["held" if name in CONSTRAINED else "six joints" if name in SIX_JOINTS else "free"]


def states(name, *batch):
    """Arrays for the required arguments."""
    rng = np.random.default_rng(3)
    size = 6 if name in SIX_JOINTS else 2
    return [rng.uniform(0.1, 1.0, (*batch, size)) for _ in range(getattr(Robot, name).required)]


def leaves(value):
    return list(value) if isinstance(value, tuple) else [value]


def same_bits(a, b) -> bool:
    return all(
        type(x) is type(y) and x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for x, y in zip(leaves(a), leaves(b), strict=True)
    )


def through_python(robot, name, *args, **options):
    """The call computed by the function itself, with kernels that are called through Python."""
    calls = getattr(robot, SLOT)
    object.__delattr__(robot, SLOT)
    try:
        return getattr(Robot, name).function(robot, *args, **options)
    finally:
        object.__setattr__(robot, SLOT, calls)


def options_of(robot, name):
    """Every option of a method, one at a time, and some together."""
    yield {}
    parameters = getattr(Robot, name).places
    if "algorithm" in parameters:
        yield from ({"algorithm": each} for each in robot.algorithms(name)[:2])
    if "friction" in parameters:
        yield {"friction": False}
    if "frame" in parameters:
        yield {"frame": robot.link_names[-2]}
    if "wrench" in parameters:
        yield {"wrench": np.arange(6.0)}
        yield {"wrench": np.arange(6.0), "wrench_frame": robot.link_names[-2], "friction": False}


@pytest.mark.parametrize("name", METHODS)
def test_every_option_gives_the_same_bits(robots, name):
    robot, method = robot_for(robots, name), getattr(robot_for(robots, name), name)
    for options in options_of(robot, name):
        for args in (states(name), states(name, 5), [a.astype(np.float32) for a in states(name)]):
            first = method(*args, **options)
            assert same_bits(method(*args, **options), first)
            assert same_bits(through_python(robot, name, *args, **options), first)
            out = tuple(np.empty_like(part) for part in leaves(first))
            method(*args, **options, out=out if len(out) > 1 else out[0])
            assert same_bits(
                out if isinstance(first, tuple) else out[0], np.asarray(first) if len(out) == 1 else first
            )
        listed = [a.tolist() for a in states(name)]
        assert same_bits(method(*listed, **options), method(*states(name), **options))


@pytest.mark.skipif(not dispatch.SUPPORTED, reason="the layout of Python's or NumPy's objects is not known")
@pytest.mark.parametrize("name", METHODS)
def test_known_calls_do_not_go_through_python(robots, name, monkeypatch):
    robot, method = robot_for(robots, name), getattr(robot_for(robots, name), name)
    args, batch = states(name), states(name, 5)
    every = list(options_of(robot, name))
    for options in every:
        method(*args, **options)
        method(*batch, **options)
    monkeypatch.setattr(getattr(Robot, name), "function", None)
    monkeypatch.setattr("linkwise.compiler.runtime.arrays.as_reals", None)
    for options in every:
        method(*args, **options)
        method(*batch, **options)
        method(*args, **options, threads=1)
        method(**dict(zip(getattr(Robot, name).names, args, strict=False)), **options)
        method(*[a.tolist() for a in args], **options)
        method(*[np.repeat(a, 2)[::2] for a in args], **options)


def test_names_may_be_other_objects_with_the_same_text(robots, monkeypatch):
    robot = robots["free"]
    frame = robot.link_names[-2]
    q = states("pose")[0]
    wanted = robot.pose(q, frame)
    if dispatch.SUPPORTED:
        monkeypatch.setattr(Method, "_values", None)  # Python's way would need it
    assert same_bits(robot.pose(q, frame="".join(list(frame))), wanted)


ERRORS = {
    "unknown algorithm": lambda r, q: r.inverse_dynamics(q, q, q, algorithm="newton"),
    "unknown frame": lambda r, q: r.pose(q, "nothing"),
    "unknown keyword": lambda r, q: r.pose(q, color="red"),
    "twice": lambda r, q: r.pose(q, q=q),
    "missing": lambda r, q: r.inverse_dynamics(q, q),
    "too many": lambda r, q: r.gravity_torques(q, q),
    "wrong shape": lambda r, q: r.gravity_torques(q[:1]),
    "wrong type": lambda r, q: r.gravity_torques("abc"),
    "wrong out": lambda r, q: r.gravity_torques(q, out=np.empty(5)),
    "wrong threads": lambda r, q: r.gravity_torques(q, threads=0),
    "wrong wrench": lambda r, q: r.inverse_dynamics(q, q, q, wrench=q),
    "no robot": lambda r, q: Robot.gravity_torques(q),
    "no arguments": lambda r, q: Robot.gravity_torques(),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_the_same_before_and_after(case):
    q = np.full(2, 0.5)

    def message(robot):
        with pytest.raises((TypeError, ValueError)) as error:
            ERRORS[case](robot, q)
        return type(error.value), str(error.value)

    fresh, used = lw.load("two_link"), lw.load("two_link")
    for _ in range(2):
        used.inverse_dynamics(q, q, q)
        used.inverse_dynamics(q, q, q, wrench=np.ones(6))
        used.gravity_torques(q)
        used.pose(q)
    assert message(used) == message(fresh)


@pytest.mark.parametrize("name", METHODS)
def test_what_can_be_asked_of_a_method_stays(robots, name):
    robot, function = robot_for(robots, name), getattr(Robot, name).function

    def asked(of):
        bound = getattr(of, name)
        twin = pickle.loads(pickle.dumps(bound))
        return (
            inspect.signature(bound),
            inspect.signature(getattr(Robot, name)),
            pydoc.render_doc(bound),
            pydoc.render_doc(getattr(Robot, name)),
            (bound.__name__, bound.__doc__, bound.__qualname__, bound.__module__),
            (
                twin.__name__,
                twin.__self__,
                bound == getattr(of, name),
                hash(bound) == hash(getattr(of, name)),
            ),
            sorted(key for key in vars(of) if not key.startswith("_")),
        )

    fresh = pickle.loads(pickle.dumps(robot))
    for of in (fresh, robot):
        before = asked(of)
        getattr(of, name)(*states(name))
        getattr(of, name)(*states(name))
        assert asked(of) == before
        assert name not in vars(of)
    assert inspect.signature(getattr(Robot, name)) == inspect.signature(function)
    assert list(inspect.signature(getattr(robot, name)).parameters) == getattr(Robot, name).names
    assert inspect.isroutine(getattr(Robot, name))


def test_a_singular_robot_says_so_by_every_call():
    robot = lw.load("two_link").with_parameters(
        {label: 0.0 for label in lw.load("two_link").parameter_labels if not label.startswith("gravity")}
    )
    args = [np.ones(2)] * 3
    for _ in range(3):
        with pytest.raises(lw.SingularError):
            robot.forward_dynamics(*args)
        with pytest.raises(lw.SingularError):
            robot.inverse_mass_matrix(args[0])


def test_a_subclass_has_the_methods_too():
    class Own(Robot):
        def mass_matrix(self, q, **options):
            return -super().mass_matrix(q, **options)

    arm = lw.load("two_link")
    own, q = Own.from_model(arm), np.full(2, 0.5)
    for _ in range(3):
        assert same_bits(own.mass_matrix(q), -arm.mass_matrix(q))
        assert same_bits(own.gravity_torques(q), arm.gravity_torques(q))


def test_many_threads_with_many_options(robots):
    robot, wrong = robots["free"], []
    args, batch = states("inverse_dynamics"), states("inverse_dynamics", 40)
    kinds = [
        (name, options)
        for name in ("inverse_dynamics", "forward_dynamics")
        for options in options_of(robot, name)
    ]
    wanted = [(getattr(robot, n)(*args, **o), getattr(robot, n)(*batch, **o)) for n, o in kinds]
    fresh = lw.load("two_link")

    def work():
        for _ in range(20):
            for (name, options), (single, many) in zip(kinds, wanted, strict=True):
                method = getattr(fresh, name)
                if not same_bits(method(*args, **options), single) or not same_bits(
                    method(*batch, **options), many
                ):
                    wrong.append((name, options))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_robot_remembers_a_bounded_number_of_calls(robots):
    robot, q = lw.load("two_link"), np.full(2, 0.5)
    wanted = robot.gravity_torques(q)
    for k in range(400):
        robot.forward_dynamics(q, q, q, stabilization=k + 1.0)
    assert len(getattr(robot, SLOT).by_options) <= 256
    assert same_bits(robot.gravity_torques(q), wanted)


def test_symbols_are_traced_after_calls_with_numbers():
    robot, q = lw.load("two_link"), np.array([0.3, 0.4])
    robot.gravity_torques(q)

    @lw.kernel(q=2)
    def doubled(q):
        return 2 * robot.gravity_torques(q)

    assert np.array_equal(doubled(q), 2 * robot.gravity_torques(q))
