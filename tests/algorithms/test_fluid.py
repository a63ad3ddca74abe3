"""Forces of a surrounding fluid: MuJoCo's models in every function, format and simulation."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import compat
from linkwise.control import Gains, GravityPD
from linkwise.formats.mjcf.reader import read_mjcf
from linkwise.functions import arrays
from linkwise.functions.table import Setting, function_named
from linkwise.robot import kernels
from linkwise.simulate import simulate

XML = """<mujoco><option density="{density}" viscosity="{viscosity}" wind="{wind}"><flag contact="disable"/></option>
<worldbody><body name="trunk" pos="0 0 1"><freejoint/>
<inertial pos=".1 .02 -.03" mass="2" diaginertia=".02 .03 .04" quat=".9 .1 .3 .2"/>
<geom size=".1" mass="0" {shapes[0]}/>
<body name="arm" pos=".3 0 .1" euler="3 20 10"><joint axis="0 1 .3" damping=".2"/>
<geom type="capsule" size=".05 .2" pos=".1 0 .2" euler="20 50 0" {shapes[1]}/>
<body name="fin" pos=".2 .1 0"><geom type="box" size=".1 .05 .2" euler="10 20 30" {shapes[2]}/>
<geom type="ellipsoid" size=".1 .05 .2" pos=".1 .2 .3" {shapes[3]}/>
<body name="rod" pos="0 0 .3"><joint type="slide" axis="1 0 1"/><geom type="cylinder" size=".05 .2" {shapes[4]}/>
<body name="ball" pos="0 .2 .3"><joint type="ball"/>
<geom fromto=".1 0 0 .2 .1 .1" type="capsule" size=".07" {shapes[5]}/>
</body></body></body></body></body></worldbody></mujoco>"""
ELLIPSOID = 'fluidshape="ellipsoid"'
WING = ELLIPSOID + ' fluidcoef=".3 .7 1.1 .4 .9"'
STEP = 1e-6


def xml_of(density=100.0, viscosity=0.5, wind="1 2 3", shapes=("",) * 6) -> str:
    return XML.format(density=density, viscosity=viscosity, wind=wind, shapes=shapes)


def robot_of(xml: str) -> lw.Robot:
    return lw.Robot.from_model(read_mjcf(xml.encode(), "swimmer.xml"))


def states(robot, count=2):
    rng = np.random.default_rng(2)
    return [(robot.random(rng), *rng.normal(size=(2, robot.dof))) for _ in range(count)]


def value(robot, name, q, qd, third, algorithm=None, friction=True):
    """By the algorithm on arrays: nothing is compiled."""
    row = function_named(name)
    given = dict(zip(row.inputs, (q, qd, third), strict=True))
    setting = Setting(robot, friction=friction)
    return next(iter(arrays.run_on_arrays(row, setting, row.algorithm(algorithm), given).values()))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"viscosity": 0},
        {"density": 0, "wind": "0 0 0"},
        {"shapes": (ELLIPSOID,) * 6},
        {"shapes": (WING, "", "", WING, "", ELLIPSOID + ' fluidcoef="1 .1"')},
    ],
)
def test_torques_are_those_of_mujoco(given):
    mujoco = pytest.importorskip("mujoco")
    xml = xml_of(**given)
    robot, peer = robot_of(xml), mujoco.MjModel.from_xml_string(xml)
    data, them = mujoco.MjData(peer), compat.coordinates(robot, "mujoco", peer)
    for q, qd, qdd in states(robot):
        data.qpos[:], data.qvel[:] = them.positions(q), them.velocities(q, qd)
        data.qacc[:] = them.accelerations(q, qd, qdd)
        mujoco.mj_inverse(peer, data)
        theirs = them.own_torques(q, data.qfrc_inverse.copy())
        drag = value(robot, "inverse_dynamics", q, qd, qdd)
        drag = drag - value(robot, "inverse_dynamics", q, qd, qdd, friction=False)
        assert np.abs(drag).min() > 0
        for algorithm in robot.algorithms("inverse_dynamics"):
            ours = value(robot, "inverse_dynamics", q, qd, qdd, algorithm)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(drag).max())
        for algorithm in ("kalman", "compound_link"):
            back = value(robot, "forward_dynamics", q, qd, ours, algorithm)
            np.testing.assert_allclose(back, qdd, atol=1e-9 * np.abs(qdd).max())


def test_derivatives_are_those_of_differences():
    arm = lw.load("two_link")
    tip = arm.link_names[-1]
    pose = lw.Transform.from_rpy((0.1, 0.2, 0.3), (0.3, 0.2, 0.1))
    wing = lw.DragBody(tip, pose, "ellipsoid", (0.1, 0.3, 0.02), (0.3, 0.7, 1.1, 0.4, 0.9))
    box = lw.DragBody(tip, pose, "box", (0.1, 0.3, 0.02))
    robot = arm.with_fluid(lw.Fluid(800.0, 0.5, (1.0, 2.0, 3.0), (box, wing)))
    ((q, qd, qdd),) = states(robot, 1)
    tau = robot.inverse_dynamics(q, qd, qdd)
    by_q, by_qd, by_tau = robot.forward_dynamics_derivatives(q, qd, tau)
    unit = STEP * np.eye(robot.dof)
    pairs = [
        (by_q, lambda d: robot.forward_dynamics(robot.integrate(q, d), qd, tau)),
        (by_qd, lambda d: robot.forward_dynamics(q, qd + d, tau)),
        (by_tau, lambda d: robot.forward_dynamics(q, qd, tau + d)),
    ]
    for matrix, along in pairs:
        differences = np.stack([along(d) - along(-d) for d in unit], axis=-1) / (2 * STEP)
        np.testing.assert_allclose(matrix, differences, atol=1e-6 * np.abs(differences).max())
    still = arm.with_fluid(lw.Fluid(800.0, 0.5, bodies=(box, wing)))
    for matrix in still.inverse_dynamics_derivatives(q, 0 * qd, qdd):
        assert np.isfinite(matrix).all()  # where the drag of an ellipsoid has no direction


def test_loops_over_links_have_the_same_forces(monkeypatch):
    """Links with one box, with none and with several, revolute and sliding, as rows of one table."""
    robot = robot_of(xml_of(shapes=("", WING, "", WING, "", "")))
    ((q, qd, qdd),) = states(robot, 1)
    for name, third in (("inverse_dynamics", qdd), ("forward_dynamics", qdd)):
        row = function_named(name)
        given = dict(zip(row.inputs, (q, qd, third), strict=True))
        wanted = value(robot, name, *given.values())
        monkeypatch.setattr(kernels, "STRAIGHT_LINE_LIMIT", 1)
        found = kernels.kernel(row, Setting(robot, slide=False), row.default)
        assert type(found.program()).__name__ == "SweptProgram"
        np.testing.assert_allclose(found(q, qd, third), wanted, atol=1e-12 * np.abs(wanted).max())
        monkeypatch.undo()


def test_files_keep_the_fluid_and_say_that_others_do_not_see_it(tmp_path):
    robot = robot_of(xml_of(shapes=("", WING, "", "", "", "")))
    ((q, qd, qdd),) = states(robot, 1)
    wanted = robot.inverse_dynamics(q, qd, qdd)
    for ending in ("toml", "urdf", "xml"):
        path = tmp_path / f"swimmer.{ending}"
        if ending == "toml":
            lw.save(robot, path)
        else:
            with pytest.raises(lw.LinkwiseError, match="fluid of density 100 kg/m³"):
                lw.save(robot, path, strict=True)
            with pytest.warns(lw.ExportWarning, match="fluid of density 100 kg/m³"):
                lw.save(robot, path)
        again = lw.load(path)
        assert again.fluid == robot.fluid or again.fluid.content() == robot.fluid.content()
        np.testing.assert_array_equal(again.inverse_dynamics(q, qd, qdd), wanted)
    assert robot.with_fluid(None).content() != robot.content()


def test_any_robot_may_be_put_into_a_fluid():
    arm = lw.load("panda")
    fluid = arm.with_fluid(lw.Fluid(density=1000.0, viscosity=1e-3))
    q, qd = np.full(7, 0.3), np.full(7, 0.5)
    drag = fluid.inverse_dynamics(q, qd, 0 * qd) - arm.inverse_dynamics(q, qd, 0 * qd)
    assert drag @ qd > 0  # it takes power
    np.testing.assert_array_equal(
        fluid.inverse_dynamics(q, 0 * qd, 0 * qd), arm.inverse_dynamics(q, 0 * qd, 0 * qd)
    )
    with pytest.raises(lw.ModelError, match="fluid"):
        fluid.regressor(q, qd, qd)
    with pytest.raises(lw.ModelError, match="density"):
        lw.Fluid(density=-1.0)
    with pytest.raises(lw.UnknownNameError, match="nothing"):
        arm.with_fluid(
            lw.Fluid(1.0, bodies=(lw.DragBody("nothing", lw.Transform.identity(), "box", (1, 1, 1)),))
        )


def test_simulations_feel_the_fluid():
    """Without gravity and with hardly any gain, beside Runge–Kutta steps with forward dynamics."""
    arm = lw.load("two_link").with_gravity((0, 0, 0))
    box = lw.DragBody(arm.link_names[-1], lw.Transform.identity(), "box", (0.5, 0.2, 0.3))
    robot = arm.with_fluid(lw.Fluid(density=2e3, viscosity=1.0, bodies=(box,)))
    q, qd, h = np.array([0.3, 0.4]), np.array([2.0, -3.0]), 1e-3
    controller = GravityPD(robot, Gains(1e-12, 1e-12))

    def rates(x):
        return np.concatenate([x[2:], robot.forward_dynamics(x[:2], x[2:], np.zeros(2))])

    for fused in (True, False):
        result = simulate(robot, controller, q, q=q, qd=qd, duration=0.05, step=h, fused=fused, warn=False)
        x = np.concatenate([q, qd])
        for _ in range(round(result.t[-1] / h)):
            a = rates(x)
            b = rates(x + h / 2 * a)
            c = rates(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + rates(x + h * c))
        np.testing.assert_allclose(result.qd[-1], x[2:], rtol=1e-8)
    assert robot.kinetic_energy(x[:2], x[2:]) < 0.9 * robot.kinetic_energy(q, qd)
