"""What users of other libraries type first: the lists of benchmarks/habits.py, and what the answers are made of."""

import copy
import importlib
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.core.other_names import instead_of, nearest, option_instead, related, words_of
from linkwise.core.uncalled import uncalled

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import habits

PARTS = ("motion", "control", "optimal", "simulate", "collision", "identify", "environments", "view")


def test_few_habits_get_a_bare_error_and_none_a_misleading_one():
    rows = habits.answers()
    python = [row for row in rows if not row["typed"].startswith("linkwise ")]
    commands = [row for row in rows if row["typed"].startswith("linkwise ")]
    assert len(python) >= 120
    assert len(commands) >= 60
    for part in (python, commands):
        assert not [row for row in part if row["kind"] == "misleading"]
        assert sum(row["kind"] == "bare" for row in part) <= 0.05 * len(part)


def test_the_judge_takes_no_list_of_names_for_advice():
    assert habits.judged("no command 'x'; commands: tour, inverse", "inverse") == "bare"
    assert (
        habits.judged("no command 'x'; did you mean 'tour'? commands: tour, inverse", "inverse")
        == "misleading"
    )
    assert habits.judged("x: use robot.pose(q)", "pose") == "named"
    assert habits.judged(None, "pose") == "works"


def test_what_is_recommended_exists_and_no_real_name_is_answered():
    for section in (*PARTS, "linkwise", "robot", "command"):
        for use in set(instead_of(section).values()):
            for path in re.findall(r"\blinkwise((?:\.\w+)+)", use):
                value = lw
                for name in path.strip(".").split("."):
                    try:
                        value = getattr(value, name)
                    except AttributeError:
                        value = importlib.import_module(f"{value.__name__}.{name}")
    for part in PARTS:
        module = importlib.import_module(f"linkwise.{part}")
        assert not set(module.__all__) & set(instead_of(part))


def test_options_are_found_by_meaning_and_not_by_a_few_common_letters(capsys):
    has = ["--duration", "--step", "--move", "--noise", "--out", "--to", "--kd"]
    assert option_instead("--time", has) == "--duration"
    assert option_instead("--dt", has) == "--step"
    assert option_instead("--duratoin", has) == "--duration"
    assert option_instead("--kitchen", has) is None
    assert nearest("completion", ["operations", "tour"]) == []
    assert nearest("ros", ["robots", "tour"]) == [] == nearest("IK", ["Link", "Body"])
    assert option_instead("--optimize", ["--stop-time", "--out"]) is None
    assert option_instead("--rate", ["--frame", "--out"]) is None
    for typed in ("viw", "veiw", "vview", "vieq"):
        assert nearest(typed, ["view", "plan", "info"]) == ["view"]
    assert nearest("MPPI", ["Mppi", "solve"]) == ["Mppi"]


def test_a_name_is_found_by_its_words():
    assert words_of("getMassMatrices") == words_of("mass_matrices") == words_of("mass_matrix")
    assert words_of("PDController") == words_of("pd") == {"pd"}
    assert words_of("Controller") == {"controller"}  # words that say nothing are kept where there is no other
    assert nearest("ComputeJointTorques", ["joint_torque", "torque"]) == ["joint_torque"]
    assert related("IdentificationResult", ["Identification", "Result", "other"]) == [
        "Identification",
        "Result",
    ]
    assert related("joint_speed", [f"joint_{k}" for k in "abcdefgh"]) == []  # a word of many names
    for name, expected in (
        ("ImpedanceControl", "CartesianImpedance"),
        ("pid_controller", "GravityPD"),
        ("get_whole_body", "WholeBody"),
    ):
        with pytest.raises(AttributeError, match=expected):
            getattr(lw.control, name)
    with pytest.raises(AttributeError, match=r"use linkwise\.identify\.read_log"):
        lw.read_log  # noqa: B018
    for name in ("getJointLimits", "get_joint_limit", "compute_joint_limits", "jointLimit"):
        with pytest.raises(AttributeError, match=r"robot\.limits"):
            getattr(lw.load("two_link"), name)


