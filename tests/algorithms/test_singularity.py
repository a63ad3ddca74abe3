"""What counts as singular: light and far-off links are computed, links without inertia about their axis are named."""

from __future__ import annotations

import numpy as np
import pytest
from precise import Precise

import linkwise as lw
from linkwise import Inertia, Joint, Link, Robot, Transform
from linkwise.algorithms import kalman, newton_euler, singularity
from linkwise.functions.table import mechanism_of
from strategies import body as random_body
from strategies import direction, pose, states_of

FORWARD = ("kalman", "compound_link", "conjugate_gradient", "preconditioned_conjugate_gradient")
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
HERE = (0.0, 0.0, 0.0)
LUMP = (1.0, (0.1, 0.02, 0.1), (0.01, 0.01, 0.01))
THICK = (1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))


def chain(*bodies) -> Robot:
    """A chain of (origin, rpy, axis, (mass, com, inertia about it), kind)."""
    links, joints = [Link("base")], []
    for k, (xyz, rpy, axis, body, *kind) in enumerate(bodies):
        links.append(Link(f"link{k}", Inertia.from_com(*body)))
        origin = Transform.from_rpy(xyz, rpy)
        joints.append(
            Joint(f"joint{k}", (kind or ["revolute"])[0], links[k].name, f"link{k}", origin, axis=axis)
        )
    return Robot("hard", links, joints)


# name: (robot, largest relative error that its round-off excuses)
HARD = {
    "centre of mass 10 m away on the axis": (
        chain((HERE, HERE, Z, (1.0, (0, 0, 10.0), (0.1, 0.1, 1e-13)))),
        1e-14,
    ),
    "the same behind another joint": (
        chain((HERE, HERE, Y, THICK), ((0, 0, 1), HERE, Z, (1.0, (0, 0, 10.0), (0.1, 0.1, 1e-13)))),
        1e-14,
    ),
    "the same inside the arm": (
        chain(
            (HERE, HERE, Z, THICK),
            ((0.1, 0.2, 0.3), HERE, Y, (1.0, (0, 1e3, 0), (0.01, 1e-13, 0.01))),
            ((0.1, 0.2, 0.3), HERE, X, (1e-3, (0, 0.1, 0), (1e-5, 1e-5, 1e-5))),
        ),
        1e-6,
    ),
    "1e6 m along the axis": (chain((HERE, HERE, X, THICK), ((1e6, 0, 0), HERE, X, LUMP)), 1e-13),
    "twice 1e6 m along the axis": (
        chain((HERE, HERE, X, THICK), ((1e6, 0, 0), HERE, X, LUMP), ((1e6, 0, 0), HERE, X, LUMP)),
        1e-12,
    ),
    "1e6 m and another axis": (chain((HERE, HERE, X, THICK), ((1e6, 0, 0), HERE, Y, LUMP)), 1e-12),
    "1e6 m in all directions": (
        chain(
            (HERE, (0.1, 0.2, 0.3), Z, THICK),
            ((1e6, 2e5, 3e5), (1.0, 2.0, 3.0), X, LUMP),
            ((1e6, 1e6, 1e6), (0.3, 0.2, 0.1), Y, LUMP),
        ),
        1e-5,
    ),
    "a wrist of nanograms": (
        chain(
            (HERE, HERE, Z, (30.0, (0.1, 0, 0), (1.0, 1.0, 1.0))),
            ((1, 0, 0), HERE, Y, (1e-9, (0.01, 0, 0.01), (1e-13, 1e-13, 1e-13))),
            ((0, 0.1, 0), HERE, X, (1e-12, (0, 0, 0.001), (1e-18, 1e-18, 1e-18))),
        ),
        1e-11,
    ),
    "a slide of 10 pg": (
        chain(
            (HERE, HERE, Z, THICK),
            ((1, 0, 0), HERE, Y, (1e-14, (0.01, 0, 0.01), (1e-13, 1e-13, 1e-13)), "prismatic"),
        ),
        1e-13,
    ),
}


def precise_accelerations(robot: Robot, q, qd, tau) -> np.ndarray:
    """q̈ of the prepared robot with 60 digits, by the filter."""
    links = mechanism_of(robot)
    state = [[Precise(v) for v in x] for x in (q, qd, tau)]
    return np.array([float(x) for x in kalman.forward_dynamics(links, *state)])


