"""Loops over joints: the same numbers as the algorithms, for trees of all joints, bases and followers."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from c_functions import call_c
from linkwise.algorithms import gravity_compensation
from linkwise.compiler.trace.procedure import ProcedureNest
from linkwise.functions import arrays
from linkwise.functions.looped import LOOPED
from linkwise.functions.table import Setting, function_named
from linkwise.joint_laws import world_rotor
from linkwise.robot import kernels


def _floating() -> lw.Robot:
    """An arm on a heavy base that moves."""
    arm = lw.random_robot(1, 3, tree=True)
    heavy = lw.Inertia.from_com(5.0, (0.1, 0.0, 0.2), (0.1, 0.2, 0.3))
    links = [replace(link, inertia=heavy) if link.name == arm.base else link for link in arm.links]
    base = lw.Joint("float", "floating", "world", arm.base)
    return lw.Robot("walker", [lw.Link("world"), *links], [base, *arm.joints])


def robots() -> list[lw.Robot]:
    tree = lw.random_robot(3, 6, tree=True)
    springs = {f"{tree.joint_names[1]}.stiffness": 3.0, f"{tree.joint_names[2]}.rotor_inertia": 0.4}
    names = tree.joint_names
    chain = lw.random_robot(2, 4)
    return [
        _floating(),
        tree.with_parameters(springs),
        tree.with_constraints([lw.Coupling(names[3], names[1], 1.5), lw.Coupling(names[5], names[1], -0.7)]),
        chain.with_constraints([lw.Coupling(chain.joint_names[3], chain.joint_names[1], 0.6)]),
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_over_joints_are_the_algorithms(dtype, monkeypatch):
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 1)
    monkeypatch.setattr(kernels, "MOST_WRITTEN_OUT", 1)
    monkeypatch.setattr(kernels, "is_looped", lambda *_: True)
    rng = np.random.default_rng(1)
    tolerance = 1e-11 if dtype == "float64" else 1e-3
    for robot in robots() if dtype == "float64" else robots()[:1]:
        for name in LOOPED:
            row = function_named(name)
            if name == "christoffel" and robot.nq != robot.dof:
                continue
            for base_parameters in (False,) if robot.nq != robot.dof else (True,):
                setting = Setting(robot, base_parameters=base_parameters)
                kernel = kernels.kernel(row, setting, row.looped[0])
                assert isinstance(kernel.program(dtype), ProcedureNest)
                q, v = robot.random(rng, 3), rng.normal(size=(2, 3, robot.dof))
                given = dict(zip(row.inputs, (q, *v), strict=False))
                reference = arrays.run_on_arrays(row, setting, row.looped[0], given).values()
                results = kernel(*(np.asarray(x, dtype) for x in given.values()))
                for ours, theirs in zip(
                    results if isinstance(results, tuple) else (results,), reference, strict=True
                ):
                    scale = np.abs(theirs).max()
                    np.testing.assert_allclose(
                        ours, theirs, rtol=0, atol=tolerance * scale, err_msg=f"{robot.name} {name}"
                    )


def test_loops_of_terms_that_few_robots_have(monkeypatch):
    """Rotors along the axes of the world of a floating base, and gravity compensation in the regressor."""
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 1)
    monkeypatch.setattr(kernels, "MOST_WRITTEN_OUT", 1)
    monkeypatch.setattr(kernels, "is_looped", lambda *_: True)
    walker = _floating()
    rotor = {f"{walker.joint_names[0]}.{world_rotor.NAME}": 0.7}
    tree = lw.random_robot(4, 4, tree=True)
    law = gravity_compensation.LAW.parameters[0].name
    compensated = tree.with_parameters({f"{name}.{law}": 0.3 for name in tree.joint_names[:2]})
    rng = np.random.default_rng(2)
    for robot, name in ((walker.with_parameters(rotor), "coriolis_matrix"), (compensated, "regressor")):
        row = function_named(name)
        setting = Setting(robot)
        kernel = kernels.kernel(row, setting, row.looped[0])
        assert isinstance(kernel.program("float64"), ProcedureNest)
        given = dict(zip(row.inputs, (robot.random(rng), *rng.normal(size=(2, robot.dof))), strict=False))
        (wanted,) = arrays.run_on_arrays(row, setting, row.looped[0], given).values()
        np.testing.assert_allclose(kernel(*given.values()), wanted, atol=1e-11 * np.abs(wanted).max())


def test_generated_c_has_the_same_bits(tmp_path, monkeypatch):
    """Outputs are written in place, in the order of the function; all other memory is one array."""
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 1)
    monkeypatch.setattr(kernels, "MOST_WRITTEN_OUT", 1)
    monkeypatch.setattr(kernels, "is_looped", lambda *_: True)
    robot, rng = lw.random_robot(3, 6, tree=True), np.random.default_rng(3)
    given = [robot.random(rng), *rng.normal(size=(2, 6))]
    for name in ("coefficients", "forward_dynamics_derivatives", "regressor"):
        row = function_named(name)
        kernel = kernels.kernel(row, Setting(robot), row.looped[0])
        kinds = [array.kind for array in kernel.program().arrays]
        assert kinds == ["input"] * len(row.inputs) + ["output"] * len(kernel.outputs) + ["scratch"]
        values = kernel(*given[: len(row.inputs)])
        folder = tmp_path / name
        folder.mkdir()
        in_c = call_c(kernel, folder, *given[: len(row.inputs)])
        for mine, other in zip(in_c, values if isinstance(values, tuple) else (values,), strict=True):
            assert mine.tobytes() == other.tobytes(), name


def test_a_singular_robot_is_undefined_there_too(monkeypatch):
    massless = [lw.Link(link.name) for link in lw.planar_chain(3).links]
    arm = lw.Robot("massless", massless, lw.planar_chain(3).joints)
    monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 1)
    monkeypatch.setattr(kernels, "MOST_WRITTEN_OUT", 1)
    monkeypatch.setattr(kernels, "is_looped", lambda *_: True)
    kernel = kernels.kernel(function_named("inverse_mass_matrix"), Setting(arm), "compound_link")
    assert np.isnan(kernel(np.ones(3))).any()


def test_long_chains_are_compiled_and_judged_by_identities(monkeypatch):
    """So many joints that every matrix was computed without compiled code."""
    size = 64
    monkeypatch.setattr(kernels, "MOST_WRITTEN_OUT", 60_000)
    robot = lw.general_chain(size)
    rng = np.random.default_rng(0)
    q, qd = robot.random(rng), np.zeros(size)
    for name in LOOPED:
        function, setting, algorithm = kernels._settled(name, Setting(robot), None)
        assert kernels.form(function, setting, algorithm) == "joints", name
    M, inverse = robot.mass_matrix(q), robot.inverse_mass_matrix(q)
    error = np.abs(M @ inverse - np.eye(size)).max()
    assert error < 1e-12 * np.linalg.cond(M)
    rates, speeding = rng.normal(size=(2, size))
    c = robot.velocity_torques(q, rates)
    np.testing.assert_allclose(robot.coriolis_matrix(q, rates) @ rates, c, atol=1e-12 * np.abs(c).max())
    tau = robot.inverse_dynamics(q, rates, speeding)
    product = robot.regressor(q, rates, speeding) @ np.array(robot.parameters)
    np.testing.assert_allclose(product, tau, atol=1e-12 * np.abs(tau).max())
    column = robot.inverse_dynamics(q, qd, np.eye(size)[7]) - robot.inverse_dynamics(q, qd, qd)
    np.testing.assert_allclose(M[:, 7], column, atol=1e-9 * np.abs(column).max())
    kernel = robot.kernel("mass_matrix")
    for refused in (kernel.latex, kernel.sympy, kernel.explain, lambda: kernel.source("python")):
        with pytest.raises(lw.LinkwiseError, match=r"too many links to be written out: .* \(robot.lock\)"):
            refused()
    with pytest.raises(lw.LinkwiseError, match="too many links to be differentiated"):
        kernel.vjp().program()
    assert "for (" in kernel.source("c")
    assert kernel.operations.total < 100 * size**2
