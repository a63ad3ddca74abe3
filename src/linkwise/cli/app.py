"""The commands by name, and their errors.

Bad input ends with exit status 2 and one line on standard error, never a traceback.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click

from linkwise.arguments.guesses import PARTS
from linkwise.arguments.wrong_arguments import BUG, is_bug
from linkwise.cli.support import layout
from linkwise.cli.support.ending import Ended, ended_by_signals
from linkwise.cli.support.headings import WithExamples, first_example
from linkwise.cli.support.streams import all_letters_writable
from linkwise.cli.support.warned import show_warnings
from linkwise.core import children, foreign
from linkwise.core.other_names import by_words, nearest, option_instead
from linkwise.errors import LinkwiseError, suggest
from linkwise.study.errors import StoppedError

# Listed here, so that ``linkwise --help`` does not import them: linkwise.cli.NAME has the command as ``command``.
COMMANDS = {
    "tour": "A first look at one robot: oddities, payload, speed, C code, one report.",
    "demo": "The PUMA 560 experiment of 1990, end to end.",
    "robots": "The bundled robots.",
    "info": "What is in a robot: joints, links, frames, parameters.",
    "convert": "A robot as another file: TOML, URDF or MJCF.",
    "check": "Every algorithm and every installed engine on one robot.",
    "inverse": "Joint torques along a motion.",
    "forward": "Joint accelerations for torques.",
    "simulate": "A controlled arm in closed loop.",
    "operations": "Operation counts of every algorithm, beside the published ones.",
    "generate": "Source code of one function of one robot.",
    "plan": "A motion that touches nothing, in the shortest time.",
    "certify": "Bounds of generated code that hold for every state within the limits.",
    "excite": "A motion that shows every parameter of a robot.",
    "identify": "A robot from recordings of its motion: parameters, code, report.",
    "calibrate": "The geometry of a robot from measured poses of its tool.",
    "elastic": "Elastic joints of a robot: stiffness from positions of motors and links.",
    "payload": "The load that a robot carried, or the gains of its drives.",
    "view": "A robot in the browser: joints, torques, motions, controllers.",
    "study": "Parameter sweeps and Monte Carlo, on this machine or a cluster.",
    "bench": "Speed, side by side with other libraries.",
}

BAD_INPUT = 2
_NO_ARGUMENTS: Any = getattr(
    click.exceptions, "NoArgsIsHelpError", ()
)  # before click 8.2 help is printed and left
_FAILED_WRITES = (errno.EBADF, errno.ENOSPC, errno.EIO)  # errors of files name them; those of streams do not


class Commands(WithExamples, click.Group):
    """A group whose members are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"linkwise.cli.{cmd_name}").command

    def resolve_command(self, ctx: click.Context, args: list[str]):
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(f"no command {name!r}; {_instead_of_command(name)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _instead_of_command(name: str) -> str:
    """What to type instead: a command, or what the table says where no command does it."""
    typed = name.lower().replace("-", "_")
    said = by_words(typed, "command") or ""
    if re.fullmatch(r"linkwise \w+", said):
        return f"did you mean {said.partition(' ')[2]!r}? commands: {', '.join(COMMANDS)}"
    if said:
        return f"use {said}"
    if not nearest(typed, COMMANDS):
        for section in ("robot", *PARTS):
            if use := by_words(name, section):
                return f"in Python use {use}; commands: {', '.join(COMMANDS)}"
    return suggest(typed, COMMANDS).replace("valid:", "commands:")


def _show_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from linkwise import __version__

        click.echo(f"linkwise {__version__}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version.",
)
def linkwise() -> None:
    """The dynamics of robot arms, link by link.

    ROBOT is the name of a bundled robot or a file: .urdf, .xml (MJCF), .toml (DH or modified DH), .spec (1992 format);
    with the package robot_descriptions installed, also one of its names, such as ur5e_description.

    \b
    Example:
      linkwise tour panda
      linkwise info panda
      linkwise inverse puma560 --trajectory quintic --to 90,-45,45,0,30,0 --degrees --out torques.csv
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is the result."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    _reserve_standard_streams()
    with all_letters_writable():
        return _run(typed)


def _run(typed: list[str]) -> int:
    try:
        others = (
            children.OtherPackages() if typed[:1] != ["study"] else contextlib.nullcontext()
        )  # runs user code
        with others, ended_by_signals(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                status = linkwise.main(typed, prog_name="linkwise", standalone_mode=False, obj=typed)
            except click.exceptions.Exit as stop:
                status = stop.exit_code
        show_warnings(caught)  # after the results, and on success only: an error is one line
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except _NO_ARGUMENTS as help_text:
        click.echo(help_text.format_message())
        return 0
    except click.ClickException as error:
        return _complain(_with_command(error))
    except (LinkwiseError, ValueError) as error:
        if os.environ.get("LINKWISE_TRACEBACK") or is_bug(error):
            raise
        status = _complain(str(error))
        return 128 + error.signal if isinstance(error, StoppedError) and error.signal else status
    except BrokenPipeError:
        _close_quietly()
        return 0
    except OSError as error:
        if (
            error.filename is None and error.errno in _FAILED_WRITES
        ):  # standard output, which would fail again
            _close_quietly()
        return _complain(_operating_system_said(error))
    except MemoryError as error:
        return _complain(f"not enough memory: {error}" if str(error) else "not enough memory")
    except Ended as ended:
        return ended.status
    except (KeyboardInterrupt, click.Abort):
        print(file=sys.stderr)
        return 130
    except Exception as error:  # the traceback is what a report of it needs
        if not is_bug(error):
            error.add_note(f"{BUG} linkwise {' '.join(typed)}")
        raise


def _complain(message: str) -> int:
    """One line; a terminal that is narrower gets it broken between words."""
    line = foreign.line(f"linkwise: {' '.join(message.split())}")
    width = layout.width_of(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None
    click.echo(layout.prose(line, width), err=True)
    return BAD_INPUT


def _with_command(error: click.ClickException) -> str:
    """The message of a wrong option or argument, with a pointer to the help of its command."""
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption):
        message = _without_option(error.option_name, context)
        if ";" not in message and (example := first_example(context)):
            message += f"; for example: {example}"
    elif extra := re.match(r"Got unexpected extra arguments? \((\S+?)\)?(?: |$)", message):
        message = _after_a_flag(extra.group(1), context) or message
    elif isinstance(error, click.MissingParameter) and (example := first_example(context)):
        message = f"{message.rstrip('.')}; for example: {example}"
    if context is not None and context.parent is not None:
        return f"{context.info_name}: {message.rstrip('.')} (see: {context.command_path} --help)"
    return message


def _after_a_flag(extra: str, context: click.Context | None) -> str | None:
    """The message of an argument that was typed as the value of an option that takes none; None for other arguments."""
    typed = context.obj if context is not None and isinstance(context.obj, list) else []
    flags = [
        o
        for param in (context.command.params if context else ())
        if getattr(param, "is_flag", False)
        for o in param.opts
    ]
    before = typed[typed.index(extra) - 1] if extra in typed[1:] else ""
    if before not in flags:
        return None
    if before == "--json":
        return f"--json takes no file; it prints to standard output: --json > {extra}"
    return f"{before} takes no value; got {extra}"


def _without_option(name: str, context: click.Context | None) -> str:
    """The message of an option that a command does not have: the one that means it, not one with similar letters."""
    has = [each for param in context.command.params for each in param.opts] if context is not None else []
    use = option_instead(name, has)
    arguments = [
        param.human_readable_name.rstrip(".…")
        for param in (context.command.params if context is not None else ())
        if isinstance(param, click.Argument)
    ]
    if (argument := name.lstrip("-").upper()) in arguments:
        return f"no option {name}; {argument} is given without it"
    if use == "--no-open":
        return f"no option {name}; the page is opened unless --no-open is given"
    if use == "--open" and name.startswith("--no-"):
        return f"no option {name}; the page is opened only where --open is given"
    return f"no option {name}{f'; did you mean {use}?' if use else ''}"


def _operating_system_said(error: OSError) -> str:
    if error.filename is None:
        return f"standard output: {error.strerror}" if error.errno in _FAILED_WRITES else str(error)
    return f"{error.filename}: {error.strerror or error}"


def _close_quietly() -> None:
    """Nothing more can be written to standard output: prevents an error of Python at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reserve_standard_streams() -> None:
    """Open standard streams that the caller has closed, so that no file of ours gets their numbers.

    They are opened the wrong way round: reading standard input finds its end, writing to standard output is an error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(
                os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR
            )  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