@pytest.mark.parametrize("name", HARD)
def test_light_and_far_links_are_computed(name):
    robot, excused = HARD[name]
    s = states_of(robot, 1)
    links = mechanism_of(robot)
    exact = [[Precise(v) for v in x] for x in (s.q, s.qd, s.qdd)]
    tau = np.array([float(t) for t in newton_euler.inverse_dynamics(links, *exact)])
    wanted = precise_accelerations(robot, s.q, s.qd, tau)
    scale = np.abs(wanted).max()
    for algorithm in FORWARD[:2]:
        found = robot.forward_dynamics(s.q, s.qd, tau, algorithm=algorithm)
        assert np.abs(found - wanted).max() <= excused * scale, algorithm
    for algorithm in FORWARD[2:]:
        try:
            found = robot.forward_dynamics(s.q, s.qd, tau, algorithm=algorithm)
        except lw.ConvergenceError:  # said, not wrong
            continue
        assert np.abs(found - wanted).max() <= max(excused, 1e-9) * scale, algorithm
    assert np.isfinite(robot.inverse_mass_matrix(s.q)).all()


# the others are so sensitive that the rounding of a rotation in the URDF file shows
@pytest.mark.parametrize("name", [name for name in HARD if "inside" not in name and "directions" not in name])
def test_pinocchio_computes_them_too(name, tmp_path):
    pin = pytest.importorskip("pinocchio")
    robot, excused = HARD[name]
    path = tmp_path / "hard.urdf"
    lw.save(robot, path)
    model = pin.buildModelFromXML(path.read_text())
    s = states_of(robot, 1)
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    theirs = pin.aba(model, model.createData(), s.q, s.qd, tau)
    ours = robot.forward_dynamics(s.q, s.qd, tau)
    assert np.abs(ours - theirs).max() <= max(100 * excused, 1e-12) * np.abs(theirs).max()


SINGULAR = {
    "a point on a skew axis": chain(
        (HERE, HERE, Y, THICK),
        ((1, 0.2, 0), (0.3, 0.2, 0.1), (3**-0.5,) * 3, (1.0, (3.3, 3.3, 3.3), (0.0, 0.0, 0.0))),
    ),
    "two joints on a skew axis": chain(
        ((0.3, 0.2, 0.1), (0.3, 0.2, 0.1), Z, (0.0, HERE, (0.0, 0.0, 0.0))),
        ((0, 0, 0.3), (0, 0, 0.7), Z, LUMP),
    ),
    "a massless slide": chain(
        (HERE, HERE, Z, THICK), (X, HERE, Y, (0.0, HERE, (0.0, 0.0, 0.0)), "prismatic")
    ),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_what_has_no_inertia_is_named(name):
    robot = SINGULAR[name]
    for seed in range(5):
        s = states_of(robot, seed)
        for algorithm in FORWARD:
            with pytest.raises(lw.SingularError, match="moves no inertia"):
                robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=algorithm)


def test_a_far_inertia_that_round_off_hides_is_not_computed_wrongly():
    """Two joints on one axis with 1e-16 of the inertia between them: D is positive, but no digit of it is left."""
    thin = (0.0, HERE, (1e-17, 1e-17, 1e-17))
    robot = chain(((0.3, 0.2, 0.1), (0.3, 0.2, 0.1), Z, thin), ((0, 0, 0.3), (0, 0, 0.7), Z, THICK))
    s = states_of(robot, 1)
    for algorithm in FORWARD:
        with pytest.raises(lw.SingularError, match="joint 'joint0' moves no inertia"):
            robot.forward_dynamics(s.q, s.qd, s.tau, algorithm=algorithm)


# -- the bounds -------------------------------------------------------------------------------------------------------


def bounds(robot: Robot) -> list[float]:
    links = mechanism_of(robot, slide=False)
    sizes = singularity.largest_inertias(links)
    return [size[0] if link.turns else size[1] for link, size in zip(links, sizes, strict=True)]


