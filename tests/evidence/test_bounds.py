"""Bounds hold for every state that is tried, are close to what a search finds, and say what they cannot exclude."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linkwise as lw
from linkwise import evidence
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import Program, trace
from linkwise.embedded import Options
from linkwise.embedded.entries import entries
from linkwise.evidence import certified_bounds, intervals, precise, rounding, search, shared_energy, suprema
from linkwise.evidence import forms as forms_
from linkwise.evidence import series as series_
from linkwise.evidence.box import Box
from strategies import robots


def box(**bounds) -> Box:
    return Box({name: (np.atleast_1d(low), np.atleast_1d(high)) for name, (low, high) in bounds.items()})


@settings(max_examples=5, deadline=None)
@given(
    robot=robots(min_dof=1, max_dof=4), dtype=st.sampled_from(["float64", "float32"]), seed=st.integers(0, 99)
)
def test_no_state_is_outside_its_bounds(robot, dtype, seed):
    kernel = robot.kernel("inverse_dynamics", dtype=dtype)
    program = kernel.program(dtype)
    states_box = evidence.box_of(robot, program.inputs)
    analysed = forms_.analyse(program, states_box, keep=True)
    errors = rounding.errors(analysed)
    assert not analysed.problems
    states = states_box.draw(np.random.default_rng(seed), 2000)
    states = {name: x.astype(dtype) for name, x in states.items()}
    states = {
        n: np.clip(x, *(side.astype(dtype) for side in states_box.bounds[n])) for n, x in states.items()
    }
    computed = np.asarray(kernel(*states.values())).reshape(2000, -1).astype(float)
    exact = search.exact(program, states)[0]
    lower, upper = analysed.angle_bounds()
    slack = 1e-6 if dtype == "float32" else 0.0  # ends of the box were rounded to float32
    for k, node in enumerate(program.values[0]):
        low, high = analysed.interval(node)
        form = analysed.form(node)
        if node in analysed.series and node not in analysed.variables:
            found = suprema.supremum(form, lower, upper, variables=len(analysed.variables), tolerance=0.5)
            low, high = max(low, found.low), min(high, found.high)
        size = slack * max(1.0, abs(low), abs(high))
        assert low - errors.of(node) - size <= computed[:, k].min()
        assert computed[:, k].max() <= high + errors.of(node) + size
        assert np.abs(computed[:, k] - exact[:, k]).max() <= errors.of(node)


@pytest.mark.parametrize(
    ("name", "function", "dtype", "fma"),
    [
        ("two_link", "inverse_dynamics", "float32", True),
        ("puma560", "gravity_torques", "float64", False),
        ("ur10e", "gravity_torques", "float32", True),
        ("stanford", "gravity_torques", "float64", True),
        ("two_link", "computed_torque", "float32", True),
    ],
)
def test_bounds_are_close_to_what_is_found(name, function, dtype, fma):
    found = evidence.certify(lw.load(name), function, options=Options(dtype=dtype), fma=fma, seconds=2.0)
    assert found.holds
    for o in found.outputs:
        assert o.low <= o.lowest.value + o.error
        assert o.highest.value <= o.high + o.error
        assert o.worst.value <= o.error
        assert o.tightness <= 1.5
        assert o.error_tightness <= 20 or o.worst.value < 1e-12 * max(abs(o.low), abs(o.high), 1e-3)
    json.dumps(found.json())


@pytest.mark.parametrize("products", [1, 4])
def test_values_without_a_normal_form_bring_all_of_their_error(monkeypatch, products):
    """Products that are too long to be multiplied out become variables; their rounding alone is not their error."""
    monkeypatch.setattr(series_, "_PRODUCTS", products)
    robot = lw.load("two_link")
    given = {"q": (np.full(2, 0.6), np.full(2, 0.8))}
    for function, bounds in (
        ("inverse_dynamics", None),
        ("forward_dynamics", given),
        ("computed_torque", None),
    ):
        found = evidence.certify(robot, function, options=Options(dtype="float32"), given=bounds, seconds=0.3)
        assert all(o.worst.value <= o.error for o in found.outputs), function
        assert max(o.worst.value for o in found.outputs) > 0.0


def test_a_bound_that_a_state_contradicts_makes_no_certificate(monkeypatch):
    monkeypatch.setattr(rounding.Errors, "of", lambda self, node: 1e-12)
    with pytest.raises(evidence.EvidenceError, match="a fault of Linkwise"):
        evidence.certify(
            lw.load("two_link"), "gravity_torques", options=Options(dtype="float32"), seconds=0.3
        )


def test_many_threads_find_the_bounds_that_one_finds():
    """Bit for bit, so their products do not come from a library that uses other orders, or fails with threads."""
    robot = lw.load("puma560")
    program = robot.kernel("gravity_torques", dtype="float32").program("float32")
    analysed = forms_.analyse(program, evidence.box_of(robot, program.inputs), keep=True)
    region = suprema.Region(*analysed.angle_bounds())

    def bound(series):
        return suprema.largest(series, region, len(analysed.variables), 0.1)

    wanted = [analysed.series[node] for node in program.values[0] if node in analysed.series]
    alone = [bound(series) for series in wanted]
    assert max(alone) > 10.0
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(bound, wanted * 8)) == alone * 8


def test_a_division_by_zero_and_an_infinity_are_named():
    def spoiled(x):
        return {"y": [1.0 / (x[0] - 0.5), x[0] * 1e200 * x[0] * 1e200]}

    program = trace(spoiled, {"x": 1}, {"y": (2,)})
    inside = forms_.analyse(program, box(x=(0.0, 1.0)))
    assert any("division by a value between" in p.what for p in inside.problems)
    assert any("infinite" in p.what for p in inside.problems)
    beside = forms_.analyse(program, box(x=(0.6, 1.0)))
    assert not any("division" in p.what for p in beside.problems)
    with pytest.raises(evidence.BoxError, match="lower bounds below"):
        evidence.box_of(lw.load("two_link"), [("q", 2)], given={"q": (1.0, 0.0)})
    with pytest.raises(evidence.BoxError, match="no bounds are known"):
        evidence.box_of(lw.load("two_link"), [("wind", 2)])


@pytest.mark.parametrize("name", ["two_link", "puma560"])
def test_forward_dynamics_over_boxes_of_a_fifth_of_a_radian(name):
    robot = lw.load(name)
    program = robot.kernel("forward_dynamics").program("float64")
    limits = robot.limits
    middle = np.where(np.isfinite(limits.lower), limits.lower + 0.6 * (limits.upper - limits.lower), 0.7)
    states_box = evidence.box_of(robot, program.inputs, given={"q": (middle - 0.1, middle + 0.1)})
    analysed = forms_.analyse(program, states_box)
    assert not analysed.problems
    states = states_box.draw(np.random.default_rng(0), 3000)
    computed = robot.forward_dynamics(*(states[n] for n, _ in program.inputs)).reshape(3000, -1)
    lower, upper = analysed.angle_bounds()
    for k, node in enumerate(program.values[0]):
        low, high = analysed.interval(node)
        assert low <= computed[:, k].min()
        assert computed[:, k].max() <= high
        form = analysed.form(node)
        found = suprema.supremum(form, lower, upper, variables=len(analysed.variables), seconds=0.05)
        assert found.low <= computed[:, k].min() + 1e-9
        assert computed[:, k].max() <= found.high + 1e-9


def test_parts_of_a_box_that_are_not_shown_are_named():
    program = trace(lambda x: [1.0 / (x[0] * x[0] + x[1] - 0.3)], {"x": 2}, {"y": (1,)})
    whole = Box({"x": (np.zeros(2), np.ones(2))})
    found = evidence.divide(program, whole, inputs=("x",), most=60)
    assert found.shown
    assert found.left
    assert all("division" in problem.what for _, problem in found.left)
    points = np.random.default_rng(0).random((500, 2))
    values = points[:, 0] ** 2 + points[:, 1] - 0.3

    def inside(part):
        low, high = part.bounds["x"]
        return ((low <= points) & (points <= high)).all(axis=1)

    covered = sum(inside(part).astype(int) for part in [*found.shown, *(part for part, _ in found.left)])
    assert (covered == 1).all()
    for part in found.shown:
        some = values[inside(part)]
        assert (some > 0).all() or (some < 0).all()
    assert not evidence.divide(program, Box({"x": (np.ones(2), np.ones(2) * 2)}), inputs=("x",)).left


@settings(max_examples=40, deadline=None)
@given(low=st.floats(0.01, 10), width=st.floats(0, 5), sign=st.sampled_from([-1.0, 1.0]))
def test_a_quotient_lies_in_its_form(low, width, sign):
    program = trace(lambda x: [3.0 / x[0]], {"x": 1}, {"y": (1,)})
    ends = sorted((sign * low, sign * (low + width)))
    analysed = forms_.analyse(program, box(x=tuple(ends)))
    form = analysed.form(program.values[0][0])
    for x in np.linspace(*ends, 9):
        radius = (ends[1] - ends[0]) / 2
        epsilon = 0.0 if radius == 0 else (x - sum(ends) / 2) / radius
        values = np.zeros(len(analysed.variables))
        place = [k for k, node in enumerate(analysed.variables) if node.op == "input"]
        values[place] = epsilon
        rest = [k for k in range(len(values)) if k not in place]
        around = []
        for side in (-1.0, 1.0):
            values[rest] = side
            around.append(float(form(np.zeros(1), values)))
        slack = 1e-12 * abs(3.0 / x)
        assert min(around) - slack <= 3.0 / x <= max(around) + slack


def test_loops_are_written_out_with_the_bits_of_the_kernel_and_bounded():
    robot = lw.planar_chain(40)
    kernel = robot.kernel("gravity_torques")
    entry = next(e for e in entries(robot, ("gravity_torques",), Options()) if e.name == "gravity_torques")
    assert not isinstance(entry.program, Program)
    program = certified_bounds.straight_line(entry.program)
    states_box = evidence.box_of(robot, program.inputs, given={"q": (-0.1, 0.1)})
    states = states_box.draw(np.random.default_rng(0), 200)
    (first,) = interpret.run(program, states["q"][0])
    assert np.array_equal(first, np.asarray(kernel(states["q"][0])))
    analysed = forms_.analyse(program, states_box, keep=True)
    errors = rounding.errors(analysed)
    assert not analysed.problems
    computed = np.asarray(kernel(states["q"]))
    exact = search.exact(program, states)[0]
    for k, node in enumerate(program.values[0]):
        low, high = analysed.interval(node)
        assert low - errors.of(node) <= computed[:, k].min()
        assert computed[:, k].max() <= high + errors.of(node)
        assert np.abs(computed[:, k] - exact[:, k]).max() <= errors.of(node) < 1e-6


def test_loops_of_unknown_length_are_refused_with_a_reason():
    with pytest.raises(evidence.EvidenceError, match="length of a loop"):
        evidence.certify(lw.load("two_link"), "closed_loop")


@settings(max_examples=30, deadline=None)
@given(
    ends=st.tuples(*[st.floats(-10, 10)] * 4),
    operation=st.sampled_from(["add", "subtract", "multiply", "divide"]),
)
def test_interval_operations_agree_with_mpmath(ends, operation):
    (a, b), (c, d) = sorted(ends[:2]), sorted(ends[2:])
    mp = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "divide": "__truediv__"}[operation]
    if operation == "divide" and c <= 0 <= d:
        return
    low, high = getattr(intervals, operation)((a, b), (c, d))
    expected = getattr(mpmath.iv.mpf([a, b]), mp)(mpmath.iv.mpf([c, d]))
    assert low <= float(expected.a)
    assert float(expected.b) <= high
    assert high - low <= float(expected.delta) * (1 + 1e-9) + 1e-300 + 8 * math.ulp(max(abs(low), abs(high)))


def test_ranges_hold_on_random_sub_boxes_with_mpmath_intervals():
    """The enclosure of a small sub-box by another interval arithmetic lies in the bounds of the whole box."""
    robot = lw.load("puma560")
    program = robot.kernel("gravity_torques").program("float64")
    states_box = evidence.box_of(robot, program.inputs)
    analysed = forms_.analyse(program, states_box)
    for middle in states_box.draw(np.random.default_rng(0), 20, corners=0.1)["q"]:
        known = precise.over(program, box(q=(middle - 1e-6, middle + 1e-6)), analysed.patterns)
        for node, found in known.items():
            low, high = analysed.interval(node)
            slack = 1e-4 * (abs(low) + abs(high))  # sub-boxes at an end of the box reach beyond it
            assert low - slack <= float(found.a)
            assert float(found.b) <= high + slack


def test_every_payload_of_a_mass_in_a_ball_is_in_the_box():
    robot = lw.load("two_link")
    inputs = [("q", 2), ("payload", 10)]
    states_box = evidence.box_of(robot, inputs, payload=(2.0, 0.3))
    assert not states_box.assumed
    low, high = states_box.bounds["payload"]
    rng = np.random.default_rng(0)
    for _ in range(200):
        places = rng.normal(size=(3, 3))
        places *= 0.3 * rng.choice([1.0, rng.random()]) / np.linalg.norm(places, axis=1)[:, None]
        masses = rng.dirichlet(np.ones(3) * rng.choice([0.1, 1.0])) * 2.0
        second = np.einsum("k,ki,kj->ij", masses, places, places)
        moments = np.trace(second) * np.eye(3) - second
        numbers = [masses.sum(), *(masses @ places), *moments[np.triu_indices(3)]]
        assert (low - 1e-12 <= numbers).all()
        assert (numbers <= high + 1e-12).all()
    assert "payload" in evidence.box_of(robot, inputs).assumed[-1]
    with pytest.raises(evidence.BoxError, match="payload"):
        evidence.box_of(robot, inputs, payload=(-1.0, 0.3))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("fused", [True, False])
def test_the_error_of_sines_is_within_its_bound(dtype, fused):
    program = trace(lambda x: [x[0].sin(), x[0].cos()], {"x": 1}, {"y": (2,)}, dtype=dtype, fused=fused)
    analysed = forms_.analyse(program, box(x=(-7.0, 7.0)), keep=True)
    errors = rounding.errors(analysed)
    rng = np.random.default_rng(3)
    near = np.concatenate(
        [rng.uniform(-7, 7, 150), np.arange(-4, 5) * math.pi / 2, rng.uniform(-1e-3, 1e-3, 20)]
    )
    for x in near.astype(dtype):
        (y,) = interpret.run(program, [float(x)])
        with mpmath.workdps(40):
            for value, function, node in zip(y, (mpmath.sin, mpmath.cos), program.values[0], strict=True):
                assert abs(mpmath.mpf(float(value)) - function(mpmath.mpf(float(x)))) <= errors.of(node)
    most = (3 if fused else 8) * rounding.UNITS[dtype]
    assert all(errors.of(node) <= most for node in program.values[0])


@settings(max_examples=4, deadline=None)
@given(robot=robots(min_dof=1, max_dof=4), seed=st.integers(0, 99))
def test_energies_of_pairs_of_links_bound_the_smallest_inertia(robot, seed):
    bound = shared_energy.least_inertia(robot)
    q = np.random.default_rng(seed).uniform(-np.pi, np.pi, (500, robot.nq))
    limits = robot.limits
    q = np.clip(q, limits.lower, limits.upper)
    assert bound <= np.linalg.eigvalsh(robot.mass_matrix(q)).min() * (1 + 1e-9)


def test_the_smallest_inertia_of_arms_is_bounded_closely():
    for name, most in (("ur10e", 1.1), ("stanford", 1.05), ("iiwa14", 1.5), ("panda", 2.0)):
        robot = lw.load(name)
        limits = robot.limits
        q = limits.lower + (limits.upper - limits.lower) * np.random.default_rng(0).random((2000, robot.dof))
        found = np.linalg.eigvalsh(robot.mass_matrix(q)).min()
        bound = shared_energy.least_inertia(robot)
        assert 0 < bound <= found <= most * bound


def test_constants_of_the_equation_of_motion():
    robot = lw.load("puma560")
    found = evidence.constants(robot, points=3000)
    q = robot.limits.lower + (robot.limits.upper - robot.limits.lower) * np.random.default_rng(0).random(
        (2000, 6)
    )
    values = np.linalg.eigvalsh(robot.mass_matrix(q))
    assert found.least_inertia <= values.min()
    assert values.max() <= found.most_inertia
    assert found.definite
    assert found.most_inertia <= 1.5 * values.max()
    assert np.linalg.norm(robot.gravity_torques(q), axis=-1).max() <= found.gravity
    x, y = np.random.default_rng(1).normal(size=(2, 2000, 6))
    products = np.einsum("sij,sj->si", robot.coriolis_matrix(q, x), y)
    sizes = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
    assert (np.linalg.norm(products, axis=-1) <= found.coriolis * sizes).all()


def test_joints_without_a_range_have_one_turn_and_say_where_that_is_not_all():
    """A lower end alone is kept; after one turn a slide, a spring or a follower at half the speed is elsewhere."""
    plain = lw.planar_chain(3)
    half = plain.with_constraints([lw.Coupling("joint3", "joint2", ratio=0.5)])
    sprung = plain.with_parameters({"joint1.stiffness": 3.0})
    for robot, names in ((plain, ""), (half, "joint2"), (sprung, "joint1")):
        box = evidence.box_of(robot, [("q", robot.dof)])
        assert box.bounds["q"][0].tolist() == [-np.pi] * robot.dof
        assert [words for words in box.assumed if "no range" in words] == (
            [f"no range in the model (q of {names}): 2π rad or m"] if names else []
        )
    joints = [
        replace(joint, limits=lw.Limits(lower=5.0)) if joint.name == "joint2" else joint
        for joint in plain.joints
    ]
    lower, upper = evidence.box_of(
        lw.Robot("above", plain.links, joints, frames=plain.frames), [("q", 3)]
    ).bounds["q"]
    assert (lower[1], upper[1]) == (5.0, 5.0 + 2 * np.pi)
