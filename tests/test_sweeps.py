"""Loops over links: the same results as written-out code, for chains and trees of any joints."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.sweeps import SweptProgram
from linkwise.errors import LinkwiseError
from linkwise.functions import arrays
from linkwise.functions.table import FUNCTIONS, Setting
from linkwise.robot import kernels

SWEPT = [(name, algorithm) for name, function in FUNCTIONS.items() for algorithm in function.swept]


@pytest.fixture(autouse=True)
def _everything_is_long(monkeypatch):
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 0)


def states(n, count, seed=0):
    rng = np.random.default_rng(seed)
    return dict(zip(("q", "qd", "qdd"), rng.uniform(-1, 1, (3, count, n)), strict=True)) | {
        "tau": rng.uniform(-1, 1, (count, n))
    }


@pytest.mark.parametrize(("name", "algorithm"), SWEPT)
@pytest.mark.parametrize(
    ("joints", "tree", "options"),
    [("R", False, {}), ("RP", False, {"rotor": True}), ("RP", True, {"friction": True}), ("RP", True, None)],
    ids=["chain", "mixed chain", "tree", "springs"],
)
def test_against_the_array_path(name, algorithm, joints, tree, options):
    robot = lw.random_robot(7, 9, tree=tree, joints=joints, **(options or {}))
    if options is None:
        springs = {f"{joint}.stiffness": 10.0 + k for k, joint in enumerate(robot.joint_names[::2])}
        robot = robot.with_parameters({**springs, f"{robot.joint_names[0]}.spring_reference": 0.3})
    function = FUNCTIONS[name]
    given = {key: value for key, value in states(9, 11).items() if key in function.inputs}
    kernel = kernels.kernel(function, Setting(robot), algorithm)
    assert isinstance(kernel.program(), SweptProgram)
    found = kernel(*given.values())
    (expected,) = arrays.run_on_arrays(function, Setting(robot), algorithm, given).values()
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())
    for k in (0, 5, 10):
        one = kernel(*(value[k] for value in given.values()))
        np.testing.assert_array_equal(one, found[k])


def test_same_bits_for_any_batch_and_threads():
    robot = lw.random_robot(1, 12, tree=True, joints="RP")
    q, qd, qdd, _ = states(12, 50).values()
    whole = robot.inverse_dynamics(q, qd, qdd, threads=1)
    np.testing.assert_array_equal(robot.inverse_dynamics(q, qd, qdd, threads=3), whole)
    for count in (1, 2, 7, 8, 9, 17):
        np.testing.assert_array_equal(
            robot.inverse_dynamics(q[:count], qd[:count], qdd[:count]), whole[:count]
        )
    single = [x.astype(np.float32) for x in (q, qd, qdd)]
    np.testing.assert_allclose(
        robot.inverse_dynamics(*single), whole, rtol=2e-3, atol=2e-4 * np.abs(whole).max()
    )


def test_a_nan_stays_in_its_state():
    robot = lw.general_chain(12, seed=1)
    q, qd, tau = (states(12, 16)[key] for key in ("q", "qd", "tau"))
    clean = robot.forward_dynamics(q, qd, tau)
    q[3, 5] = np.nan
    dirty = robot.forward_dynamics(q, qd, tau)
    assert np.isnan(dirty[3]).all()
    np.testing.assert_array_equal(np.delete(dirty, 3, axis=0), np.delete(clean, 3, axis=0))


def test_a_long_chain_comes_back_from_its_torques():
    robot = lw.general_chain(400, seed=3)
    given = states(400, 9)
    q, qd, qdd = given["q"], given["qd"], given["qdd"]
    tau = robot.inverse_dynamics(q, qd, qdd)
    found = robot.forward_dynamics(q, qd, tau)
    again = robot.inverse_dynamics(q, qd, found)
    bias = robot.bias_torques(q, qd)
    residual = np.linalg.norm(again - tau, axis=-1) / (
        np.linalg.norm(tau, axis=-1) + np.linalg.norm(bias, axis=-1)
    )
    assert residual.max() < 1e-11


def test_a_wrench_goes_the_array_path():
    robot = lw.general_chain(12, seed=1)
    q, qd, qdd, _ = states(12, 3).values()
    wrench = np.array([0.1, -0.2, 0.3, 1.0, 2.0, 3.0])
    difference = robot.inverse_dynamics(q, qd, qdd, wrench=wrench) - robot.inverse_dynamics(q, qd, qdd)
    pose, jacobian = robot.pose(q), robot.jacobian(q)
    in_base = np.concatenate([pose[:, :3, :3] @ wrench[:3], pose[:, :3, :3] @ wrench[3:]], axis=-1)
    np.testing.assert_allclose(difference, -np.einsum("bij,bi->bj", jacobian, in_base), rtol=1e-9, atol=1e-9)


def test_loops_over_links_have_no_formulas():
    kernel = lw.general_chain(12, seed=1).kernel("inverse_dynamics")
    with pytest.raises(LinkwiseError, match="too many links"):
        kernel.source("python")
    with pytest.raises(LinkwiseError, match="too many links"):
        kernel.latex()
    assert "for (long row" in kernel.source("c")
