"""What is compiled as straight-line code: estimates of operations follow the shape of the robot."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.robot import kernels

ROBOTS = {
    "panda": lambda: lw.load("panda"),
    "chain": lambda: lw.general_chain(4),
    "tree": lambda: lw.random_robot(3, 9, tree=True),  # with many short branches, where much vanishes
}
NAMES = (
    *(
        "inverse_dynamics",
        "forward_dynamics",
        "mass_matrix",
        "inverse_mass_matrix",
        "coriolis_matrix",
        "regressor",
    ),
    *("inverse_dynamics_derivatives", "forward_dynamics_derivatives"),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("robot", ROBOTS)
def test_estimates_are_within_a_small_factor(robot, name):
    model = ROBOTS[robot]()
    counted = model.kernel(name).operations.total
    assert counted / 1.5 < FUNCTIONS[name].size(model)
    if robot != "tree":
        assert FUNCTIONS[name].size(model) < 8 * counted


def test_a_tree_costs_less_than_a_chain_of_as_many_joints():
    from linkwise.functions.sizes import extent

    assert extent(lw.general_chain(12)) == (12, 144, 144)
    links, pairs, dense = extent(ROBOTS["tree"]())
    assert links == 9
    assert pairs < 81
    assert dense <= 81


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"])
def test_derivatives_of_long_chains_are_compiled_as_loops(name):
    chain = lw.general_chain(25)
    setting = Setting(chain)
    function = FUNCTIONS[name]
    algorithm = kernels.chosen_algorithm(function, setting, None)
    assert not kernels.is_straight(function, setting, algorithm)
    assert kernels.compiles(function, setting, algorithm)
    q = np.full(25, 0.1)
    for ours, wanted in zip(getattr(chain, name)(q, q, q), chain.kernel(name)(q, q, q), strict=True):
        assert ours.tobytes() == wanted.tobytes()
