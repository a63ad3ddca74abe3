"""Options for the gains of controllers: --frequency and --damping, or --kp, --kd and --ki, or --gain NAME=…"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from linkwise.cli.support.options import NOT_NEGATIVE, POSITIVE, Numbers
from linkwise.errors import UnknownNameError, suggest

NAMES = "frequency damping kp kd ki gain"
"""For the headings of a command."""


def gain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options of gains, all of them without a default."""
    gains = Numbers(each=NOT_NEGATIVE)
    for option in (
        click.option(
            "--gain",
            multiple=True,
            metavar="NAME=V1,V2,…",
            help="Another number of a controller by its name; matrices row by row.",
        ),
        click.option("--ki", type=gains, metavar="K1,K2,…", help="Integral gains, with --kp and --kd."),
        click.option("--kd", type=gains, metavar="K1,K2,…", help="Derivative gains, with --kp."),
        click.option(
            "--kp",
            type=gains,
            metavar="K1,K2,…",
            help="Proportional gains in place of a frequency, one for all joints or one for each.",
        ),
        click.option("--damping", type=POSITIVE, help="Damping of the gains.  [default: 1]"),
        click.option(
            "--frequency",
            type=Numbers(each=POSITIVE),
            metavar="W1,W2,…",
            help="Natural frequency of the gains [rad/s], one for all joints or one for each.  [default: 10]",
        ),
    ):
        command = option(command)
    return command


def check_gains(options: Mapping[str, Any]) -> None:
    """Refuse options of gains that do not go together."""
    if (options["kp"] is None) != (options["kd"] is None) or (options["ki"] and not options["kp"]):
        raise click.UsageError("--kp and --kd go together, and --ki with both")
    if options["kp"] is not None and (options["frequency"] is not None or options["damping"] is not None):
        raise click.UsageError("--kp and --kd, or --frequency and --damping: not both")


def one_or_all(numbers: Iterable[float] | None, usual: float) -> float | list[float]:
    """The number that stands for all joints, or the list of them.

    Args:
        numbers: as given, or None.
        usual: without an option.
    """
    values = [usual] if numbers is None else list(numbers)
    return values[0] if len(values) == 1 else values


def given_gains(options: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of controllers by name, as --kp, --kd, --ki and --gain give them."""
    found = {name: one_or_all(options[name], 0.0) for name in ("kp", "kd", "ki") if options[name] is not None}
    for text in options["gain"]:
        name, equals, numbers = text.partition("=")
        try:
            values = [float(number) for number in numbers.split(",")]
        except ValueError:
            values = []
        if not equals or not values:
            raise click.UsageError(f"--gain {text}: expected NAME=V1,V2,…")
        found[name] = one_or_all(values, 0.0)
    return found


def check_names(gains: Iterable[str], laws: Mapping[str, Iterable[str]]) -> None:
    """Refuse gains that no controller has.

    Args:
        gains: names.
        laws: names of gains by controller.
    """
    known = sorted({name for names in laws.values() for name in names})
    for name in gains:
        if name not in known:
            has = " and ".join(laws) + (" has" if len(laws) == 1 else " have")
            raise UnknownNameError(f"gains: {has} no {name!r}; {suggest(name, known)}")
