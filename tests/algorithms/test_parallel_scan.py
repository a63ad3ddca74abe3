"""Forward dynamics by parallel scans: as exact as the filter link by link, and only where it applies."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.core import scan_order
from linkwise.functions.table import mechanism_of


def chain(dof, joints="RP", seed=1):
    return lw.random_robot(seed, dof, joints=joints, rotor=True, friction=True)


def states(*shape, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.normal(size=shape) for _ in range(3)]


def residual(robot, q, qd, tau, qdd, **options):
    again = robot.inverse_dynamics(q, qd, qdd, **options)
    size = np.linalg.norm(tau, axis=-1) + np.linalg.norm(robot.bias_torques(q, qd), axis=-1)
    return (np.linalg.norm(again - tau, axis=-1) / size).max()


@pytest.mark.parametrize("count", [*range(1, 10), 31, 32, 33])
@pytest.mark.parametrize("inward", [False, True])
def test_a_scan_takes_all_before_in_order(count, inward):
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"[:count]
    got = mechanism_of(chain(count)).scan(str.__add__, str.__add__, "<", list(letters), inward)
    assert got == ["<" + (letters[:k:-1] if inward else letters[:k]) for k in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 31, 32, 33, 1024])
def test_depth_and_work_of_a_scan(count):
    levels = [*scan_order.joins(count), *scan_order.applications(count)]
    assert len(levels) <= 2 * max(1, np.ceil(np.log2(count)))
    assert sum(map(len, levels)) < 2 * count
    for level in levels:  # independent: no pair reads what another one writes
        written = {right for _, right in level}
        assert len(written) == len(level)
        assert not written & {left for left, _ in level}


@pytest.mark.parametrize(
    ("dof", "joints"), [(1, "R"), (1, "P"), (2, "RP"), (3, "P"), (5, "RP"), (8, "R"), (64, "RP")]
)
def test_as_the_filter(dof, joints):
    robot = chain(dof, joints)
    q, qd, tau = states(6, dof)
    got = robot.forward_dynamics(q, qd, tau, algorithm="parallel_scan")
    assert residual(robot, q, qd, tau, got) < 1e-13
    np.testing.assert_allclose(got, robot.forward_dynamics(q, qd, tau), rtol=1e-8, atol=1e-8)


def test_256_links():
    robot = chain(256)
    q, qd, qdd = states(2, 256)
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert residual(robot, q, qd, tau, robot.forward_dynamics(q, qd, tau, algorithm="parallel_scan")) < 1e-11


def test_options():
    """Wrenches, friction, broadcasting, precision, single states, a place to write to."""
    robot = chain(6)
    q, qd, tau = states(4, 3, 6)
    wrench = np.array([0.3, -0.2, 0.1, 4.0, 5.0, -6.0])
    for options in ({"wrench": wrench}, {"friction": False}):
        wanted = robot.forward_dynamics(q, qd[0], tau[:, :1], **options)
        got = robot.forward_dynamics(q, qd[0], tau[:, :1], algorithm="parallel_scan", **options)
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    one = robot.forward_dynamics(q[0, 0], qd[0, 0], tau[0, 0], algorithm="parallel_scan")
    np.testing.assert_allclose(one, robot.forward_dynamics(q[0, 0], qd[0, 0], tau[0, 0]), rtol=1e-9)
    out = np.empty((4, 3, 6), "float32")
    single = [a.astype("float32") for a in (q, qd, tau)]
    assert robot.forward_dynamics(*single, algorithm="parallel_scan", out=out) is out
    np.testing.assert_allclose(out, robot.forward_dynamics(q, qd, tau), rtol=1e-3, atol=1e-3)


def test_a_nan_stays_in_its_state():
    robot = chain(7)
    q, qd, tau = states(5, 7)
    clean = robot.forward_dynamics(q, qd, tau, algorithm="parallel_scan")
    q[2, 3] = np.nan
    dirty = robot.forward_dynamics(q, qd, tau, algorithm="parallel_scan")
    assert np.isnan(dirty[2]).all()
    np.testing.assert_array_equal(np.delete(dirty, 2, axis=0), np.delete(clean, 2, axis=0))


def test_who_can_be_scanned():
    assert "parallel_scan" in chain(3).algorithms("forward_dynamics")
    assert chain(3).algorithms("forward_dynamics")[0] == "kalman"
    bare, tree = lw.random_robot(1, 3), lw.random_robot(1, 5, tree=True, rotor=True)
    for robot, reason in ((bare, "joint1 has none"), (tree, "the links branch at")):
        assert "parallel_scan" not in robot.algorithms("forward_dynamics")
        with pytest.raises(lw.ModelError, match=f"positive rotor inertia at every joint: {reason}"):
            robot.forward_dynamics(*np.zeros((3, robot.dof)), algorithm="parallel_scan")


def test_kernel():
    """Compiled as loops over pairs of links, with the bits of its own precision; not for formulas or derivatives."""
    robot = chain(20)
    kernel = robot.kernel("forward_dynamics", algorithm="parallel_scan")
    q, qd, tau = states(9, 20)
    np.testing.assert_array_equal(
        kernel(q, qd, tau), robot.forward_dynamics(q, qd, tau, algorithm="parallel_scan")
    )
    plain = mechanism_of(robot)
    lanes = [list(np.moveaxis(a, -1, 0)) for a in (q, qd, tau)]
    from linkwise.algorithms import parallel_scan

    free = robot.kernel("forward_dynamics", algorithm="parallel_scan", friction=False)
    wanted = np.stack(parallel_scan.forward_dynamics(plain, *lanes), axis=-1)
    np.testing.assert_allclose(free(q, qd, tau), wanted, rtol=1e-9, atol=1e-9)
    serial = robot.kernel("forward_dynamics")
    assert kernel.operations.multiplications > 3 * serial.operations.multiplications
    assert "for (" in kernel.source("c")
    with pytest.raises(lw.LinkwiseError, match="too many links"):
        kernel.source("python")


def test_foreign_arrays():
    torch = pytest.importorskip("torch")
    robot = chain(3)
    given = [torch.tensor(a) for a in states(4, 3)]
    got = robot.forward_dynamics(*given, algorithm="parallel_scan")
    assert isinstance(got, torch.Tensor)
    np.testing.assert_allclose(got.numpy(), robot.forward_dynamics(*(a.numpy() for a in given)), rtol=1e-9)
    with pytest.raises(TypeError, match="computed on NumPy arrays only"):
        robot.forward_dynamics(*given, algorithm="parallel_scan", wrench=torch.zeros(6))


def test_massless_links():
    """A link without inertia behind a rotor: nothing to factor, nothing to divide by."""
    robot = chain(6, "R")
    empty = {
        label: 0.0 for label in robot.parameter_labels if label.startswith("link3.") and "rotor" not in label
    }
    light = robot.with_parameters(empty) if empty else robot
    q, qd, tau = states(4, 6)
    got = light.forward_dynamics(q, qd, tau, algorithm="parallel_scan")
    np.testing.assert_allclose(got, light.forward_dynamics(q, qd, tau), rtol=1e-9, atol=1e-9)
