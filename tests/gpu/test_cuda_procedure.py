"""Iterations over a horizon as CUDA: run on the CPU they return the CPU kernel's bits; NVRTC compiles them."""

import numpy as np
import pytest
from on_cpu import COMPILER, OnCpu

import linkwise as lw
from linkwise.collision.validity.kernel import BoundWorld
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.compiler.emit.cuda.team import TeamFrame
from linkwise.compiler.trace import rolled
from linkwise.gpu import DeviceError, nvrtc
from linkwise.language import span, sums
from linkwise.optimal import Effort, JointTracking, Problem, iteration
from linkwise.solve.factors import ldl, solve


@pytest.fixture(scope="module")
def kernel():
    robot = lw.load("two_link")
    goal = JointTracking([0.5, -0.2], weight=10.0, velocity=0.0, velocity_weight=0.1)
    problem = Problem(
        robot, horizon=3, step=0.02, costs=[goal, Effort(weight=1e-3)], terminal=[goal], torque_limits=20.0
    )
    return problem, iteration(problem, iterations=2, steps=[1.0, 0.5], constant_time=False)


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_cpus_bits(tmp_path, kernel, dtype):
    """One block that goes on to further problems."""
    problem, found = kernel
    count, rng = 35, np.random.default_rng(0)
    starts = problem.x0 + 0.1 * rng.standard_normal((count, 4))
    torques = 0.1 * rng.standard_normal((count, 6))
    inputs = [
        starts,
        np.tile(problem.p.ravel(), (count, 1)),
        np.tile(starts, (1, 4)),
        torques,
        np.zeros((count, 1)),
    ]
    inputs = [array.astype(dtype) for array in inputs]
    wanted = found(*inputs)
    compiled = OnCpu(cuda.module(found.program(dtype)), tmp_path, len(inputs) + len(wanted), len(inputs) + 1)
    outputs = [np.full_like(value, np.inf) for value in wanted]
    compiled(outputs, inputs, [array.shape[1] for array in inputs] + [count], count, blocks=1)
    for mine, value in zip(outputs, wanted, strict=True):
        assert mine.dtype == value.dtype == dtype
        assert mine.tobytes() == value.tobytes()
    assert (wanted[3][:, 6] == 2).all()  # both iterations took a step


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
@pytest.mark.parametrize("reverse", [False, True])
def test_a_warp_for_each_problem_has_the_cpus_bits(tmp_path, kernel, reverse):
    """Lanes run one after another between two barriers, in both orders: a result that depends on that has a race."""
    problem, found = kernel
    count, rng = 3, np.random.default_rng(1)
    starts = problem.x0 + 0.1 * rng.standard_normal((count, 4))
    inputs = [starts, np.tile(problem.p.ravel(), (count, 1)), np.tile(starts, (1, 4))]
    inputs += [0.1 * rng.standard_normal((count, 6)), np.zeros((count, 1))]
    wanted = found(*inputs)
    made = TeamFrame(found.program("float64"), "team").module("")
    assert "+ lane; " in made.text
    compiled = OnCpu(made, tmp_path, len(inputs) + len(wanted), len(inputs) + 1)
    outputs = [np.full_like(value, np.inf) for value in wanted]
    sizes = [array.shape[1] for array in inputs] + [count]
    compiled(outputs, inputs, sizes, count, reverse=reverse, blocks=2)
    for mine, value in zip(outputs, wanted, strict=True):
        assert mine.tobytes() == value.tobytes()


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
@pytest.mark.parametrize("reverse", [False, True])
def test_elements_of_products_are_shared_out_among_lanes(tmp_path, monkeypatch, reverse):
    """Rows and columns of products together, and what follows in the same loop after all of them."""
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    rows, inner, columns = 13, 24, 11

    def products(A, B):
        C, z = lw.empty(rows, columns), lw.empty(rows, columns)
        for j in span(columns, parallel=True):
            for i, total in sums([], (A, B[:, j], 1)):
                C[i, j] = total
            for i in span(rows):
                z[i, j] = C[i, j] + C[rows - 1 - i, j]
        return C, z

    kernel = lw.kernel(A=(rows, inner), B=(inner, columns))(products)
    rng = np.random.default_rng(2)
    inputs = [rng.normal(size=(3, rows * inner)), rng.normal(size=(3, inner * columns))]
    wanted = [np.asarray(value).reshape(3, -1) for value in kernel(*inputs)]
    made = TeamFrame(kernel.program("float64"), "team").module("")
    assert f"< {rows * columns}; " in made.text
    compiled = OnCpu(made, tmp_path, 4, 3)
    outputs = [np.full_like(value, np.inf) for value in wanted]
    compiled(outputs, inputs, [array.shape[1] for array in inputs] + [3], 3, reverse=reverse, blocks=2)
    for mine, value in zip(outputs, wanted, strict=True):
        assert mine.tobytes() == value.tobytes()


