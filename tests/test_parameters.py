"""Base parameters, run-time parameters and users' own functions."""

import copy
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import TraceError, UnknownNameError
from linkwise.functions.table import mechanism_of
from linkwise.model.generators import record_robot


def states(n, count=6, seed=0):
    return np.random.default_rng(seed).normal(size=(3, count, n))


# -- base parameters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("puma560", 36), ("stanford", 33), ("rx90", 36)])
def test_numbers_of_base_parameters(name, count):
    robot = lw.Robot.from_model(record_robot(name))
    base = robot.base_parameters(links_only=True)
    assert len(base) == count
    assert base.gap[0] > 0.1
    assert base.gap[1] < 1e-12
    regrouped = mechanism_of(robot, base_parameters=True)
    left = sum(
        1
        for link in regrouped
        for value in (link.inertia.mass, *link.inertia.first_moment, *link.inertia.second_moment)
        if value != 0.0
    )
    # the rules leave seven parameters of a revolute link and four of a prismatic one; six of the first link's seven
    # meet nothing but zeros because it only turns about a fixed vertical axis
    assert left - 6 == count


def test_izaguirres_78_become_52():
    robot = lw.load("puma260")
    full = robot.with_parameters(np.random.default_rng(1).uniform(0.1, 1.0, len(robot.parameter_labels)))
    assert len(full.parameter_labels) == 78
    rotors = [label for label in full.parameter_labels if label.endswith("rotor_inertia")]
    base = full.base_parameters(first=rotors)
    assert len(base) == 52
    assert base.labels[:6] == tuple(rotors)
    q, qd, qdd = states(6)
    predicted = full.regressor(q, qd, qdd)[..., base.columns] @ base.values
    np.testing.assert_allclose(predicted, full.inverse_dynamics(q, qd, qdd), rtol=1e-11, atol=1e-11)
    assert base.expression(0).startswith("joint1.rotor_inertia + ")
    with pytest.raises(UnknownNameError, match="did you mean"):
        full.base_parameters(first=["joint1.rotor_inertja"])


@pytest.mark.parametrize("seed", range(6))
def test_regrouping_keeps_torques_matrices_and_accelerations(seed):
    robot = lw.random_robot(seed, 5, tree=bool(seed % 2), joints="RP")
    q, qd, x = states(5)
    for name, inputs in (
        ("inverse_dynamics", (q, qd, x)),
        ("forward_dynamics", (q, qd, x)),
        ("mass_matrix", (q,)),
        ("inverse_mass_matrix", (q,)),
        ("gravity_torques", (q,)),
        ("velocity_torques", (q, qd)),
        ("coriolis_matrix", (q, qd)),
    ):
        plain = robot.kernel(name, base_parameters=False)
        regrouped = robot.kernel(name, base_parameters=True)
        expected = plain(*inputs)
        np.testing.assert_allclose(
            regrouped(*inputs), expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max()
        )
        assert regrouped.operations.total <= plain.operations.total


def test_regrouping_is_refused_where_it_would_change_the_result():
    with pytest.raises(ValueError, match="potential_energy"):
        lw.load("two_link").kernel("potential_energy", base_parameters=True)


# -- parameters as inputs ---------------------------------------------------------------------------------------------


def test_payload_as_an_input():
    robot = lw.load("puma260")
    q, qd, x = states(6)
    loads = [(2.0, (0.1, 0.02, 0.3), (0.1, 0.2, 0.3)), (0.5, (0.0, 0.1, 0.0), (0.01, 0.02, 0.02))]
    for name in ("inverse_dynamics", "forward_dynamics"):
        kernel = robot.kernel(name, inputs=("payload",))
        assert kernel.operations.prelude.total > 0
        for mass, com, inertia in loads:
            ten = lw.Inertia.from_com(mass, com, inertia).parameters
            expected = getattr(robot.with_payload(mass, com, inertia), name)(q, qd, x)
            np.testing.assert_allclose(kernel(q, qd, x, ten), expected, rtol=1e-10, atol=1e-10)
        tens = np.array([lw.Inertia.from_com(*load).parameters for load in loads])[:, None, :]
        both = kernel(q, qd, x, tens)
        assert both.shape == (2, 6, 6)
        np.testing.assert_array_equal(both[1], kernel(q, qd, x, tens[1, 0]))


@pytest.mark.parametrize("algorithm", ["conjugate_gradient", "preconditioned_conjugate_gradient"])
def test_payload_as_an_input_of_an_iteration(algorithm):
    robot = lw.load("stanford")
    q, qd, tau = states(6)
    load = (2.0, (0.1, 0.02, 0.3), (0.1, 0.2, 0.3))
    kernel = robot.kernel("forward_dynamics", algorithm=algorithm, inputs="payload")
    qdd, error, _ = kernel(q, qd, tau, lw.Inertia.from_com(*load).parameters)
    np.testing.assert_allclose(
        qdd, robot.with_payload(*load).forward_dynamics(q, qd, tau), rtol=1e-9, atol=1e-9
    )
    assert error.max() <= 1e-9


