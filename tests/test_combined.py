"""Several functions as one kernel: the numbers of each, for less than all of them apart, on every target."""

import ctypes
import pickle
import subprocess

import numpy as np
import pytest

import linkwise as lw

NAMES = ["mass_matrix", "bias_torques", "jacobian"]


@pytest.fixture(scope="module")
def panda():
    return lw.load("panda")


def apart(robot, names, **given):
    """What the functions give one by one, in the order of the kernel's outputs."""
    found = []
    for name in names:
        own = robot.kernel(name)
        result = own(*(given[key] for key, _ in own.inputs))
        found += result if isinstance(result, tuple) else [result]
    return found


@pytest.mark.parametrize(
    "names", [NAMES, ["inverse_dynamics_derivatives", "pose"], ["forward_dynamics", "kinetic_energy"]]
)
def test_the_numbers_are_those_of_each_function(panda, names):
    kernel = panda.kernel(names)
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=(9, size)) for name, size in kernel.inputs}
    results = kernel(*given.values())
    for ours, wanted in zip(results, apart(panda, names, **given), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-11, atol=1e-11)


def test_inputs_once_and_outputs_named_after_their_functions(panda):
    kernel = panda.kernel(NAMES)
    assert kernel.inputs == (("q", 7), ("qd", 7))
    assert kernel.outputs == (("mass_matrix", (7, 7)), ("bias_torques", (7,)), ("jacobian", (6, 7)))
    both = panda.kernel(["forward_dynamics_derivatives", "gravity_torques"])
    assert [name for name, _ in both.outputs][-2:] == [
        "forward_dynamics_derivatives_dqdd_dtau",
        "gravity_torques",
    ]


@pytest.mark.parametrize(("names", "share"), [(NAMES, 1.0), (["pose", "jacobian", "velocity"], 0.7)])
def test_what_they_share_is_computed_once(panda, names, share):
    """Mass matrix, bias and Jacobian have sines and cosines in common; pose, Jacobian and velocity nearly all."""
    alone = [panda.kernel(name).operations for name in names]
    together = panda.kernel(names).operations
    assert together.total <= share * sum(each.total for each in alone)
    assert together.trigonometric == 2 * panda.dof < sum(each.trigonometric for each in alone)


def test_options(panda):
    smooth = panda.kernel(["inverse_dynamics", "gravity_torques"], friction=False, dtype="float32")
    q = np.full((3, 7), 0.3, np.float32)
    tau, gravity = smooth(q, q, q)
    assert tau.dtype == gravity.dtype == np.float32
    np.testing.assert_allclose(tau, panda.inverse_dynamics(q, q, q, friction=False), rtol=1e-4, atol=1e-4)


def test_it_travels(panda):
    kernel = pickle.loads(pickle.dumps(panda.kernel(NAMES)))
    q = np.full(7, 0.3)
    for ours, wanted in zip(kernel(q, q), panda.kernel(NAMES)(q, q), strict=True):
        assert ours.tobytes() == wanted.tobytes()


def test_as_c(panda, tmp_path):
    kernel = panda.kernel(["mass_matrix", "bias_torques"])
    (tmp_path / "both.c").write_text(kernel.source("c"))
    library = tmp_path / "both.so"
    build = [
        "cc",
        "-O1",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(tmp_path / "both.c"),
        "-lm",
    ]
    subprocess.run(build, check=True)
    q, qd = np.random.default_rng(1).normal(size=(2, 7))
    M, tau = np.empty((7, 7)), np.empty(7)
    function = getattr(ctypes.CDLL(str(library)), kernel.name)
    function(*(a.ctypes.data_as(ctypes.c_void_p) for a in (q, qd, M, tau)))
    wanted = kernel(q, qd)
    assert M.tobytes() == wanted[0].tobytes()
    assert tau.tobytes() == wanted[1].tobytes()


def test_what_is_refused(panda):
    with pytest.raises(ValueError, match="expected the name of a function, got none"):
        panda.kernel([])
    with pytest.raises(lw.UnknownNameError, match="mas_matrix"):
        panda.kernel(["mas_matrix", "pose"])
    with pytest.raises(ValueError, match="take dtype, friction and frame only"):
        panda.kernel(NAMES, algorithm="newton_euler")
    with pytest.raises(lw.LinkwiseError, match="too many links to share a kernel"):
        lw.planar_chain(80).kernel(["inverse_dynamics", "gravity_torques"])
