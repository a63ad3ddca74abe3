"""Robots and kernels inside CasADi, and the C that CasADi and acados read."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

ca = pytest.importorskip("casadi")

ULPS = 1e-12  # CasADi does not fuse multiplications and additions
compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def states(robot, seed=0):
    rng = np.random.default_rng(seed)
    return [robot.random(rng), *(rng.standard_normal(robot.dof) for _ in range(2))]


def same(found, wanted) -> bool:
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    found, wanted = [x.full() for x in found], [x.full() if hasattr(x, "full") else x for x in wanted]
    return all(
        np.allclose(
            a,
            np.asarray(b).reshape(a.shape),
            rtol=ULPS,
            atol=ULPS * (1 + np.abs(b).max()),
        )
        for a, b in zip(found, wanted, strict=True)
    )


FUNCTIONS = {
    "inverse_dynamics": 3,
    "forward_dynamics": 3,
    "mass_matrix": 1,
    "pose": 1,
    "jacobian": 1,
    "kinetic_energy": 2,
    "forward_dynamics_derivatives": 3,
    "regressor": 3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_numbers_and_names_of_kernels(panda, name):
    kernel = panda.kernel(name)
    found = kernel.casadi()
    given = states(panda)[: FUNCTIONS[name]]
    assert same(found(*given), getattr(panda, name)(*given))
    assert found.name_in() == [key for key, _ in kernel.inputs]
    assert found.name_out() == [key for key, _ in kernel.outputs]
    assert found.is_a("SXFunction")


def test_forward_dynamics_is_small(panda):
    assert panda.kernel("forward_dynamics").casadi().n_nodes() < 1500


def test_derivatives_of_any_order_are_exact():
    robot = lw.load("two_link")
    kernel = robot.kernel("forward_dynamics")
    function = kernel.casadi()
    q, qd, tau = states(robot)
    x = ca.SX.sym("x", 2)
    jacobian = ca.Function("J", [x], [ca.jacobian(function(x, qd, tau), x)])
    assert same(jacobian(q), kernel.jacobian("q")(q, qd, tau))
    hessian, _ = ca.hessian(ca.sum1(function(x, qd, tau)), x)
    second = kernel.jacobian("q").jacobian("q")(q, qd, tau).sum(axis=0)
    assert same(ca.Function("H", [x], [hessian])(q), second)


def test_run_time_inputs_several_functions_and_options(panda):
    loaded = panda.kernel("inverse_dynamics", inputs=("payload",))
    function = loaded.casadi("with_load")
    payload = np.array([1.5, 0.0, 0.02, 0.1, 0.02, 0, 0, 0.02, 0, 0.01])
    given = (*states(panda), payload)
    assert function.name() == "with_load"
    assert function.name_in() == ["q", "qd", "qdd", "payload"]
    assert same(function(*given), loaded(*given))
    label = f"{panda.joint_names[0]}.viscous_friction"
    rubbing = panda.kernel("inverse_dynamics", inputs=(label,)).casadi()
    assert rubbing.name_in()[-1] == "panda_joint1_viscous_friction"
    several = panda.kernel(["gravity_torques", "mass_matrix"]).casadi(options={"cse": True})
    assert several.name_out() == ["gravity_torques", "mass_matrix"]
    assert same(several(given[0]), (panda.gravity_torques(given[0]), panda.mass_matrix(given[0])))
    held = panda.kernel("inverse_dynamics", wrench=True).casadi()
    wrench = np.arange(6.0)
    assert same(held(*given[:3], wrench), panda.inverse_dynamics(*given[:3], wrench=wrench))


def test_other_robots_and_functions_of_users(panda):
    floating = panda.lock(dict.fromkeys(panda.joint_names[2:], 0.3)).with_base("floating")
    given = states(floating)
    assert same(floating.kernel("inverse_dynamics").casadi()(*given), floating.inverse_dynamics(*given))
    assert same(floating.kernel("integrate").casadi()(*given[:2]), floating.integrate(*given[:2]))
    rubbing = lw.load("puma560")  # Coulomb friction: sign
    given = states(rubbing)
    assert same(rubbing.kernel("inverse_dynamics").casadi()(*given), rubbing.inverse_dynamics(*given))

    @lw.kernel(q=2)
    def switched(q):
        return lw.where(q[0] < q[1], lw.sqrt(q[1]), lw.atan2(q[0], q[1]))

    for q in ([0.1, 0.5], [0.5, 0.1]):
        assert same(switched.casadi()(q), switched(np.array(q)))


def test_every_operation_of_a_formula():
    from linkwise import scalar

    @lw.kernel(x=2)
    def some(x):
        a, b = x
        kinked = [
            abs(a),
            scalar.sign(b),
            scalar.rint(a),
            scalar.rint(-b),
            scalar.minimum(a, b),
            scalar.atan2(a, b),
        ]
        return {"kinked": kinked, "chosen": [scalar.where((a < b) | ~(b > 0.0), a, np.inf)]}

    function = some.casadi()
    for x in [*np.random.default_rng(0).normal(size=(20, 2)), *([k / 2, 1 - k / 2] for k in range(-5, 6))]:
        for got, wanted in zip(function(x), some(np.array(x)), strict=True):
            assert np.allclose(got.full()[:, 0], wanted, rtol=ULPS), x


def test_what_cannot_be_a_formula_says_so(panda):
    iterated = panda.kernel("forward_dynamics", algorithm="conjugate_gradient")
    with pytest.raises(lw.LinkwiseError, match="loop"):
        iterated.casadi()
    with pytest.raises(lw.LinkwiseError, match="too many links"):
        lw.planar_chain(200).kernel("inverse_dynamics").casadi()


def built(text, folder, name):
    path = folder / f"{name}.c"
    path.write_text(text)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(path), "-o", str(path.with_suffix(".so")), "-lm"], check=True)
    return str(path.with_suffix(".so"))


@compiler
@pytest.mark.parametrize("name", ["forward_dynamics", "mass_matrix", "pose"])
def test_external_functions_with_jacobian_and_sparsity(panda, tmp_path, name):
    from linkwise.cli import main

    file = tmp_path / "robot.c"
    assert main(["generate", "panda", name, "--target", "casadi", "--name", "robot", "--out", str(file)]) == 0
    external = ca.external("robot", built(file.read_text(), tmp_path, "robot"))
    given = states(panda)[: FUNCTIONS[name]]
    assert np.array_equal(external(*given).full().squeeze(), getattr(panda, name)(*given))  # the same bits
    own = panda.kernel(name).casadi()
    assert (external.name_in(), external.n_out()) == (own.name_in(), own.n_out())
    theirs, mine = own.jacobian(), external.jacobian()
    assert same(mine(*given, 0), theirs(*given, 0))
    for k in range(mine.n_out()):
        assert mine.sparsity_out(k) == theirs.sparsity_out(k)
    x = ca.MX.sym("x", 7)  # inside an expression, with an input left out of the graph
    slope = ca.Function("slope", [x], [ca.jacobian(ca.sum1(ca.vec(external(x, *given[1:]))), x)])
    x = ca.SX.sym("x", 7)
    exact = ca.Function("slope", [x], [ca.jacobian(ca.sum1(ca.vec(own(x, *given[1:]))), x)])
    assert same(slope(given[0]), exact(given[0]))


@compiler
@pytest.mark.parametrize("name", ["inverse_dynamics", "mass_matrix", "pose"])
def test_external_functions_have_second_derivatives(panda, tmp_path, name):
    """The Hessian of a weighted sum of the outputs, as solvers take it; also of an arm with prismatic joints."""
    from linkwise.cli import main

    for robot in (panda, lw.load("stanford")):
        given = states(robot)[: FUNCTIONS[name]]
        label, file = f"{robot.name}_{name}", tmp_path / f"{robot.name}.c"
        command = [
            "generate",
            robot.name,
            name,
            "--target",
            "casadi",
            "--second",
            "--name",
            label,
            "--out",
            str(file),
        ]
        assert main(command) == 0
        external = ca.external(label, built(file.read_text(), tmp_path, label))
        own = robot.kernel(name).casadi()
        sizes = [np.size(part) for part in given]
        results = []
        for function, kind in ((external, ca.MX), (own, ca.SX)):
            x = kind.sym("x", sum(sizes))
            parts = ca.vertsplit(x, [0, *np.cumsum(sizes).tolist()])
            out = ca.vec(function(*parts))
            weights = np.random.default_rng(5).normal(size=out.numel())
            hessian, gradient = ca.hessian(ca.dot(ca.DM(weights), out), x)
            results.append(ca.Function("second", [x], [hessian, gradient])(np.concatenate(given)))
        for mine, theirs in zip(*results, strict=True):
            assert same(mine, theirs)


def test_what_cannot_be_generated_says_so(capsys):
    from linkwise.cli import main

    def refused(*arguments):
        assert main(["generate", *arguments]) == 2
        return capsys.readouterr().err

    assert "give --target alone" in refused("panda", "pose", "--casadi", "--target", "cuda")
    assert "--second is for --target casadi" in refused("panda", "pose", "--second")
    assert "--step is for --target acados" in refused("panda", "pose", "--step", "0.1")
    with pytest.raises(lw.LinkwiseError, match="expected forward_dynamics"):
        lw.load("panda").kernel("pose").source("acados")
    with pytest.raises(lw.LinkwiseError, match="one coordinate each"):
        lw.load("two_link", base="floating").kernel("forward_dynamics").source("acados")
    with pytest.raises(lw.LinkwiseError, match="float64"):
        lw.load("two_link").kernel("pose", dtype="float32").source("casadi")
    with pytest.raises(lw.LinkwiseError, match="step"):
        lw.load("two_link").kernel("forward_dynamics").source("acados", step=-1.0)


@compiler
def test_the_example_solves_one_motion_in_three_ways(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "50_casadi_point_to_point.py"
    ran = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("iterations") == 3
