"""A search finds states with large errors, also where an output is limited in almost the whole box."""

import numpy as np

import linkwise as lw
from linkwise import evidence
from linkwise.embedded import Options
from linkwise.embedded.entries import entries
from linkwise.evidence import certified_bounds, patterns, search
from linkwise.evidence.box import Box


def entry_of(robot, function, dtype="float32"):
    return next(e for e in entries(robot, (function,), Options(dtype=dtype)) if e.name == function)


def test_errors_are_below_what_roundings_could_add_up_to():
    robot = lw.load("puma560")
    entry = entry_of(robot, "inverse_dynamics")
    program, box = certified_bounds.program_and_box(robot, entry)
    states = {n: x.astype(np.float32) for n, x in box.draw(np.random.default_rng(0), 20000).items()}
    turns = patterns.find(program)
    exact = search.exact(program, states, turns)[0]
    errors = np.abs(np.asarray(entry.kernel(*states.values())).astype(float) - exact)
    for k, node in enumerate(program.values[0]):
        possible = search.possible_error(program, states, turns, node)
        assert (errors[:, k] <= 1.5 * possible + 1e-9).all()
        assert errors[:, k].max() > possible.max() / 20


def test_a_limited_torque_is_searched_between_its_limits():
    """Random states have a torque beyond its limit nearly everywhere, where the error is 0."""
    robot, limits = lw.load("two_link"), {"torque_limits": (0.05, 0.05)}
    made = evidence.certify(
        robot, "computed_torque", options=Options(dtype="float32"), given=limits, seconds=0.1
    )
    entry = entry_of(robot, "computed_torque")
    drawn = made.box.draw(np.random.default_rng(3), 20000)
    states = {n: x.astype(np.float32) for n, x in drawn.items()}
    program = certified_bounds.straight_line(entry.program)
    results = entry.kernel(*(states[n] for n, _ in program.inputs))
    computed = np.concatenate([np.asarray(x).reshape(20000, -1) for x in results], axis=1)
    exact = np.concatenate(search.exact(program, states), axis=1)
    random = np.abs(computed.astype(float) - exact).max(axis=0)
    for k, output in enumerate(made.outputs[:2]):
        assert output.worst.value > 2 * random[k]
        assert output.worst.value <= output.error


def test_states_are_moved_to_the_level_that_is_wanted():
    box = Box({"x": (np.array([-1.0, -1.0, 2.0]), np.array([1.0, 3.0, 2.0]))})
    free = search.Coordinates(box)
    rng = np.random.default_rng(0)
    matrix = free.matrix(box.draw(rng, 100, corners=0.0))
    assert matrix.shape == (100, 2)

    def level(states):
        return 3 * states["x"][:, 0] - states["x"][:, 1] + states["x"][:, 2]

    moved = free.levelled(level, matrix, np.full(100, 2.0), rng.integers(0, 2, 100))
    there = np.abs(level(free.states(moved)) - 2.0) < 1e-9
    ended = ((moved == free.low) | (moved == free.high)).any(axis=1)
    assert (there | ended).all()
    assert there.mean() > 0.5
    assert ((moved != matrix).sum(axis=1) <= 1).all()