def test_bound_of_a_plane_chain_is_its_inertia_stretched_out():
    robot = chain(
        (HERE, HERE, Z, (2.0, (0.5, 0, 0), (0.1, 0.1, 0.1))),
        ((1.0, 0, 0), HERE, Z, (3.0, (0.25, 0, 0), (0.2, 0.2, 0.2))),
    )
    second = 0.2 + 3.0 * 0.25**2
    first = 0.1 + 2.0 * 0.5**2 + 0.2 + 3.0 * 1.25**2
    assert bounds(robot) == pytest.approx([first, second], rel=1e-12)
    straight = robot.mass_matrix(np.zeros(2))
    assert straight[0, 0] == pytest.approx(first)


def test_bound_where_axes_are_not_parallel():
    """The whole second moment of the outer links about their origin may turn about the inner axis."""
    body = (3.0, (0.25, 0, 0), (0.2, 0.3, 0.4))
    robot = chain((HERE, HERE, Z, (2.0, HERE, (0.1, 0.1, 0.1))), ((1.0, 0, 7.0), HERE, Y, body))
    trace = 0.2 + 0.3 + 0.4 + 2 * 3.0 * 0.25**2
    across = 1.0 * (2.0 * 3.0 * 0.25 + 1.0 * 3.0)  # the lever along the axis (7 m) does not count
    assert bounds(robot)[0] == pytest.approx(0.1 + trace + across, rel=1e-12)
    outer = chain(
        (HERE, HERE, X, (2.0, HERE, (0.1, 0.1, 0.1))),
        (HERE, HERE, Z, (2.0, HERE, (0.1, 0.1, 0.1))),
        ((1.0, 0, 7.0), HERE, Y, body),
    )
    reach = 50.0**0.5  # two joints further in, it does
    second = 3 * 0.1 + trace + 2.0 * reach * (2.0 * 3.0 * 0.25 + reach * 3.0)
    assert bounds(outer)[0] == pytest.approx(0.1 + second, rel=1e-12)


def test_bound_of_a_slide_is_the_mass_and_its_stroke_counts_as_a_metre():
    body = (3.0, (0.25, 0, 0), (0.2, 0.2, 0.2))
    robot = chain((HERE, HERE, Z, (2.0, HERE, (0.1, 0.1, 0.1))), (HERE, HERE, X, body, "prismatic"))
    trace = 3 * 0.2 + 2 * 3.0 * 0.25**2
    across = 1.0 * (2.0 * 3.0 * 0.25 + 1.0 * 3.0)
    assert bounds(robot) == pytest.approx([0.1 + trace + across, 3.0], rel=1e-12)
    along = chain((HERE, HERE, Z, (2.0, HERE, (0.1, 0.1, 0.1))), (HERE, HERE, Z, body, "prismatic"))
    assert bounds(along)[0] == pytest.approx(0.1 + 0.2 + 3.0 * 0.25**2, rel=1e-12)
    hub = (2.0, HERE, (0.1, 0.1, 0.1))
    further = chain((HERE, HERE, Y, hub), (HERE, HERE, Z, hub), (HERE, HERE, Z, body, "prismatic"))
    second = 3 * 0.1 + trace + 2.0 * 1.0 * (2.0 * 3.0 * 0.25 + 1.0 * 3.0)
    assert bounds(further)[0] == pytest.approx(0.1 + second, rel=1e-12)


