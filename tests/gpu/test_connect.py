"""Calls with arrays on a GPU that machine code takes, without a GPU: pretended libraries and a pretended driver."""

import gc
import sys
import threading

import numpy as np
import pytest
from pretended_libraries import MODES, ByAttributes, ByExchange, Driver, install

import linkwise as lw
from linkwise.compiler.runtime import background, dispatch, layout
from linkwise.gpu import DeviceError

pytestmark = pytest.mark.skipif(not layout.SUPPORTED, reason="machine code cannot be called directly here")
LIBRARIES = [ByAttributes, ByExchange]


@pytest.fixture
def driver(monkeypatch):
    return install(monkeypatch)


@pytest.fixture
def robot(driver):
    return lw.load("two_link")


@pytest.fixture
def launches(driver):
    """A function that calls and gives (result, launches by machine code)."""

    def counted(call):
        before = len(driver.launched)
        made = call()
        return made, len(driver.launched) - before

    return counted


def states(*shape, dtype="float64", seed=1):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=(*shape, 2)).astype(dtype) for _ in range(3)]


def same(got, wanted):
    return (
        got.array.dtype == wanted.dtype
        and got.shape == wanted.shape
        and np.array_equal(got.array, wanted, equal_nan=True)
    )


@pytest.mark.parametrize("kind", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_kind_of_call_has_the_same_bits(robot, kind, dtype, launches):
    given, wrench = states(40, dtype=dtype), np.ones((40, 6), dtype)
    there = [kind(a) for a in given]
    out = kind(np.zeros((40, 2), dtype))
    kernel = robot.kernel("inverse_dynamics")
    calls = {
        "method": (lambda q: robot.inverse_dynamics(*q), given),
        "options": (lambda q: robot.inverse_dynamics(*q, friction=False), given),
        "wrench": (lambda q: robot.inverse_dynamics(*q[:3], wrench=q[3]), [*given, wrench]),
        "names": (lambda q: robot.inverse_dynamics(q=q[0], qd=q[1], qdd=q[2]), given),
        "kernel": (lambda q: kernel(*q), given),
        "several outputs": (lambda q: robot.inverse_dynamics_derivatives(*q)[1], given),
        "one row for all": (
            lambda q: robot.inverse_dynamics(q[0], *q[3:]),
            [*given, given[1][0], given[2][0]],
        ),
    }
    for name, (call, inputs) in calls.items():
        wanted = call(inputs)
        assert same(call([kind(a) for a in inputs]), wanted), name
        for _ in range(2):
            got, count = launches(lambda call=call, inputs=inputs: call([kind(a) for a in inputs]))
            assert type(got) is kind, name
            assert same(got, wanted), name
            assert count == 1, name
    got, count = launches(lambda: robot.inverse_dynamics(*there, out=out))
    assert got is out
    assert count == 1
    assert same(out, robot.inverse_dynamics(*given))


def test_the_second_call_is_by_machine_code_wherever_entry_points_come_from(
    robot, launches, monkeypatch, tmp_path
):
    """They are compiled in the background for calls on the CPU; a kernel on a GPU does not wait for many calls."""
    monkeypatch.setenv("LINKWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(dispatch, "_entry", type(dispatch._entry)())
    monkeypatch.setattr(background, "is_on", lambda: True)
    q = ByAttributes(states(5)[0])
    kernel = robot.kernel("gravity_torques")
    assert launches(lambda: kernel(q))[1] == 0
    assert launches(lambda: kernel(q))[1] == 1


@pytest.mark.parametrize("kind", LIBRARIES)
def test_batches_of_any_shape(robot, kind, launches):
    robot.gravity_torques(kind(states(3)[0]))
    for shape in [(), (1,), (5,), (2, 3), (1, 4, 1, 2)]:
        q = states(*shape)[0]
        got, count = launches(lambda q=q: robot.gravity_torques(kind(q)))
        assert count == 1
        assert same(got, robot.gravity_torques(q))
    for shape in [(0,), (2, 0)]:
        got, count = launches(lambda shape=shape: robot.gravity_torques(kind(np.zeros((*shape, 2)))))
        assert (count, got.shape) == (0, (*shape, 2))


@pytest.mark.parametrize("kind", LIBRARIES)
def test_what_machine_code_leaves_to_python(robot, kind, launches):
    q, qd, qdd = states(6)
    wanted = robot.inverse_dynamics(q, qd, qdd)
    robot.inverse_dynamics(kind(q), kind(qd), kind(qdd))

    def python(*args, **options):
        got, count = launches(lambda: robot.inverse_dynamics(*args, **options))
        assert count == 0
        return got

    wide = np.zeros((6, 4))
    wide[:, :2] = qd
    assert same(python(kind(q), kind(wide[:, :2]), kind(qdd)), wanted)
    assert same(python(kind(q), kind(qd[::-1][::-1]), kind(np.asfortranarray(qdd))), wanted)
    mixed = python(kind(q.astype("float32")), kind(qd), kind(qdd))
    assert same(mixed, robot.inverse_dynamics(q.astype("float32"), qd, qdd))
    assert same(python(kind(q[:, None]), kind(qd), kind(qdd)), robot.inverse_dynamics(q[:, None], qd, qdd))
    over = kind(q.copy())
    assert same(python(over, kind(qd), kind(qdd), out=over), wanted)
    spaced = kind(np.zeros((6, 4))[:, ::2])
    assert same(python(kind(q), kind(qd), kind(qdd), out=spaced), wanted)
    with pytest.raises(lw.ShapeError, match=r"out: expected shape \(6, 2\), got \(5, 2\)"):
        python(kind(q), kind(qd), kind(qdd), out=kind(np.zeros((5, 2))))
    with pytest.raises(TypeError, match="out: expected an array of float64, got float32"):
        python(kind(q), kind(qd), kind(qdd), out=kind(np.zeros((6, 2), "float32")))
    with pytest.raises(lw.ShapeError, match="q: expected shape"):
        python(kind(np.zeros((6, 3))), kind(qd), kind(qdd))
    with pytest.raises(DeviceError, match="qd is a numpy"):
        python(kind(q), qd, kind(qdd))


def test_arrays_on_different_gpus(robot):
    q, qd, qdd = states(6)
    robot.inverse_dynamics(*map(ByAttributes, (q, qd, qdd)))
    other = ByAttributes(qd, number=1)
    with pytest.raises(DeviceError, match="qd is Pretended's on cuda:1"):
        robot.inverse_dynamics(ByAttributes(q), other, ByAttributes(qdd))


def test_gradients_are_left_to_python(robot, launches):
    q = ByExchange(states(6)[0])
    robot.gravity_torques(q)
    q.requires_grad = True
    assert launches(lambda: robot.gravity_torques(q))[1] == 0


def test_forward_mode_is_left_to_python(robot, launches, monkeypatch):
    """It does not show in the arrays themselves."""
    q = ByExchange(states(6)[0])
    robot.gravity_torques(q)
    assert launches(lambda: robot.gravity_torques(q))[1] == 1
    monkeypatch.setattr(MODES, "_current_level", 0)
    assert launches(lambda: robot.gravity_torques(q))[1] == 0


def test_tensors_without_memory_are_left_to_python(robot, launches):
    q = ByExchange(states(6)[0])
    robot.gravity_torques(q)
    q.stands_for_another = True
    assert launches(lambda: robot.gravity_torques(q))[1] == 0


def test_single_scalars_are_left_to_python(driver, launches):
    """A view with a pending change of sign can look dense only if it is one scalar."""
    robot = lw.random_robot(1, 1)
    q = np.array([0.3])
    for _ in range(2):
        got, count = launches(lambda: robot.gravity_torques(ByExchange(q)))
        assert same(got, robot.gravity_torques(q))
        assert count == 0
    assert launches(lambda: robot.gravity_torques(ByExchange(np.ones((4, 1)))))[1] == 1


def test_another_gpu_is_current(robot, driver, launches):
    given = states(6)
    there = [ByAttributes(a) for a in given]
    robot.inverse_dynamics(*there)
    tensors = [ByExchange(a) for a in given]
    robot.inverse_dynamics(*tensors)
    driver.current = Driver.OTHER
    got, count = launches(lambda: robot.inverse_dynamics(*there))
    assert count == 0, "new arrays would be on the other GPU"
    assert same(got, robot.inverse_dynamics(*given))
    got, count = launches(lambda: robot.inverse_dynamics(*tensors))
    assert count == 1
    assert driver.entered == [Driver.CONTEXT]
    assert same(got, robot.inverse_dynamics(*given))


@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_launch_that_fails_is_repeated_by_python(robot, kind, driver, launches):
    """Python raises the driver's error, or succeeds where the failure did not last."""
    given = states(6)
    there = [kind(a) for a in given]
    robot.inverse_dynamics(*there)
    driver.failure = 2
    got, count = launches(lambda: robot.inverse_dynamics(*there))
    assert count > 0
    assert same(got, robot.inverse_dynamics(*given))


def test_an_allocator_that_fails(robot, launches, monkeypatch):
    """The error of the library's allocator is not lost, and nothing is launched."""
    q = ByAttributes(states(6)[0])
    robot.gravity_torques(q)
    made = ByAttributes.__init__

    def refuse(self, array, dtype=None, number=0):
        if dtype is not None:
            raise MemoryError
        made(self, array, dtype, number)

    monkeypatch.setattr(ByAttributes, "__init__", refuse)
    got, count = launches(lambda: robot.gravity_torques(q))
    assert count == 0
    assert same(got, robot.gravity_torques(q.array)), "Python's way makes arrays by another call"


@pytest.mark.parametrize("kind", LIBRARIES)
def test_several_functions_are_one_launch(robot, kind, launches):
    kernel = robot.kernel(["mass_matrix", "bias_torques", "jacobian"])
    q, qd, _ = states(33)
    kernel(kind(q), kind(qd))
    got, count = launches(lambda: kernel(kind(q), kind(qd)))
    assert count == 1
    wanted = kernel(q, qd)
    assert all(same(a, b) for a, b in zip(got, wanted, strict=True))
    apart = (robot.mass_matrix(q), robot.bias_torques(q, qd), robot.jacobian(q))
    assert all(np.allclose(a, b) for a, b in zip(wanted, apart, strict=True))


@pytest.mark.parametrize("kind", LIBRARIES)
def test_parameters_as_inputs(robot, kind, launches):
    kernel = robot.kernel("inverse_dynamics", inputs=("payload",))
    payload = np.array([1.5, 0.1, 0.0, 0.2, 0.02, 0.0, 0.0, 0.02, 0.0, 0.02])
    given = [*states(9), payload]
    kernel(*map(kind, given))
    got, count = launches(lambda: kernel(*map(kind, given)))
    assert count == 2, "the prelude and the main part"
    assert same(got, kernel(*given))


@pytest.mark.parametrize("kind", LIBRARIES)
def test_scratch_memory_comes_from_the_library(robot, kind, driver, launches):
    """Kernels of long chains need memory besides their arrays."""
    driver.scratch = 1000
    given = states(70)
    wanted = robot.inverse_dynamics(*given)
    assert same(robot.inverse_dynamics(*map(kind, given)), wanted)
    got, count = launches(lambda: robot.inverse_dynamics(*map(kind, given)))
    assert count == 1
    assert driver.launched[-1][0] == 3, "blocks"
    assert same(got, wanted)


@pytest.mark.parametrize("kind", LIBRARIES)
def test_nothing_is_left_behind(robot, kind, driver):
    """References are counted as they must be, in calls that are taken and in calls that are not."""
    q, qd, qdd = (kind(a) for a in states(8))
    out, overlapping = kind(np.zeros((8, 2))), q
    kinds = (np.dtype("float64"), kind, None, True)

    def calls():
        robot.inverse_dynamics(q, qd, qdd)
        robot.inverse_dynamics(q, qd, qdd, out=out)
        robot.inverse_dynamics(q, qd, qdd, out=overlapping)
        robot.inverse_dynamics_derivatives(q, qd, qdd)
        driver.launched.clear()
        driver.by_python.clear()

    for _ in range(3):
        calls()
    gc.collect()
    before = [sys.getrefcount(x) for x in (q, qd, qdd, out, *kinds)]
    blocks = sys.getallocatedblocks()
    for _ in range(100):
        calls()
    gc.collect()
    after = [sys.getrefcount(x) for x in (q, qd, qdd, out, *kinds)]
    assert all(abs(a - b) < 20 for a, b in zip(before, after, strict=True)), (before, after)
    assert sys.getallocatedblocks() - blocks < 500


def test_threads(robot):
    given = states(64)
    wanted = robot.inverse_dynamics(*given)
    there = [ByAttributes(a) for a in given]
    robot.inverse_dynamics(*there)
    wrong = []

    def work():
        for _ in range(50):
            if not same(robot.inverse_dynamics(*there), wanted):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