def test_names_of_parameters_may_be_one_or_repeated():
    robot = lw.load("two_link")
    one = robot.kernel("gravity_torques", inputs="link2.m")
    assert one.inputs == robot.kernel("gravity_torques", inputs=("link2.m", "link2.m")).inputs
    assert one([0.0, 0.0], [0.0]).shape == (2,)


def test_what_a_kernel_with_parameters_is():
    kernel = lw.load("two_link").kernel("gravity_torques", inputs=("link2.hx",))
    assert "link2" in str(kernel.sympy())
    assert "aligned" in kernel.latex()
    assert ("link2.hx", 0) in kernel.explain("tau" if kernel.outputs[0][0] == "tau" else None).inputs
    by_q, by_h = kernel.vjp()([0.1, 0.2], [0.3], [1.0, 1.0])
    np.testing.assert_allclose(by_q, kernel.jacobian("q")([0.1, 0.2], [0.3]).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(by_h, kernel.jacobian("link2.hx")([0.1, 0.2], [0.3]).sum(axis=0), rtol=1e-12)


def test_source_of_derivatives_by_a_labelled_parameter():
    """The label has a dot, which no language allows in names."""
    by_h = lw.load("two_link").kernel("gravity_torques", inputs=("link2.hx",)).jacobian("link2.hx")
    assert "void gravity_torques_by_link2_hx(" in by_h.source("c")
    names: dict = {}
    exec(by_h.source("python"), names)
    q, h = np.array([0.3, -0.7]), np.array([0.2])
    np.testing.assert_allclose(names["gravity_torques_by_link2_hx"](q, h), by_h(q, h), rtol=1e-12)


def test_labelled_parameters_as_inputs():
    robot = lw.load("panda")
    q, qd, x = states(7)
    labels = (
        "panda_link3.m",
        "panda_link5.Ixy",
        "panda_joint2.viscous_friction",
        "panda_joint4.rotor_inertia",
    )
    kernel = robot.kernel("inverse_dynamics", inputs=labels)
    values = [4.0, 0.01, 0.7, 0.3]
    expected = robot.with_parameters(dict(zip(labels, values, strict=True))).inverse_dynamics(q, qd, x)
    np.testing.assert_allclose(kernel(q, qd, x, *[[v] for v in values]), expected, rtol=1e-11, atol=1e-11)
    column = list(robot.parameter_labels).index("panda_link3.m")
    by_mass = kernel.jacobian("panda_link3.m")(q, qd, x, *[[v] for v in values])
    np.testing.assert_allclose(
        by_mass[..., 0], robot.regressor(q, qd, x)[..., column], rtol=1e-10, atol=1e-10
    )
    with pytest.raises(UnknownNameError, match="did you mean"):
        robot.kernel("inverse_dynamics", inputs=("panda_link3.mm",))


def test_parametric_source_has_both_functions():
    text = lw.load("two_link").kernel("inverse_dynamics", inputs=("payload",)).source("c")
    assert "inverse_dynamics_prelude" in text
    assert text.index("inverse_dynamics_prelude") < text.rindex("inverse_dynamics(")


# -- the user's own functions -----------------------------------------------------------------------------------------


def test_own_function_with_a_robot_inside():
    robot = lw.load("puma560")

    @lw.kernel(q=6, qd=6)
    def energy(q, qd):
        """Total energy."""
        return robot.kinetic_energy(q, qd) + robot.potential_energy(q)

    q, qd, _ = states(6)
    np.testing.assert_allclose(
        energy(q, qd), robot.kinetic_energy(q, qd) + robot.potential_energy(q), rtol=1e-12
    )
    gradient = energy.jacobian("q")(q, 0 * qd)
    np.testing.assert_allclose(gradient, robot.gravity_torques(q), rtol=1e-10, atol=1e-10)
    assert "void energy" in energy.source("c")
    assert energy.__doc__ == "Total energy."


def test_own_function_with_several_outputs_and_numpy():
    @lw.kernel(x=3, y=3)
    def several(x, y):
        d = x - y
        return {
            "distance": lw.sqrt(d @ d),
            "clipped": lw.minimum(lw.maximum(x, -1.0), 1.0),
            "wave": np.sin(x) * np.cos(y) + lw.atan2(x, y),
            "matrix": np.outer(x, y),
        }

    x, y, _ = states(3)
    distance, clipped, wave, matrix = several(x, y)
    np.testing.assert_allclose(distance, np.linalg.norm(x - y, axis=-1), rtol=1e-14)
    np.testing.assert_array_equal(clipped, np.clip(x, -1.0, 1.0))
    np.testing.assert_allclose(wave, np.sin(x) * np.cos(y) + np.arctan2(x, y), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(matrix, x[:, :, None] * y[:, None, :], rtol=1e-15)


def test_powers():
    exponents = (0, 1, 2, 3, 7, -1, -2, 0.5, 1.5, -0.5)
    powers = lw.kernel(x=1)(lambda x: [x[0] ** k for k in exponents])
    for x in (0.3, 2.0, 5.0):
        np.testing.assert_allclose(powers([x]), [x**k for k in exponents], rtol=1e-14)
    np.testing.assert_allclose(
        powers.jacobian("x")([2.0])[:, 0], [k * 2.0 ** (k - 1) for k in exponents], rtol=1e-14
    )
    assert lw.kernel(x=1)(lambda x: x[0] ** 7).operations.multiplications == 4


def test_a_condition_is_no_output():
    with pytest.raises(TraceError, match=r"return lw\.where\(condition, 1\.0, 0\.0\)"):
        lw.kernel(x=2)(lambda x: x[0] > x[1])


@lw.kernel(x=2)
def product(x):
    return x[0] * x[1]


def test_kernels_travel_between_processes():
    robot = lw.load("two_link")
    x, load = states(2)[:, 0], np.arange(10.0)
    plain = robot.kernel("inverse_dynamics", algorithm="gibbs_appell")
    parametric = robot.kernel("inverse_dynamics", inputs="payload")
    for kernel, args in (
        (plain, x),
        (plain.jacobian("q"), x),
        (parametric, (*x, load)),
        (parametric.jacobian("payload"), (*x, load)),
        (product, x[:1]),
    ):
        again = pickle.loads(pickle.dumps(kernel))
        np.testing.assert_array_equal(again(*args), kernel(*args))
        assert copy.deepcopy(kernel) is kernel
    with pytest.raises(TypeError, match="cannot be pickled; make it again"):
        pickle.dumps(lw.kernel(x=1)(lambda x: x))


def test_what_cannot_be_traced_names_the_line():
    def branches(q):
        if q[0] > 0:
            return q
        return -q

    with pytest.raises(TraceError, match=r"test_parameters\.py:\d+: if q\[0\] > 0:"):
        lw.kernel(q=2)(branches)
    with pytest.raises(TraceError, match="cannot be traced"):
        lw.kernel(q=4)(lambda q: np.linalg.inv(q.reshape(2, 2)))
    with pytest.raises(TraceError, match=r"lw\.sin"):
        lw.kernel(q=1)(lambda q: __import__("math").sin(q[0]))
    with pytest.raises(ValueError, match="q: expected"):
        lw.kernel(q=0)


# -- formulas ---------------------------------------------------------------------------------------------------------


def test_formulas_of_a_small_arm():
    sympy = pytest.importorskip("sympy")
    robot = lw.load("two_link")
    q1, q2 = sympy.symbols("q1 q2", real=True)
    M = robot.kernel("mass_matrix").sympy()
    W = robot.kernel("inverse_mass_matrix", algorithm="compound_link").sympy()
    assert sympy.simplify(M * W - sympy.eye(2)) == sympy.zeros(2, 2)
    at = {q1: 0.3, q2: -0.8}
    np.testing.assert_allclose(
        np.array(M.subs(at).evalf(), dtype=float), robot.mass_matrix([0.3, -0.8]), rtol=1e-14
    )
    assert "c_{2}" in robot.kernel("mass_matrix").latex()


def test_angle_sums_are_written_as_in_papers():
    pytest.importorskip("sympy")
    text = lw.planar_chain(2).kernel("gravity_torques").latex()
    assert "c_{12}" in text or "s_{12}" in text


def test_python_source_runs_on_its_own():
    robot = lw.load("stanford")
    kernel = robot.kernel("inverse_dynamics")
    names: dict = {}
    exec(kernel.source("python"), names)
    q, qd, x = states(6)
    expected = kernel(q, qd, x)
    np.testing.assert_allclose(names["inverse_dynamics"](q, qd, x), expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(
        names["inverse_dynamics"](q[0], qd[0], x[0]), expected[0], rtol=1e-11, atol=1e-12
    )
    with pytest.raises(UnknownNameError, match="python"):
        kernel.source("fortran")


def test_explain_names_inputs_parameters_and_cost():
    kernel = lw.load("two_link").kernel("inverse_dynamics")
    whole, outer = kernel.explain(), kernel.explain("tau", 1)
    assert outer.operations.total < whole.operations.total == kernel.operations.total
    assert ("qdd", 1) in outer.inputs
    assert all(label.startswith(("link2.", "joint2.")) for label in outer.parameters)
    assert "link1.m" not in outer.parameters
    assert any(label.startswith("link1.") for label in whole.parameters)
    assert "parameters: link2." in str(outer)