def test_pivots_of_a_link_alone_are_those_of_its_inertia_about_all_axes():
    """For joints with several axes: the products of the pivots are the leading minors of Sᵀ I S + rotor."""
    rng = np.random.default_rng(8)
    for kind in ("revolute", "prismatic", "helical", "ball", "floating"):
        body = random_body(rng)
        own = {"pitch": 0.2} if kind == "helical" else {}
        rotor = 0.3 if kind != "floating" else 0.0
        joint = Joint("j", kind, "base", "l", pose(rng), axis=direction(rng), rotor_inertia=rotor, **own)
        robot = Robot("one", [Link("base"), Link("l", body)], [joint])
        M = robot.mass_matrix(robot.neutral)
        minors = [np.linalg.det(M[:k, :k]) for k in range(1, len(M) + 1)]
        (link,) = mechanism_of(robot)
        np.testing.assert_allclose(np.cumprod(singularity.own_pivots(link)), minors, rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_no_configuration_exceeds_the_bound(seed):
    robot = lw.random_robot(seed, 6, tree=seed % 2 == 1)
    limits = np.array(bounds(robot)) + [joint.rotor_inertia for joint in robot.moving_joints]
    q = np.random.default_rng(seed).uniform(-1, 1, (200, robot.dof)) * np.where(
        [joint.revolute for joint in robot.moving_joints], np.pi, 1.0
    )
    inertias = np.diagonal(robot.mass_matrix(q), axis1=-2, axis2=-1)
    assert (inertias <= limits * (1 + 1e-12)).all()


def elbow(bend: float, own: float) -> tuple[Robot, float]:
    """A point mass beyond two joints, and D of the inner one relative to its bound: own + m l² sin²(bend)."""
    robot = chain(
        (HERE, HERE, Z, (1.0, HERE, (own, own, own))),
        ((0.5, 0, 0), HERE, Z, (1.5, (0.5, 0, 0), (0.0, 0.0, 0.0))),
    )
    return robot, (own + 1.5 * 0.5**2 * np.sin(bend) ** 2) / (own + 1.5)


@pytest.mark.parametrize(("ratio", "regular"), [(2e-12, True), (0.5e-12, False)])
def test_where_inertia_may_vanish_a_million_millionth_counts_as_none(ratio, regular):
    bend = np.arcsin(np.sqrt(4.0 * ratio))
    robot, relative = elbow(bend, 0.0)
    assert relative == pytest.approx(ratio, rel=1e-3)
    links = mechanism_of(robot)
    assert singularity.axis_inertia_floors(links)[0] == pytest.approx(1e-12 * 1.5)
    found = kalman.singular_joint(links, [0.3, float(bend)])
    assert (found is None) == regular


def test_where_inertia_cannot_vanish_only_round_off_counts():
    floors = singularity.axis_inertia_floors
    eps = 2.0**-52
    safe = floors(mechanism_of(elbow(0.0, 1.6e2 * eps)[0]))
    assert safe[0] == singularity.NEVER
    lost = floors(mechanism_of(elbow(0.0, 1.4e2 * eps)[0]))
    assert lost[0] == pytest.approx(1.5 * 100.0 * eps)
    assert singularity.may_be_singular(mechanism_of(elbow(0.0, 1.4e2 * eps)[0]))


def test_slides_below_a_turning_body_cannot_lose_their_inertia():
    """The bound of a planar base and of a single slide is below the axis inertia of random states, and near it in the
    worst; slides that are not at right angles to each other or to the body's axis have none."""
    rng = np.random.default_rng(5)

    def cart(axes):
        com = rng.normal(size=3) * 0.3
        links = [lw.Link("base"), *(lw.Link(f"slide {k}") for k in range(len(axes) - 1))]
        links += [
            lw.Link("body", lw.Inertia.from_com(rng.uniform(1, 5), com, rng.uniform(0.01, 0.02, 3))),
            lw.Link("tip", lw.Inertia.from_com(0.01, (0.0, 0.0, 0.1), (1e-4, 1e-4, 1e-4))),
        ]
        kinds = ["prismatic"] * (len(axes) - 1) + ["continuous", "continuous"]
        joints = [
            lw.Joint(f"j{k}", kind, links[k].name, links[k + 1].name, axis=axis)
            for k, (kind, axis) in enumerate(zip(kinds, [*axes, (0, 1, 0)], strict=True))
        ]
        return lw.Robot("cart", links, joints)

    x, y, z = np.eye(3)
    for axes in ((x, y, z), (z, x, y), (x, z)):
        for _ in range(3):
            robot = cart(axes)
            links = mechanism_of(robot).original
            assert not singularity.may_be_singular(links)
            M = robot.mass_matrix(robot.random(rng, 2000))
            for k in range(len(axes) - 1):
                least = (1.0 / np.linalg.inv(M[:, k:, k:])[:, 0, 0]).min()
                bound = singularity._carried_mass(links, links[k])
                assert 0.0 < bound <= least * (1.0 + 1e-9)
                assert least < 1.2 * bound + 0.02
    for axes in ((x, x, z), (x, y, x), (x, x + y, z)):
        assert singularity.may_be_singular(mechanism_of(cart([a / np.linalg.norm(a) for a in axes])))