def test_nvrtc_compiles_it(kernel):
    try:
        compiler = nvrtc.compiler()
    except DeviceError as error:
        pytest.skip(str(error))
    made = cuda.module(kernel[1].program("float32"))
    compiler.compile(made.text, made.name, [*cuda.options(), "--gpu-architecture=sm_90"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_on_a_gpu(kernel, dtype):
    """The CPU's bits; skipped where there is no GPU."""
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as reason:
        pytest.skip(f"no GPU: {reason}")
    problem, found = kernel
    starts = problem.x0 + 0.1 * np.random.default_rng(1).standard_normal((100, 4))
    inputs = [
        starts,
        np.tile(problem.p.ravel(), (100, 1)),
        np.tile(starts, (1, 4)),
        np.zeros((100, 6)),
        np.zeros((100, 1)),
    ]
    inputs = [array.astype(dtype) for array in inputs]
    for mine, value in zip(found(*map(cupy.asarray, inputs)), found(*inputs), strict=True):
        assert cupy.asnumpy(mine).tobytes() == value.tobytes()


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_traced_loops_have_the_cpus_bits(tmp_path, monkeypatch, dtype):
    monkeypatch.setattr(rolled, "MOST_NODES", 0)
    kernel = lw.kernel(A=(5, 5), b=(5, 2))(lambda A, b: solve(*ldl(A), b))
    rng = np.random.default_rng(0)
    A = rng.normal(size=(35, 5, 5))
    inputs = [
        (A @ A.swapaxes(1, 2) + np.eye(5)).reshape(35, 25).astype(dtype),
        rng.normal(size=(35, 10)).astype(dtype),
    ]
    compiled = OnCpu(cuda.module(kernel.program(dtype)), tmp_path, 3, 3)
    out = np.full((35, 10), np.inf, dtype)
    compiled([out], inputs, [25, 10, 35], 35, blocks=1)
    assert out.tobytes() == kernel(*inputs).tobytes()


@pytest.mark.skipif(COMPILER is None, reason="g++ is not installed")
def test_collisions_with_obstacles_that_a_call_gives(tmp_path):
    """Work that only some states need (``IfNegative``), and numbers of rows that a call gives."""
    robot = lw.load("two_link")
    rng = np.random.default_rng(0)
    world = lw.collision.World(
        [
            *(lw.collision.Sphere(rng.uniform(-1.5, 1.5, 3), 0.2) for _ in range(4)),
            lw.collision.Cuboid((1.0, 0.0, 1.0), (0.2, 0.3, 0.4)),
            lw.collision.HalfSpace((0.0, 0.0, 1.0), -1.5),
        ]
    )
    checks = lw.collision.validity_of(robot)
    q = rng.uniform(-3, 3, (45, robot.nq)).astype(np.float32)
    bound = BoundWorld(world, "float32")
    (wanted,) = checks.collision_kernel(q, bound, 1)
    assert 0.0 < wanted.mean() < 1.0
    tables = [bound.margin, *bound.tables.values()]
    compiled = OnCpu(cuda.module(checks.collision_kernel.program), tmp_path, 2 + len(tables), 7 + 5 + 1)
    output = np.full_like(wanted, np.inf)
    sizes = [q.shape[1], *(0 for _ in tables), *bound.numbers, len(q)]
    compiled([output], [q, *tables], sizes, len(q), blocks=1)
    assert output.tobytes() == wanted.tobytes()
