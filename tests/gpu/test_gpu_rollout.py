"""Closed loops as one CUDA kernel, run on the CPU: the bits of the CPU's own kernel, robot by robot."""

import numpy as np
import pytest
from pretended import Pretended

import linkwise as lw
from linkwise.compiler.emit.cuda import layout, queued, rollout
from linkwise.compiler.emit.cuda import source as cuda
from linkwise.compiler.ir.graph import CONDITIONS, Node
from linkwise.compiler.ir.loops import For, Step
from linkwise.compiler.rollout import NEXT, Interface, trace_rollout
from linkwise.compiler.shapes import Repetition
from linkwise.control import Gains, GravityPD
from linkwise.gpu import DeviceError
from linkwise.motion import quintic
from linkwise.scalar import where
from linkwise.simulate import Plant, Sensors, simulate


def pretend(value):
    return Pretended(np.asarray(value))


def both(robot, count, dtype, reference, plant=None, **options):
    """The same simulation on the CPU and on the pretended GPU; what is in ``vary`` goes to the GPU, too."""
    generator = np.random.default_rng(3)
    q, qd = (generator.normal(size=(count, robot.dof)).astype(dtype) for _ in range(2))
    vary = {name: value.astype(dtype) for name, value in options.pop("vary", {}).items()}
    controller = GravityPD(robot, Gains(30.0, 5.0))
    common = {"integrator": "semi_implicit_euler", "step": 1e-2, "dtype": dtype, **options}
    wanted = simulate(plant or robot, controller, reference, q=q, qd=qd, vary=vary, **common)
    there = {name: pretend(value) for name, value in vary.items()}
    got = simulate(plant or robot, controller, reference, q=pretend(q), qd=pretend(qd), vary=there, **common)
    return got, wanted


def assert_same(got, wanted):
    for name in ("q", "qd", "tau", "final_q", "final_qd"):
        a, b = getattr(got, name).array, getattr(wanted, name)
        assert a.dtype == b.dtype
        assert np.array_equal(a, b, equal_nan=True), name
        assert np.isfinite(b).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gains_and_payloads_of_every_robot(pretended, dtype):
    robot, compiled = pretended
    count = 70
    payload = np.zeros((count, 10))
    payload[:, 0] = np.linspace(0.0, 1.0, count)
    payload[:, [4, 7, 9]] = 0.1 * payload[:, :1]
    kp = np.linspace([20.0, 10.0], [40.0, 30.0], count)
    got, wanted = both(
        robot, count, dtype, np.zeros(2), duration=0.11, every=4, vary={"kp": kp, "payload": payload}
    )
    assert_same(got, wanted)
    assert got.q.array.shape == (count, 3, 2)
    assert len(compiled) == 1


