"""The command line as a whole: names, help, errors, pipes."""

import os
import pty
import subprocess
import sys

import pytest

import linkwise as lw
from linkwise.cli.app import COMMANDS, run


def test_help_lists_every_command(linkwise):
    ran = linkwise("--help")
    assert ran.status == 0
    for name, summary in COMMANDS.items():
        assert name in ran.out
        assert summary.split()[0] in ran.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_and_takes_json(linkwise, name):
    ran = linkwise(name, "--help")
    assert ran.status == 0
    assert f"Example:\n    linkwise {name}" in ran.out
    assert "--json" in ran.out


def test_every_command_with_a_robot_takes_base_and_mimic(linkwise):
    count = 0
    for name in COMMANDS:
        said = linkwise(name, "--help").out
        if "ROBOT" in said.splitlines()[0] or f"linkwise {name} [OPTIONS] ROBOT" in said or "  ROBOT" in said:
            assert "--base" in said, name
            assert "--mimic" in said, name
            count += 1
    assert count >= 10


def test_no_arguments_show_the_help(linkwise):
    ran = linkwise()
    assert ran.status == 0
    assert "Commands:" in ran.out


def test_version(linkwise):
    assert linkwise("--version").out.startswith("linkwise 0.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("infp", "panda"), "did you mean 'info'?"),
        (("info", "pandda"), "did you mean 'panda'?"),
        (("info", "nowhere.urdf"), "nowhere.urdf: no such file"),
        (("info",), "Missing argument 'ROBOT'"),
        (("info", "panda", "--jsn"), "--json"),
        (("info", "panda", "--gravity", "1,2"), "expected 3 numbers, got 2"),
        (("info", "panda", "--gravity", "a,b,c"), "expected a finite number"),
        (("inverse", "two_link", "--trajectory", "quintic", "--to", "1,nan"), "expected a finite number"),
        (("info", "panda", "--lock", "panda_joint1"), "expected JOINT=POSITION"),
        (("info", "panda", "--lock", "pandajoint1=1"), "did you mean 'panda_joint1'?"),
        (("operations", "panda", "--function", "inverse_dynamic"), "did you mean 'inverse_dynamics'?"),
        (("generate", "panda", "mass_matrx"), "did you mean 'mass_matrix'?"),
        (("generate", "panda", "mass_matrix", "--target", "cc"), "valid: c"),
    ],
)
def test_bad_input_is_one_line(linkwise, arguments, expected):
    assert expected in linkwise(*arguments).refused()


@pytest.mark.parametrize(
    "name", ["check", "inverse --trajectory quintic --to 0", "forward --torques -", "simulate", "excite"]
)
def test_a_robot_that_does_not_move_is_one_line(linkwise, tmp_path, name):
    block = tmp_path / "block.urdf"
    block.write_text('<robot name="block"><link name="base"/></robot>')
    command, *options = name.split()
    message = linkwise(command, block, *options).refused()
    assert "block.urdf: no joint of block moves" in message


def test_a_malformed_file_is_one_line(linkwise, tmp_path):
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot name='x'><link name='a'/>\n<joint></robot>")
    assert "broken.urdf" in linkwise("info", broken).refused()


def test_warnings_come_after_the_results_and_only_then(linkwise, tmp_path):
    odd = tmp_path / "odd.urdf"
    odd.write_text(
        "<robot name='odd'><link name='a'/><link name='b'><inertial><mass value='1'/>"
        "<inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='9'/></inertial></link>"
        "<joint name='j' type='revolute'><parent link='a'/><child link='b'/><axis xyz='0 0 1'/>"
        "<limit effort='1' velocity='1' lower='-1' upper='1'/></joint></robot>"
    )
    ran = linkwise("inverse", odd, "--trajectory", "quintic", "--to", "1", "--points", "2")
    assert ran.status == 0
    assert ran.err.startswith("linkwise: warning: ")
    assert "triangle" in ran.err
    linkwise("inverse", odd, "--trajectory", "quintic").refused()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "linkwise", *arguments]


def test_as_a_module_and_into_a_closed_pipe():
    """``linkwise ... | head -1`` ends without a complaint."""
    with subprocess.Popen(
        command("inverse", "panda", "--trajectory", "quintic", "--to", "1,1,1,1,1,1,1", "--points", "20000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("t,tau1")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_a_terminal_gets_lines_and_a_pipe_does_not():
    """On a terminal the same table has rules and colour."""
    plain = subprocess.run(command("robots"), check=True, capture_output=True, text=True).stdout
    assert "\x1b[" not in plain
    assert "─" not in plain
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(command("robots"), stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    assert process.wait() == 0
    os.close(leader)
    assert "─" in shown.decode()
    assert b"puma560" in shown


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["info", "--robot", "two_link"], "two_link: 2 moving joints"),
        (["info", "--json", "--robot=two_link"], '"name": "two_link"'),
        (["generate", "pose", "two_link"], "two_link_pose"),
        (["generate", "pose", "--robot", "two_link"], "two_link_pose"),
        (["convert", "OUT.toml", "two_link"], "two_link"),
    ],
)
def test_the_robot_may_stand_elsewhere(linkwise, tmp_path, arguments, expected):
    ran = linkwise(*(word.replace("OUT", str(tmp_path / "arm")) for word in arguments))
    assert ran.status == 0, ran.err
    assert expected in ran.out


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (("--out", "tau.xlsx"), "'tau.xlsx': a table of text is written as .csv or .txt"),
        (("--report", "page.pdf"), "'page.pdf': a page is written as .html"),
        (("--out", ""), "a table of text"),
    ],
)
def test_an_ending_of_another_format_is_refused(linkwise, option, expected):
    """Other programs would misread the file."""
    given = ("inverse", "two_link", "--trajectory", "quintic", "--to", "1,1")
    assert expected in linkwise(*given, *option).refused()


def test_other_arguments_keep_their_order_where_the_robot_stands_last(linkwise, tmp_path):
    for name in ("empty", "loaded"):
        (tmp_path / f"{name}.csv").write_text("t,q1\n0,0\n")
    said = linkwise("payload", tmp_path / "empty.csv", tmp_path / "loaded.csv", "two_link").refused()
    assert "empty.csv" in said
    log = tmp_path / "log.csv"
    log.write_text("t;q1;q2;tau1;tau2\n0,0;0,1;0,2;1,5;2,5\n0,1;0,2;0,3;1,6;2,6\n")
    for order in (["two_link", log], [log, "two_link"], [log, "--robot", "two_link"]):
        assert "log.csv: 2 rows usable" in linkwise("identify", *order).refused()


def test_a_traceback_for_those_who_ask(linkwise, monkeypatch):
    monkeypatch.setenv("LINKWISE_TRACEBACK", "1")
    with pytest.raises(lw.ModelError):
        linkwise("info", "nowhere.urdf")


def test_a_bug_keeps_its_traceback_and_is_called_one(monkeypatch, capsys):
    """It is not reported as bad input: the status is not 2, and nobody looks for a mistake in a correct command."""

    def broken(*arguments, **options):
        return {}["a table of ours"]

    monkeypatch.setattr("linkwise.formats.files.read", broken)
    with pytest.raises(KeyError, match="a table of ours") as caught:
        run(["info", "two_link"])
    assert any("bug in Linkwise" in note for note in caught.value.__notes__)
