"""Every numeric option of every command refuses what is not a number in its range: nothing wrong reaches the work."""

import importlib
import math

import click
import pytest

from linkwise.cli.app import COMMANDS
from linkwise.cli.support.options import LARGEST, Locked, Number, Numbers, RowRange, WholeNumber

OWN = (Number, WholeNumber, Numbers, Locked, RowRange)
ARGUMENTS = {
    "info": ["two_link"],
    "check": ["two_link"],
    "inverse": ["two_link", "--trajectory", "quintic", "--to", "1,1"],
    "forward": ["two_link", "--torques", "states.csv"],
    "simulate": ["two_link"],
    "operations": ["two_link"],
    "generate": ["two_link", "pose"],
    "excite": ["two_link"],
    "identify": ["two_link", "log.csv"],
    "view": ["two_link"],
    "study": ["study.toml"],
}


def options() -> list[tuple[str, click.Option]]:
    found = []
    for name in COMMANDS:
        command = importlib.import_module(f"linkwise.cli.{name}").command
        found += [(name, option) for option in command.params if isinstance(option, click.Option)]
    return found


NUMERIC = [(name, option) for name, option in options() if isinstance(option.type, OWN)]


def test_no_other_numeric_types():
    """click's own types let NaN and infinity through, and whole numbers of any size."""
    assert len(NUMERIC) > 30
    for name, option in options():
        assert not isinstance(option.type, type(click.INT) | type(click.FLOAT)), f"{name} {option.opts}"
        assert not isinstance(option.type, click.IntRange | click.FloatRange), f"{name} {option.opts}"


def wrong(kind: click.ParamType) -> list[str]:
    if isinstance(kind, Locked):
        return [f"joint1={value}" for value in ("nan", "inf", "-inf", "1e400", "1e31", "x", "")] + [
            "joint1",
            "=1",
        ]
    if isinstance(kind, RowRange):
        return ["0-5", "5-4", "a-b", "nan-inf", "-3-5", "7"]
    if isinstance(kind, Numbers):
        one = wrong(kind.each)
        return ["", *one, *(f"1,{value}" for value in one if value)]
    values = ["nan", "NaN", "inf", "-inf", "1e400", "-1e400", "x", "", "1e31", "-1e31"]
    if isinstance(kind, WholeNumber):
        return [*values, "1.5", str(kind.least - 1), str(kind.most + 1), "9" * 30]
    values += [repr(bound) for bound in (kind.above, kind.below) if bound is not None]
    if kind.least > -LARGEST:
        values.append(repr(math.nextafter(kind.least, -math.inf)))
    if kind.most < LARGEST:
        values.append(repr(math.nextafter(kind.most, math.inf)))
    if kind.above is not None:
        values.append(repr(-1.0))
    return values


@pytest.mark.parametrize(("name", "option"), NUMERIC, ids=[f"{name} {o.opts[0]}" for name, o in NUMERIC])
def test_wrong_numbers_are_one_line_that_names_the_option(linkwise, name, option):
    for value in wrong(option.type):
        message = linkwise(name, *ARGUMENTS.get(name, ()), f"{option.opts[0]}={value}").refused()
        assert option.opts[0] in message
        assert "expected" in message


@pytest.mark.parametrize(("name", "option"), NUMERIC, ids=[f"{name} {o.opts[0]}" for name, o in NUMERIC])
def test_defaults_are_allowed(name, option):
    default = option.get_default(click.Context(click.Command(name)))
    if isinstance(option.default, int | float | str) and not isinstance(option.default, bool):
        option.type.convert(default, option, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ["inverse", "two_link", "--trajectory", "quintic", "--to", "1,1", "--points", "999999999"],
        ["inverse", "two_link", "--trajectory", "quintic", "--to", "1,1", "--points", "99999999999"],
        ["simulate", "two_link", "--duration", "1e29"],
        ["simulate", "two_link", "--step", "1e-29"],
        ["simulate", "two_link", "--duration", "inf"],
        ["excite", "two_link", "--out", "/dev/null", "--rate", "1e20"],
        ["excite", "two_link", "--out", "/dev/null", "--periods", "1e20"],
        ["bench", "--robot", "two_link", "--batch", "100000000"],
    ],
)
def test_memory_is_bounded_before_it_is_taken(linkwise, arguments):
    assert "expected" in (said := linkwise(*arguments).refused()) or "that are allowed" in said


BOX = """<robot name="box"><link name="base"/><link name="tip"/>
<joint name="weld" type="fixed"><parent link="base"/><child link="tip"/></joint></robot>"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["inverse", "--trajectory", "quintic", "--to", "1"],
        ["forward", "--torques", "none.csv"],
        ["simulate"],
        ["excite"],
        ["identify", "none.csv"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_robots_without_joints(linkwise, tmp_path, arguments):
    (tmp_path / "box.urdf").write_text(BOX)
    command, *rest = arguments
    assert "no joint of box moves" in linkwise(command, tmp_path / "box.urdf", *rest).refused()


def test_robots_without_joints_in_python(tmp_path):
    import linkwise as lw
    from linkwise import control, identify, motion, simulate

    (tmp_path / "box.urdf").write_text(BOX)
    box = lw.load(tmp_path / "box.urdf")
    for act in (
        lambda: simulate.simulate(box, control.Passive(box), duration=0.1),
        lambda: identify.excite(box),
        lambda: motion.inverse_kinematics(box, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
    ):
        with pytest.raises(lw.ModelError, match="no joint of box moves"):
            act()


def test_each_target_of_generate_has_one_option(tmp_path, capsys):
    """``--casadi`` and ``--acados`` write what ``--target`` does, say so, and are not listed."""
    from linkwise.cli import main

    for target in ("casadi", "acados"):
        files = [tmp_path / f"{target}{k}.c" for k in range(2)]
        for file, option in zip(files, (["--target", target], [f"--{target}"]), strict=True):
            assert (
                main(
                    ["generate", "two_link", "forward_dynamics", *option, "--name", "arm", "--out", str(file)]
                )
                == 0
            )
        assert files[0].read_bytes() == files[1].read_bytes()
        assert capsys.readouterr().err.count(f"--{target}: type --target {target} instead") == 1
        assert main(["generate", "two_link", "pose", f"--{target}", "--target", "wasm"]) == 2
        assert "give --target alone" in capsys.readouterr().err
    assert main(["generate", "--help"]) == 0
    text = capsys.readouterr().out
    assert "casadi" in text
    assert "--casadi" not in text
