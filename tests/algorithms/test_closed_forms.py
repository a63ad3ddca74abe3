"""Arms whose equations fit on a line: written out here as in the textbooks, term by term."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation import algorithms, assert_near, value

from linkwise import Inertia, Joint, Link, Robot, Transform

G = 9.81
TIGHT = 1e-13
RNG = np.random.default_rng(8)
Q, QD, QDD = RNG.uniform(-3, 3, (3, 20, 2))


def every_torque(robot, q, qd, qdd, **options):
    for name in algorithms("inverse_dynamics"):
        yield name, value(robot, "inverse_dynamics", name, q=q, qd=qd, qdd=qdd, **options)
        yield name, robot.inverse_dynamics(q, qd, qdd, algorithm=name, **options)


def every_acceleration(robot, q, qd, tau):
    for name in robot.algorithms("forward_dynamics"):
        yield name, robot.forward_dynamics(q, qd, tau, algorithm=name)


def test_pendulum():
    """(I + I_a) q̈ + F_d q̇ + F_s sgn q̇ + m g l sin q = τ: a bar hanging from a hinge, turning about y."""
    m, l, I, Ia, drag, forward, backward = 1.7, 0.4, 0.3, 0.05, 0.2, 0.7, 0.9
    hinge = Joint(
        *("hinge", "revolute", "base", "bar"),
        axis=(0.0, 1.0, 0.0),
        rotor_inertia=Ia,
        viscous_friction=drag,
        coulomb_friction=(forward, backward),
    )
    bar = Inertia.from_com(m, (0, 0, -l), (I - m * l**2, I - m * l**2, 0.0))
    robot = Robot("pendulum", [Link("base"), Link("bar", bar)], [hinge], gravity=(0, 0, -G))
    q, qd, qdd = Q[:, :1], QD[:, :1], QDD[:, :1]
    coulomb = np.where(qd > 0, forward, -backward)
    free = (I + Ia) * qdd + m * G * l * np.sin(q)
    wanted = free + drag * qd + coulomb
    for name, tau in every_torque(robot, q, qd, qdd):
        assert_near(tau, wanted, TIGHT, 20.0, name)
    for name, tau in every_torque(robot, q, qd, qdd, friction=False):
        assert_near(tau, free, TIGHT, 20.0, name)
    for name, found in every_acceleration(robot, q, qd, wanted):
        assert_near(found, qdd, 1e-12, 60.0, name)
    assert_near(robot.kinetic_energy(q, qd), 0.5 * (I + Ia) * qd[:, 0] ** 2, TIGHT)
    assert_near(robot.potential_energy(q), -m * G * l * np.cos(q[:, 0]), TIGHT)
    assert_near(robot.inverse_mass_matrix(q), np.full((20, 1, 1), 1 / (I + Ia)), TIGHT)


class TwoLinks:
    """The planar elbow arm of Spong's and Craig's books: vertical plane x-y, joints about z, gravity along −y."""

    m1, m2, l1, c1, c2, I1, I2 = 2.3, 1.4, 0.7, 0.31, 0.24, 0.11, 0.06  # I about the centres of mass

    @classmethod
    def robot(cls, rotors=(0.0, 0.0)) -> Robot:
        def rod(m, c, I):
            return Inertia.from_com(m, (c, 0.0, 0.0), (0.001, I, I))

        joints = [
            Joint("shoulder", "revolute", "base", "upper", rotor_inertia=rotors[0]),
            Joint(
                "elbow",
                "revolute",
                "upper",
                "lower",
                Transform.along((1, 0, 0), cls.l1),
                rotor_inertia=rotors[1],
            ),
        ]
        links = [
            Link("base"),
            Link("upper", rod(cls.m1, cls.c1, cls.I1)),
            Link("lower", rod(cls.m2, cls.c2, cls.I2)),
        ]
        return Robot("two_links", links, joints, gravity=(0.0, -G, 0.0))

    @classmethod
    def mass_matrix(cls, q):
        m2, l1, c2 = cls.m2, cls.l1, cls.c2
        cos2 = np.cos(q[:, 1])
        M = np.empty((len(q), 2, 2))
        M[:, 0, 0] = cls.m1 * cls.c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * cos2) + cls.I1 + cls.I2
        M[:, 0, 1] = M[:, 1, 0] = m2 * (c2**2 + l1 * c2 * cos2) + cls.I2
        M[:, 1, 1] = m2 * c2**2 + cls.I2
        return M

    @classmethod
    def coriolis(cls, q, qd):
        h = -cls.m2 * cls.l1 * cls.c2 * np.sin(q[:, 1])
        w1, w2 = qd.T
        return np.stack([np.stack([h * w2, h * (w1 + w2)], -1), np.stack([-h * w1, 0 * h], -1)], -2)

    @classmethod
    def gravity(cls, q):
        both = cls.m2 * cls.c2 * G * np.cos(q[:, 0] + q[:, 1])
        return np.stack([(cls.m1 * cls.c1 + cls.m2 * cls.l1) * G * np.cos(q[:, 0]) + both, both], -1)


@pytest.mark.parametrize("rotors", [(0.0, 0.0), (0.2, 0.07)])
def test_two_links(rotors):
    robot = TwoLinks.robot(rotors)
    M = TwoLinks.mass_matrix(Q) + np.diag(rotors)
    C = TwoLinks.coriolis(Q, QD)
    g = TwoLinks.gravity(Q)
    c = np.einsum("kij,kj->ki", C, QD)
    tau = np.einsum("kij,kj->ki", M, QDD) + c + g
    for name in algorithms("mass_matrix"):
        assert_near(robot.mass_matrix(Q, algorithm=name), M, TIGHT, what=name)
    for name in algorithms("inverse_mass_matrix"):
        assert_near(robot.inverse_mass_matrix(Q, algorithm=name), np.linalg.inv(M), 1e-12, what=name)
    assert_near(
        robot.coriolis_matrix(Q, QD), C, TIGHT
    )  # Christoffel's symbols give these entries and no others
    assert_near(robot.velocity_torques(Q, QD), c, TIGHT)
    assert_near(robot.gravity_torques(Q), g, TIGHT)
    for name, found in every_torque(robot, Q, QD, QDD):
        assert_near(found, tau, TIGHT, 50.0, name)
    for name, found in every_acceleration(robot, Q, QD, tau):
        assert_near(found, QDD, 1e-11, 10.0, name)
    # D_ijk of Izaguirre's (1)
    h = -TwoLinks.m2 * TwoLinks.l1 * TwoLinks.c2 * np.sin(Q[:, 1])
    D = np.zeros((len(Q), 2, 2, 2))
    D[:, 0, 0, 1] = D[:, 0, 1, 0] = D[:, 0, 1, 1] = h
    D[:, 1, 0, 0] = -h
    assert_near(robot.christoffel(Q), D, TIGHT)
    # kinematics of the elbow
    T = robot.pose(Q, "lower")
    assert_near(T[:, :2, 3], TwoLinks.l1 * np.stack([np.cos(Q[:, 0]), np.sin(Q[:, 0])], -1), TIGHT)
    J = robot.jacobian(Q, "lower")
    assert_near(J[:, 2], np.ones((20, 2)), TIGHT)
    assert_near(J[:, 3:5, 0], TwoLinks.l1 * np.stack([-np.sin(Q[:, 0]), np.cos(Q[:, 0])], -1), TIGHT)
    assert not J[:, 3:, 1].any()


def test_polar_arm():
    """A slide on a turntable: M = diag(I + m r², m), c = (2 m r ṙ ω, −m r ω²), gravity along −y."""
    m, I, Ia = 1.3, 0.4, 0.6
    joints = [
        Joint("turntable", "revolute", "base", "table"),
        Joint("slide", "prismatic", "table", "bob", axis=(1.0, 0.0, 0.0), rotor_inertia=Ia),
    ]
    links = [
        Link("base"),
        Link("table", Inertia.from_com(0.0, (0, 0, 0), (0, 0, I))),
        Link("bob", Inertia.from_com(m, (0, 0, 0), (0, 0, 0))),
    ]
    robot = Robot("polar", links, joints, gravity=(0.0, -G, 0.0))
    (angle, r), (w, v), (wd, vd) = Q.T, QD.T, QDD.T
    tau = np.stack(
        [
            (I + m * r**2) * wd + 2 * m * r * v * w + m * G * r * np.cos(angle),
            (m + Ia) * vd - m * r * w**2 + m * G * np.sin(angle),
        ],
        axis=-1,
    )
    for name, found in every_torque(robot, Q, QD, QDD):
        assert_near(found, tau, TIGHT, 200.0, name)
    for name, found in every_acceleration(robot, Q, QD, tau):
        assert_near(found, QDD, 1e-11, 100.0, name)


def test_cart_and_pole():
    """(M + m) ẍ + m l (θ̈ cos θ − θ̇² sin θ) = f, m l ẍ cos θ + m l² θ̈ − m g l sin θ = τ: a pole upright at θ = 0."""
    cart, m, l = 2.1, 0.7, 0.6
    joints = [
        Joint("rail", "prismatic", "base", "cart", axis=(1.0, 0.0, 0.0)),
        Joint("pivot", "continuous", "cart", "pole", axis=(0.0, 1.0, 0.0)),
    ]
    links = [
        Link("base"),
        Link("cart", Inertia.from_com(cart, (0, 0, 0), (0, 0, 0))),
        Link("pole", Inertia.from_com(m, (0, 0, l), (0, 0, 0))),
    ]
    robot = Robot("cart_pole", links, joints, gravity=(0.0, 0.0, -G))
    (_, angle), (_, w), (a, wd) = Q.T, QD.T, QDD.T
    tau = np.stack(
        [
            (cart + m) * a + m * l * (wd * np.cos(angle) - w**2 * np.sin(angle)),
            m * l * a * np.cos(angle) + m * l**2 * wd - m * G * l * np.sin(angle),
        ],
        axis=-1,
    )
    for name, found in every_torque(robot, Q, QD, QDD):
        assert_near(found, tau, TIGHT, 30.0, name)
    for name, found in every_acceleration(robot, Q, QD, tau):
        assert_near(found, QDD, 1e-11, 30.0, name)


def test_spinning_top():
    """Three intersecting axes: Euler's equations for the body, I ω̇ + ω × I ω = Rᵀ(moment), by virtual work."""
    I = np.diag([0.3, 0.5, 0.4])
    joints = [
        Joint("yaw", "revolute", "base", "a", axis=(0.0, 0.0, 1.0)),
        Joint("pitch", "revolute", "a", "b", axis=(0.0, 1.0, 0.0)),
        Joint("roll", "revolute", "b", "top", axis=(1.0, 0.0, 0.0)),
    ]
    links = [Link("base"), Link("a"), Link("b"), Link("top", Inertia.from_com(1.0, (0, 0, 0), I))]
    robot = Robot("top", links, joints, gravity=(0, 0, 0))
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1, 1, (3, 3))
    (_, pitch, roll), (_, pitch_rate, roll_rate) = q, qd
    cp, sp, cr, sr = np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    E = np.array(
        [[-sp, 0, 1], [cp * sr, cr, 0], [cp * cr, -sr, 0]]
    )  # body rates = E · (yaw, pitch, roll rates)
    Ed = pitch_rate * np.array([[-cp, 0, 0], [-sp * sr, 0, 0], [-sp * cr, 0, 0]]) + roll_rate * np.array(
        [[0, 0, 0], [cp * cr, -sr, 0], [-cp * sr, -cr, 0]]
    )
    w, wd = E @ qd, E @ qdd + Ed @ qd
    tau = E.T @ (I @ wd + np.cross(w, I @ w))
    for name, found in every_torque(robot, q, qd, qdd):
        assert_near(found, tau, TIGHT, 5.0, name)
    assert_near(robot.mass_matrix(q), E.T @ I @ E, TIGHT)