def test_a_shared_number_or_first_letter_is_no_sign_and_plurals_are():
    assert related("ros2", ["atan2", "atan"]) == []
    assert nearest("--bag", ["--lag", "--out"]) == []
    assert nearest("--oyt", ["--lag", "--out"]) == ["--out"]
    assert words_of("get_mass_matrices") == words_of("mass_matrix")
    assert words_of("joint_velocities") == words_of("JointVelocity")


def test_a_value_after_a_flag_says_that_it_takes_none(capsys):
    from linkwise.cli import main

    assert main(["tour", "two_link", "--json", "out.json"]) == 2
    assert "--json takes no file; it prints to standard output: --json > out.json" in capsys.readouterr().err
    assert main(["tour", "two_link", "--no-open", "out.html"]) == 2
    assert "--no-open takes no value; got out.html" in capsys.readouterr().err


def test_a_missing_argument_shows_an_example(capsys):
    from linkwise.cli import main

    assert main(["generate", "two_link"]) == 2
    assert "for example: linkwise generate puma560 inverse_dynamics" in capsys.readouterr().err
    assert main(["check", "--everything"]) == 2
    assert "for example: linkwise check" in capsys.readouterr().err


def test_short_options_of_commands(tmp_path, capsys):
    from linkwise.cli import main

    for k, given in enumerate((["-o"], ["--float32", "-q", "-o"], ["--dtype", "float32", "--out"])):
        assert main(["generate", "two_link", "gravity_torques", *given, str(tmp_path / f"{k}.c")]) == 0
    names = [(tmp_path / f"{k}.c").read_text().replace(f"{k}.c", "") for k in range(3)]
    assert names[1] == names[2] != names[0]
    capsys.readouterr()
    assert main(["-V"]) == 0
    assert capsys.readouterr().out == f"linkwise {lw.__version__}\n"


def test_values_that_others_have_as_functions_say_what_to_type():
    robot = lw.load("panda")
    with pytest.raises(TypeError, match=r"robot\.gravity_torques\(q\)"):
        robot.gravity(np.zeros(7))
    with pytest.raises(TypeError, match=r"robot\.neutral is an array"):
        robot.neutral()
    with pytest.raises(TypeError, match="parameter_labels"):
        robot.parameters()
    assert robot.gravity == (0.0, 0.0, -9.81)
    assert type(pickle.loads(pickle.dumps(robot)).gravity) is type(robot.gravity) or robot.gravity == (
        0,
        0,
        -9.81,
    )


def test_arrays_of_properties_give_plain_arrays_and_the_same_results():
    robot = lw.load("panda")
    q = robot.neutral
    for result in (
        q + 1,
        2 * q,
        np.sin(q),
        q[:3],
        q.copy(),
        np.stack([q, q]),
        np.tile(q, (2, 1)),
        np.array(q),
    ):
        assert type(result) is np.ndarray
    assert repr(q) == repr(np.zeros(7))
    assert type(pickle.loads(pickle.dumps(q))) is np.ndarray
    same = uncalled(np.arange(3.0), "x")
    same[0] = 5.0
    assert (copy.deepcopy(same) == [5, 1, 2]).all()
    for name in ("mass_matrix", "gravity_torques", "pose"):
        got, expected = getattr(robot, name)(q), getattr(robot, name)(np.zeros(7))
        assert type(got) is np.ndarray
        assert np.array_equal(got, expected)


def test_results_and_constructors_name_what_is_wrong():
    motion = lw.motion.quintic([0, 0], [1, 1], 1.0)
    with pytest.raises(AttributeError, match="did you mean 'duration'"):
        motion.duratoin  # noqa: B018
    with pytest.raises(lw.DtypeError, match="did you mean 'gains'"):
        lw.control.ComputedTorque(lw.load("two_link"), gain=3)
    assert not hasattr(motion, "nothing_of_the_kind")
    assert not hasattr(motion, "__array__")
    assert pickle.loads(pickle.dumps(motion)).duration == copy.deepcopy(motion).duration == 1.0


def test_an_error_inside_a_property_stays_what_it_is():
    from linkwise.arguments.explained import _missing

    class Result:
        __getattr__ = _missing

        @property
        def torque(self):
            return None.missing_part

    with pytest.raises(AttributeError, match="missing_part"):
        Result().torque  # noqa: B018
    with pytest.raises(AttributeError, match="Result has no attribute 'torqe'; did you mean 'torque'"):
        Result().torqe  # noqa: B018
