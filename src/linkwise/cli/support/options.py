"""Arguments and options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click import shell_completion

from linkwise.cli.support.headings import PAGE, TABLE, open_option
from linkwise.errors import suggest

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot


LARGEST = 1e30  # larger numbers are no physical quantities, and powers of them overflow


class Number(click.ParamType):
    """A finite number within bounds; ``above`` and ``below`` exclude the bound, ``least`` and ``most`` include it."""

    name = "number"

    def __init__(
        self,
        *,
        least: float = -LARGEST,
        most: float = LARGEST,
        above: float | None = None,
        below: float | None = None,
    ):
        self.least, self.most, self.above, self.below = least, most, above, below

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not self.allows(number):
            self.fail(f"{value!r}: expected {self.described()}", param, ctx)
        return number

    def allows(self, number: float) -> bool:
        inside = self.least <= number <= self.most
        return (
            inside
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def described(self) -> str:
        """What is expected, in words."""
        if self.above == 0 and self.below is None and self.most == LARGEST:
            return "a positive number"
        low = f"more than {self.above:g}" if self.above is not None else ""
        low = low or (f"at least {self.least:g}" if self.least > -LARGEST else "")
        high = f"less than {self.below:g}" if self.below is not None else ""
        high = high or (f"at most {self.most:g}" if self.most < LARGEST else "")
        bounds = " and ".join(filter(None, (low, high)))
        return f"a finite number{', ' if bounds else ''}{bounds}"


class WholeNumber(click.ParamType):
    """A whole number within bounds, both included. The upper one bounds memory and time."""

    name = "whole number"

    def __init__(self, least: int, most: int):
        self.least, self.most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = None
        if number is None or not self.least <= number <= self.most:
            self.fail(f"{value!r}: expected a whole number from {self.least} to {self.most}", param, ctx)
        return number


POSITIVE = Number(above=0)
NOT_NEGATIVE = Number(least=0)
SEED = WholeNumber(0, 2**63 - 1)


class Numbers(click.ParamType):
    """Numbers separated by commas: 0,-45,90."""

    name = "numbers"

    def __init__(self, count: int | None = None, each: Number | WholeNumber | None = None):
        self.count = count
        self.each = each or Number()

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        if not isinstance(value, str):
            return tuple(value)
        parts = value.replace(",", " ").split()
        if not parts:
            self.fail(f"{value!r}: expected finite numbers separated by commas", param, ctx)
        numbers = tuple(self.each.convert(part, param, ctx) for part in parts)
        if self.count is not None and len(numbers) != self.count:
            self.fail(f"{value!r}: expected {self.count} numbers, got {len(numbers)}", param, ctx)
        return numbers


class Locked(click.ParamType):
    """JOINT=POSITION."""

    name = "joint=position"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        if not isinstance(value, str):
            return value
        joint, sign, position = value.rpartition("=")
        if not sign or not joint:
            self.fail(f"{value!r}: expected JOINT=POSITION, for example finger_joint1=0.02", param, ctx)
        return joint, Number().convert(position, param, ctx)


class OneOf(click.ParamType):
    """One of a few names; a mistyped one suggests the nearest."""

    def __init__(self, names: Sequence[str], what: str = "name"):
        self.names = tuple(names)
        self.name = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.names:
            self.fail(f"no {value!r}; {suggest(value, self.names)}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[shell_completion.CompletionItem]:
        return completions(self.names, incomplete)


def completions(names: Iterable[str], incomplete: str) -> list[shell_completion.CompletionItem]:
    """Shell completion: the names with this prefix."""
    return [shell_completion.CompletionItem(name) for name in names if name.startswith(incomplete)]


class RowRange(click.ParamType):
    """FIRST-LAST, counted from 1, both included."""

    name = "rows"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if not isinstance(value, str):
            return value
        first, _, last = value.replace(",", "-").replace(":", "-").partition("-")
        try:
            rows = int(first), int(last)
        except ValueError:
            rows = (0, 0)
        if not 1 <= rows[0] <= rows[1]:
            self.fail(f"{value!r}: expected FIRST-LAST, counted from 1, for example 635-3510", param, ctx)
        return rows


_report = click.option("--report", type=PAGE, metavar="FILE.html", help="Write a page with plots.")


def report_option(command: Callable) -> Callable:
    """``--report``, and ``--open`` for it."""
    return _report(open_option(command))


table_option = click.option(
    "--out",
    type=TABLE,
    metavar="FILE",
    help="Write the table here and print a summary; default: standard output.",
)
figures_option = click.option(
    "--figures", metavar="DIR", help="Write the plots of the report as SVG files into this folder."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def _complete_robot(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[shell_completion.CompletionItem]:
    """Shell completion: bundled robots with this prefix, otherwise files."""
    from linkwise.formats.files import bundled_names

    return completions(bundled_names(), incomplete) or [
        shell_completion.CompletionItem(incomplete, type="file")
    ]


_ALLOWED = "linkwise.allowed"  # where the context of a command keeps the folders of --allow


def _remember_allowed(context: click.Context, _: click.Parameter, folders: tuple[str, ...]) -> None:
    """Folders are kept in the context: every command has the option, and ``load_robot`` alone needs its value."""
    context.meta[_ALLOWED] = folders


def robot_options(*, required: bool = True) -> Callable[[Callable], Callable]:
    """ROBOT with the options that change it; read it with ``load_robot``."""
    gravity_help = "Gravity in the base frame [m/s²], instead of the robot's."
    decorators = [
        click.argument("robot", required=required, shell_complete=_complete_robot),
        click.option("--gravity", type=Numbers(3), metavar="X,Y,Z", help=gravity_help),
        click.option(
            "--lock", type=Locked(), multiple=True, metavar="JOINT=POSITION", help="Fix a joint [rad or m]."
        ),
        click.option(
            "--base",
            type=OneOf(("fixed", "floating", "planar"), "base"),
            default="fixed",
            help="How the base link moves: fixed (default), floating or planar.",
        ),
        click.option(
            "--mimic",
            type=OneOf(("coupled", "independent"), "mimic"),
            default="coupled",
            help="Joints that mimic another one: coupled to it (default) or independent.",
        ),
        click.option(
            "--allow",
            multiple=True,
            metavar="DIR",
            expose_value=False,
            callback=_remember_allowed,
            help="A folder, besides the robot's own, whose files it may name (include, attach, meshes).",
        ),
    ]

    def decorated(command: Callable) -> Callable:
        for decorate in reversed(decorators):
            command = decorate(command)
        return command

    return decorated


robot_argument = robot_options()
ROBOT_OPTIONS = ("gravity", "lock", "base", "mimic", "allow")  # that change a robot, or where its files are


def command_line() -> list[str]:
    """What was typed after ``linkwise``, for reports."""
    return list(click.get_current_context().find_root().obj or ())


def load_robot(
    source: str,
    gravity: Sequence[float] | None = None,
    lock: Sequence[tuple[str, float]] = (),
    base: str = "fixed",
    mimic: str = "coupled",
    *,
    moving: bool = False,
    contact: bool = False,
) -> Robot:
    """The robot that the options describe; ``moving`` refuses one without a joint that moves, ``contact`` takes the
    contacts of its file."""
    import linkwise as lw

    names = [joint for joint, _ in lock]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"--lock: {name!r} is given {names.count(name)} times")
    context = click.get_current_context(silent=True)
    allow = () if context is None else context.meta.get(_ALLOWED, ())
    robot = lw.load(
        source, gravity=gravity, lock=dict(lock), base=base, mimic=mimic, allow=allow, contact=contact
    )
    if moving and robot.dof == 0:
        raise lw.ModelError(f"{source}: no joint of {robot.name} moves, so there is nothing to compute")
    return robot
