"""What always counts (docs/conventions.md): rotor inertia, constant torques and springs, with and without friction."""

import numpy as np
import pytest

import linkwise as lw

ROBOTS = [*lw.robots(), "tree 1", "tree 2"]


def named(name: str) -> lw.Robot:
    return lw.random_robot(int(name[-1]), 6, tree=True) if name.startswith("tree") else lw.load(name)


@pytest.mark.parametrize("name", ROBOTS)
def test_rotors_offsets_and_springs_always_count(name):
    plain = named(name)
    plain = plain.with_parameters(
        {label: 0.0 for label in plain.parameter_labels if label.endswith(("rotor_inertia", "torque_offset"))}
    )
    n, generator = plain.dof, np.random.default_rng(3)
    if len(plain.moving_joints) != n:
        pytest.skip("followers share rotors with their leaders")
    terms = {key: generator.uniform(0.2, 2.0, n) for key in ("rotor_inertia", "torque_offset", "stiffness")}
    changed = plain.with_parameters(
        {
            f"{joint}.{key}": float(values[k])
            for key, values in terms.items()
            for k, joint in enumerate(plain.joint_names)
        }
    )
    q, qd, qdd = generator.normal(size=(3, n))
    added = terms["rotor_inertia"] * qdd + terms["torque_offset"] + terms["stiffness"] * q
    more = changed.mass_matrix(q) - plain.mass_matrix(q)
    np.testing.assert_allclose(more, np.diag(terms["rotor_inertia"]), atol=1e-9)
    for friction in (True, False):
        before, after = (robot.inverse_dynamics(q, qd, qdd, friction=friction) for robot in (plain, changed))
        np.testing.assert_allclose(after - before, added, atol=1e-9 * (1 + np.abs(before).max()))
        np.testing.assert_allclose(changed.forward_dynamics(q, qd, after, friction=friction), qdd, atol=1e-6)
