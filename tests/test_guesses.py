"""What people type first works or says what to type; nothing else about robots changes."""

import copy
import inspect
import pickle
import pydoc
import rlcompleter

import numpy as np
import pytest

import linkwise as lw
from linkwise.arguments import guesses
from linkwise.robot.robot import Robot

TRIED = (
    "fk ik rnea aba crba n nv q_limits random_configuration com forward_kinematics dynamics inertia coriolis gravload "
    "jacob0 jacobe fkine ikine rne accel computeJointJacobians nle energy mass com_position joint_limits qlim n_joints "
    "num_joints calculateMassMatrix CalcMassMatrix mj_fullM home simulate payload"
)
BELONGS = "inverse_kinematics limits neutral random center_of_mass manipulability show plot save nq dof"


@pytest.fixture(scope="module")
def robot():
    return lw.load("panda")


@pytest.mark.parametrize("name", TRIED.split())
def test_names_of_other_libraries_say_what_to_type(robot, name):
    with pytest.raises(AttributeError, match=rf"^{name}: use "):
        getattr(robot, name)
    assert not hasattr(robot, name)
    assert not hasattr(Robot, name)
    assert name not in dir(robot)
    assert name not in dir(Robot)


def test_what_the_issue_names_is_there(robot):
    for name in BELONGS.split():
        assert hasattr(robot, name), name
    assert not hasattr(robot, "nothing_of_the_kind")


def test_parts_that_pages_name_need_no_import_of_their_own():
    """What stands as ``linkwise.part.name`` in a page is there after ``import linkwise``."""
    import re
    from pathlib import Path

    folders = {path.name for path in Path(lw.__file__).parent.iterdir() if path.is_dir()}
    pages = "".join(path.read_text() for path in (Path(__file__).parents[1] / "docs").rglob("*.md"))
    named = set(re.findall(r"\blinkwise\.([a-z]\w*)\.", pages)) & folders
    assert {"systems", "embedded", "gpu"} <= named
    assert named <= {*lw._PARTS, *lw.__all__}


def test_what_is_recommended_exists(robot):
    """Every name after ``robot.`` and ``linkwise.`` in the answers."""
    import re

    for use in {*guesses.ROBOT_GUESSES.values(), *guesses.MODULE_GUESSES.values()}:
        for owner, name in re.findall(r"\b(robot|linkwise)\.(\w+)", use):
            assert hasattr(robot if owner == "robot" else lw, name), use


def test_misspelled_names_get_the_nearest(robot):
    for wrong, right in (
        ("inverse_dynamcis", "inverse_dynamics"),
        ("invers_dynamics", "inverse_dynamics"),
        ("inverse_dinamics", "inverse_dynamics"),
        ("mass_matirx", "mass_matrix"),
        ("massMatrix", "mass_matrix"),
        ("gravity_torque", "gravity_torques"),
        ("get_jacobian", "jacobian"),
        ("potentialEnergy", "potential_energy"),
    ):
        with pytest.raises(AttributeError, match=right):
            getattr(robot, wrong)
        with pytest.raises(AttributeError, match=right):
            getattr(Robot, wrong)


def test_class_and_module_answer_too():
    with pytest.raises(AttributeError, match=r"from_urdf: use linkwise\.load\(path\)"):
        lw.Robot.from_urdf  # noqa: B018
    for name, said in (
        ("load_urdf", r"use linkwise\.load"),
        ("rnea", r"use robot\.inverse_dynamics"),
        ("mass_matrix", r"robot\.mass_matrix with robot = linkwise\.load"),
        ("laod", "did you mean 'load'"),
    ):
        with pytest.raises(AttributeError, match=said):
            getattr(lw, name)
        assert not hasattr(lw, name)


def test_completion_help_and_members_list_no_guess(robot):
    shown = {name for name, _ in inspect.getmembers(robot)} | {name for name, _ in inspect.getmembers(Robot)}
    completer = rlcompleter.Completer({"robot": robot})
    completed = [completer.complete("robot.f", k) for k in range(20)]
    assert not shown & set(guesses.ROBOT_GUESSES)
    assert not any("robot.fk" in str(each) for each in completed)
    assert "robot.forward_dynamics(" in completed
    assert "fkine" not in pydoc.render_doc(Robot)


def test_copies_pickles_and_calls_are_unaffected(robot):
    q = np.full(7, 0.1)
    wanted = robot.gravity_torques(q)
    for other in (copy.copy(robot), copy.deepcopy(robot), pickle.loads(pickle.dumps(robot))):
        assert other == robot
        assert np.array_equal(other.gravity_torques(q), wanted)
    # CPython finds methods without making an object for each call only in classes without a hook
    assert not any("__getattr__" in base.__dict__ for base in Robot.__mro__)

    class Own(Robot):
        def fk(self, q):
            return self.pose(q)

    own = Own.from_model(robot)
    assert np.array_equal(own.fk(q), robot.pose(q))
    assert "fk" in dir(own)
    assert "ik" not in dir(own)