@pytest.mark.parametrize("room", [1 << 20, 0])
def test_warps_of_long_code_begin_every_step_together(pretended, monkeypatch, room):
    """Also with gains and samples that stay in global memory, and lanes of the last warp without robots."""
    robot, _ = pretended
    monkeypatch.setattr(layout, "_LONG", 10)
    monkeypatch.setattr(rollout, "SHARED_IN_STEP", room)
    count = 70
    kp = np.linspace([20.0, 10.0], [40.0, 30.0], count)
    moves = [quintic(np.zeros(2), np.array([0.01 * k, -0.2]), 0.1) for k in range(count)]
    assert_same(*both(robot, count, "float32", moves, duration=0.11, every=4, vary={"kp": kp}))
    (kernel,) = vars(robot)["_rollouts"].values()
    module = cuda.module(kernel.program("float32"))
    assert module.threads == 256
    assert "__syncthreads();" in module.text
    assert ("kp_rows + (first + row) * kp_stride;" in module.text) == (room == 0)
    assert ("* samples + sample) * 2;" in module.text) == (room == 0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_robots_that_touch_take_turns(pretended, monkeypatch, dtype):
    """A thread whose robot needs no further turn of the solver takes the next one of its warp, in every step; with
    gains of each robot, references, and samples in between."""
    monkeypatch.setattr(queued, "_FROM", 0)
    monkeypatch.setitem(queued.STATES, dtype, 64)
    links = [lw.Link("base"), *(lw.Link(n, lw.Inertia.from_com(1.0, (0.1, 0, 0), (0.01,) * 3)) for n in "ab")]
    joints = [
        lw.Joint("slide", "prismatic", "base", "a", axis=(0, 0, 1)),
        lw.Joint("turn", "revolute", "a", "b", axis=(0, 1, 0)),
    ]
    points = [(0.3, 0.05, 0.0), (0.3, -0.05, 0.0), (-0.2, 0.0, 0.0)]
    robot = lw.Robot("stick", links, joints).with_contacts([lw.Contact("b", points=points, friction=0.7)])
    count = 600
    kp = np.linspace([2.0, 1.0], [40.0, 30.0], count)
    moves = [quintic(np.zeros(2), np.array([0.001 * k, -0.2]), 0.1) for k in range(count)]
    assert_same(*both(robot, count, dtype, moves, duration=0.06, every=4, warn=False, vary={"kp": kp}))
    (kernel,) = vars(robot)["_rollouts"].values()
    assert "__ballot_sync" in cuda.module(kernel.program(dtype)).text


def test_a_reference_for_all_and_one_for_each(pretended):
    robot, _ = pretended
    moves = [quintic(np.zeros(2), np.array([0.1 * k, -0.2]), 0.1) for k in range(35)]
    assert_same(*both(robot, 35, "float64", moves[3], duration=0.05))
    assert_same(*both(robot, 35, "float64", moves, duration=0.05))
    # no lane may fetch the references of a step that others have not reached: nothing is recorded in between
    assert_same(*both(robot, 35, "float64", moves, duration=0.05, every=4))


def test_noise_and_substeps(pretended):
    robot, _ = pretended
    plant = Plant(robot, sensors=Sensors(position_noise=1e-3, velocity_noise=1e-2))
    assert_same(*both(robot, 33, "float64", np.zeros(2), plant, duration=0.06, control_period=0.02, seed=4))


def test_no_steps_and_wrong_shapes(pretended):
    robot, _ = pretended
    got, wanted = both(robot, 3, "float64", np.zeros(2), duration=0.0)
    assert np.array_equal(got.final_q.array, wanted.final_q)
    controller = GravityPD(robot, Gains(1.0, 1.0))
    wide, there, elsewhere = (
        pretend(np.zeros((4, 3))),
        pretend(np.zeros((4, 2))),
        Pretended(np.zeros((4, 2)), 1),
    )
    with pytest.raises(lw.ShapeError, match=r"q: expected shape \(..., 2\), got \(4, 3\)"):
        simulate(robot, controller, np.zeros(2), q=wide, duration=0.01)
    with pytest.raises(DeviceError, match="q is Pretended's on cuda:0, qd is Pretended's on cuda:1"):
        simulate(robot, controller, np.zeros(2), q=there, qd=elsewhere, duration=0.01)
    with pytest.raises(ValueError, match="a Python function runs on the CPU"):
        simulate(robot, lambda t, q, qd, r: q, np.zeros(2), q=there, duration=0.01)


def test_conditions_of_parameters_are_computed_in_every_step_after_their_arguments():
    def step(x, p):
        nested = (p[0] > 0.0) & ((p[1] > 0.0) | (p[0] > p[1] * p[1]))
        other = (p[1] <= p[0]) | nested
        return {NEXT + "x": [where(nested, x[0] * p[0], x[0] + p[1]), where(other, x[1], -x[0])]}

    program = trace_rollout(step, Interface({"x": 2}, {"p": 2}, {}, {}), name="test", dtype="float64")
    nest, kept = rollout._registers_saved(Repetition(program))
    loop = next(each for each in nest.body if isinstance(each, For))
    computed = [node for each in loop.body if isinstance(each, Step) for node in each.body]
    assert all(isinstance(node, Node) for node in computed)
    places = {node.index: k for k, node in enumerate(computed)}
    assert sum(node.op in CONDITIONS for node in computed) > 4
    for node in computed:
        assert all(places.get(a.index, -1) < places[node.index] for a in node.args), node.op
    assert not set(kept) & places.keys()
