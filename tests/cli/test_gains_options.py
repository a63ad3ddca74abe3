"""--kp, --kd, --ki, --gain, frequencies per joint and --fixed-gains of generate and simulate."""

import json

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from linkwise.control import CONTROLLERS, Gains, named
from linkwise.embedded.entries import controller_of, gain_names
from linkwise.embedded.entry import Options
from linkwise.simulate import simulate

LAW = ("generate", "two_link", "computed_torque")


def test_gains_of_the_command_line_are_the_defaults_of_the_code(capsys):
    assert main([*LAW, "--kp", "100,80", "--kd", "20,18", "--fixed-gains", "--json"]) == 0
    fixed = json.loads(capsys.readouterr().out)["source"]
    robot = lw.load("two_link")
    law = named("computed_torque", robot, Gains(np.array([100.0, 80.0]), np.array([20.0, 18.0])))
    own = law.kernel(1e-3, fault=True).source("c", function_name="two_link_computed_torque")
    assert own.split("\n#", 1)[1] == fixed.split("\n#", 1)[1]
    assert main([*LAW, "--kp", "100,80", "--kd", "20,18"]) == 0
    text = capsys.readouterr().out
    for name in ("kp", "kd", "torque_limits"):
        assert f"{name}[" in text
    assert "100.0" not in text


def test_packages_hold_frequencies_of_every_joint_and_gains_of_every_law(tmp_path, monkeypatch):
    monkeypatch.setattr("linkwise.embedded.stack.measured", lambda sources, **options: {})
    command = ["generate", "two_link", "computed_torque", "gravity_pd", "--states", "1", "--out"]
    assert main([*command, str(tmp_path / "a"), "--frequency", "10,8"]) == 0
    text = (tmp_path / "a/src/two_link_computed_torque_defaults.c").read_text()
    assert ".kp = {\n        100.0, 64.0\n    }" in text
    assert ".kd = {\n        20.0, 16.0\n    }" in text
    assert (
        main([*command, str(tmp_path / "b"), "--gain", "kp=7,9", "--gain", "kd=1", "--torque-limits", "5,6"])
        == 0
    )
    for name in ("computed_torque", "gravity_pd"):
        text = (tmp_path / f"b/src/two_link_{name}_defaults.c").read_text()
        for part in ("7.0, 9.0", "1.0, 1.0", "5.0, 6.0"):
            assert part in text


@pytest.mark.parametrize("name", [name for name, law in CONTROLLERS.items() if law.feedback])
def test_every_law_is_simulated_with_gains_of_the_command_line(name, tmp_path, capsys):
    """Every gain that a law has can be given."""
    robot = lw.load("two_link")
    law = named(name, robot, frequency=6.0)
    gains = {key: 1.1 * values for key, values in law.gains.items()}
    listed = {key: ",".join(map(repr, values.ravel().tolist())) for key, values in gains.items()}
    given = [text for key, numbers in listed.items() for text in ("--gain", f"{key}={numbers}")]
    out = tmp_path / "log.csv"
    move = ["--to", "0.3,0.2", "--move", "0.2", "--duration", "0.3"]
    command = ["simulate", "two_link", "--controller", name, *move, *given, "--out", str(out)]
    assert main(command) == 0
    capsys.readouterr()
    table = np.genfromtxt(out, delimiter=",", names=True)
    reference = lw.motion.quintic(np.zeros(2), np.array([0.3, 0.2]), 0.2)
    found = simulate(robot, law.with_gains(**gains), reference, duration=0.3)
    np.testing.assert_allclose(table[table.dtype.names[1]], found.q[::10, 0], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kp", "1,2"], "--kp and --kd go together"),
        (["--ki", "1"], "--kp and --kd go together, and --ki with both"),
        (["--kp", "1", "--kd", "1", "--frequency", "3"], "not both"),
        (["--kp", "1,2,3", "--kd", "1"], "kp: expected one number or 2, got 3"),
        (["--frequency", "1,2,3"], "frequency: expected one number or 2, got 3"),
        (["--gain", "kp"], "expected NAME=V1,V2"),
        (["--gain", "stiffness=3"], "computed_torque has no 'stiffness'"),
        (["--kp", "-1", "--kd", "1"], "--kp"),
        (["--controller", "tracking"], "--controller is for closed_loop"),
    ],
)
def test_gains_that_do_not_fit_are_refused_in_one_line(options, message, capsys):
    assert main([*LAW, *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_functions_without_a_controller_take_no_gains(capsys):
    for options in (["--kp", "1", "--kd", "1"], ["--fixed-gains"], ["--gain", "kp=1"]):
        assert main(["generate", "two_link", "mass_matrix", *options]) == 2
        assert "is for controllers; mass_matrix is none" in capsys.readouterr().err
    assert main(["generate", "two_link", "mpc", "--frequency", "5,6"]) == 2
    assert "mpc has one frequency" in capsys.readouterr().err


def test_several_laws_are_switched(capsys):
    command = ["generate", "two_link", "switched_controller", "--controller"]
    assert main([*command, "tracking,gravity_pd,tracking"]) == 0
    text = capsys.readouterr().out
    assert "0 tracking, 1 gravity_pd" in " ".join(text.replace("*", " ").split())
    assert main([*command, "tracking,gravty_pd"]) == 2
    assert "did you mean 'gravity_pd'" in capsys.readouterr().err
    assert main(["generate", "two_link", "guarded_controller", "--controller", "tracking,gravity_pd"]) == 2
    assert "several are for switched_controller" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cartesian_impedance", "whole_body_tracking"])
def test_proportional_and_derivative_gains_reach_laws_that_name_them_otherwise(name):
    """--kp and --kd were refused, though ``named`` takes them; those of an admittance are of its inner law alone."""
    robot = lw.load("puma560")
    law = controller_of(robot, name, Options(gains={"kp": 40.0, "kd": 6.0}))
    wanted = named(name, robot, Gains(40.0, 6.0))
    assert {key: values.tolist() for key, values in law.gains.items()} == {
        key: values.tolist() for key, values in wanted.gains.items()
    }
    assert gain_names(law, ["kp", "kd"]) >= {"kp", "kd"}
    assert "kp" not in gain_names(law, ["kp"])
    usual = named("cartesian_admittance", robot)
    inner = controller_of(robot, "cartesian_admittance", Options(gains={"kp": 40.0, "kd": 6.0}))
    assert (inner.gains["kp"] == 40.0).all()
    assert (inner.gains["virtual_stiffness"] == usual.gains["virtual_stiffness"]).all()