def test_inverse_kinematics_manipulability_and_files_are_methods(robot, tmp_path):
    q = robot.random(1)
    found = robot.inverse_kinematics(robot.pose(q))
    assert np.allclose(robot.pose(found.q), robot.pose(q), atol=1e-8)
    J = robot.jacobian(q)
    assert np.isclose(robot.manipulability(q), np.sqrt(np.linalg.det(J @ J.T)))
    assert robot.manipulability(robot.random(2, 5)).shape == (5,)
    arm = lw.planar_chain(3)
    arm = arm.lock({arm.joint_names[2]: 0.0})  # two links of equal length l: l² |sin q2|
    length = np.linalg.norm(arm.pose([0.0, 0.0])[:3, 3]) / 2
    assert np.isclose(arm.manipulability([0.3, 0.7], task="position"), length**2 * np.sin(0.7))
    with pytest.raises(lw.UnknownNameError, match="task"):
        robot.manipulability(q, task="linear")
    robot.save(tmp_path / "arm.toml")
    assert np.allclose(lw.load(tmp_path / "arm.toml").gravity_torques(q), robot.gravity_torques(q))


def test_a_robot_is_drawn(robot, tmp_path):
    from xml.etree import ElementTree

    for plot in (robot.plot(), robot.plot(robot.random(1), trace=np.eye(3)), lw.load("two_link").plot()):
        assert ElementTree.fromstring(plot._repr_svg_()).tag.endswith("svg")
        assert "plot.svg" in repr(plot)
        plot.save(tmp_path / "arm.svg")
        assert ElementTree.parse(tmp_path / "arm.svg").getroot().tag.endswith("svg")
    with pytest.raises(lw.LinkwiseError, match=r"\.svg"):
        plot.save(tmp_path / "arm.png")
    with pytest.raises(lw.ShapeError, match="q: expected shape"):
        robot.plot([0.0])


def test_signatures_help_and_completion_are_the_same_after_a_call():
    robot = lw.load("two_link")
    names = ("inverse_kinematics", "manipulability", "save", "plot", "show", "as_ode", "filter")

    def seen():
        methods = [getattr(robot, name) for name in names]
        return (
            dir(robot),
            [str(inspect.signature(m)) for m in methods],
            [pydoc.render_doc(m) for m in methods],
        )

    before = seen()
    robot.manipulability({"joint1": 0.1, "joint2": 0.2})
    robot.plot([0.1, 0.2])
    robot.as_ode()(0.0, np.zeros(4))
    robot.inverse_dynamics([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])
    assert seen() == before
    assert "frame: 'str | None' = None" in before[1][0]
    assert "Yoshikawa" in before[2][1]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("robot.qpos", "robots have no state"),
        ("robot.copy()", "they are immutable"),
        ("robot.to('cuda')", "results are of the same kind"),
        ("robot.getJointInfo(0)", "robot.joint_names and robot.limits"),
        ("robot.setJointMotorControl2()", "linkwise.simulate.simulate"),
        ("robot.with_friction(1)", "with_parameters"),
        ("robot.existFrame('x')", "robot.frame_names"),
        ("robot.links[0].mass", "mass: use link.inertia.mass"),
        ("robot.joints[0].lower", "lower: use joint.limits.lower"),
        ("robot.joints[0].armature", "armature: use joint.rotor_inertia"),
        ("lw.motion.jtraj(1, 2, 3)", r"motion.quintic\(q0, q1, duration\)"),
        ("lw.motion.quntic", "did you mean 'quintic'"),
        ("lw.control.PID", "GravityPD"),
        ("lw.control.computed_torque", r"control.named\('computed_torque'"),
        ("lw.simulate(robot)", r"is a module: use linkwise.simulate.simulate"),
        ("lw.identify(robot, 'log.csv')", r"is a module: use linkwise.identify.identify"),
        ("lw.view(robot)", r"is a module: use linkwise.view.show"),
        ("lw.identify.load_log('x')", "read_log"),
        ("lw.robot.robot('panda')", r"is a module: use linkwise.load\('panda'\)"),
        ("lw.Robot('panda')", r"use linkwise.load\('panda'\)"),
        ("lw.Stanford()", r"use linkwise.load\('stanford'\)"),
        ("lw.SE3(0, 0, 1)", "linkwise.Transform"),
        ("lw.vmap", "leading axes"),
    ],
)
def test_more_guesses_are_answered(robot, typed, said):
    with pytest.raises((AttributeError, TypeError), match=said):
        eval(typed, {"robot": robot, "lw": lw})


def test_parts_stay_modules():
    assert inspect.ismodule(lw.motion)
    assert not hasattr(lw.motion, "jtraj")
    assert lw.motion.polynomial.quintic.__name__ == "quintic"


def test_the_command_line_and_python_have_one_table(capsys):
    """A function by the name that another library has for it: the same answer everywhere; commands have theirs."""
    from linkwise.cli import main

    arm = lw.load("two_link")
    for other, ours in (
        ("rnea", "inverse_dynamics"),
        ("crba", "mass_matrix"),
        ("fk", "pose"),
        ("nle", "bias_torques"),
    ):
        with pytest.raises(lw.UnknownNameError, match=f"did you mean '{ours}'"):
            arm.kernel(other)
        assert main(["generate", "two_link", other]) == 2
        assert f"did you mean '{ours}'" in capsys.readouterr().err
    for other, ours in (
        ("visualize", "view"),
        ("codegen", "generate"),
        ("sim", "simulate"),
        ("benchmark", "bench"),
    ):
        assert main([other, "two_link"]) == 2
        assert f"did you mean '{ours}'" in capsys.readouterr().err
