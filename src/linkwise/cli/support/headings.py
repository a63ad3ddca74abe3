"""The help of commands: options under headings, required ones first; examples that fit the terminal;
``--open``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from linkwise.cli.support.layout import shown_width
from linkwise.files.outputs import is_standard_output

OPEN = "linkwise.open"  # in click's context: the page is to be shown
QUIET = "linkwise.quiet"  # in click's context: no progress is shown
PRECISIONS = ("--float32", "--float64")

REQUIRED, OTHERS, LAST = "Required", "Options", "Help"
COMMON = {  # options that several commands share, shown after those of the command itself
    "Robot": "gravity lock base mimic",
    "Output": "out report figures open json quiet",
    LAST: "help version",
}


class Formatter(click.HelpFormatter):
    """Breaks lines between words, never at the hyphens in them, as in the names of options."""

    UNBREAKABLE = "\u2011"

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", self.UNBREAKABLE))

    def write_dl(self, rows: Sequence[tuple[str, str]], *arguments: Any, **options: Any) -> None:
        kept = [
            (first.replace("-", self.UNBREAKABLE), second.replace("-", self.UNBREAKABLE))
            for first, second in rows
        ]
        super().write_dl(kept, *arguments, **options)

    def getvalue(self) -> str:
        return super().getvalue().replace(self.UNBREAKABLE, "-")


class Context(click.Context):
    """Of commands whose help is written by ``Formatter``."""

    formatter_class = Formatter


class WithExamples(click.Command):
    """A command whose examples are continued on the next line, as a shell reads them, where they are too long."""

    context_class = Context

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        before, width = self.help, formatter.width - 2  # the whole text is indented by two
        if before is not None:
            self.help = "\n".join(part for line in before.split("\n") for part in _continued(line, width))
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = before


def first_example(ctx: click.Context | None) -> str:
    """The first example in the help of a command, in one line; empty where it has none."""
    lines = ((ctx.command.help or "") if ctx is not None else "").split("\n")
    begins = [k for k, line in enumerate(lines) if line.strip().startswith("linkwise ")]
    return lines[begins[0]].strip().rstrip("\\").strip() if begins else ""


class Command(WithExamples):
    """A command whose help shows its options under headings, and whose page ``--open`` opens.

    Args:
        headings: {heading: names of its options, separated by blanks}.
        page: the page that the command writes, from the values of its options; None where it writes none.
    """

    def __init__(
        self,
        *arguments: Any,
        headings: Mapping[str, str] | None = None,
        page: Callable[[dict[str, Any]], str | None] = lambda given: given.get("report"),
        **options: Any,
    ):
        super().__init__(*arguments, **options)
        self.headings = dict(headings or {})
        self.page = page
        self.params.append(quiet_option())
        for parameter in self.params:
            if "--out" in parameter.opts:
                parameter.opts.insert(0, "-o")
            if parameter.type is click.STRING and _PATH.search(
                parameter.metavar or str(parameter.name).upper()
            ):
                parameter.type = PathName()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``--robot X`` means X as ROBOT, and ROBOT may stand after the other arguments; ``--float32`` means
        ``--dtype float32``."""
        known = {each for parameter in self.params for each in parameter.opts}
        if "--dtype" in known:
            both = (
                ["--dtype", word[2:]] if word in PRECISIONS and word not in known else [word] for word in args
            )
            args = [word for words in both for word in words]
        takes_robot = any(isinstance(each, click.Argument) and each.name == "robot" for each in self.params)
        if takes_robot:
            args = _robot_first(args)
        rest = super().parse_args(ctx, args)
        if takes_robot and not ctx.resilient_parsing:
            _exchange(ctx.params, [each.name for each in self.params if isinstance(each, click.Argument)])
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and open the page that it has written if that was asked for."""
        if not ctx.meta.get(OPEN):
            return super().invoke(ctx)
        page = self.page(ctx.params)
        if page is None or is_standard_output(page):
            raise click.UsageError("--open shows a page: give --report FILE.html", ctx)
        result = super().invoke(ctx)
        open_in_browser(Path(page).resolve().as_uri())
        return result

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, options in self.grouped(ctx).items():
            rows = [record for option in options if (record := option.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def grouped(self, ctx: click.Context) -> dict[str, list[click.Parameter]]:
        """The options by heading, in the order in which they are shown; within one as the heading names them."""
        own = [*self.headings, *(name for name in COMMON if name not in self.headings)]
        groups: dict[str, list[click.Parameter]] = {
            name: [] for name in (REQUIRED, OTHERS, *sorted(own, key=lambda name: name in COMMON))
        }
        order: dict[str, tuple[str, int]] = {}
        for listed in (COMMON, self.headings):
            for heading, names in listed.items():
                order |= {name: (heading, k) for k, name in enumerate(names.split())}
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        options.sort(key=lambda option: order.get(name_of(option), ("", 0))[1])
        for option in options:
            heading, _ = order.get(name_of(option), (OTHERS, 0))
            groups[REQUIRED if option.required else heading].append(option)
        return groups


def _robot_first(args: list[str]) -> list[str]:
    """The arguments with the value of ``--robot`` as the first."""
    for k, word in enumerate(args):
        if word == "--":
            break
        if word == "--robot" and k + 1 < len(args):
            return [args[k + 1], *args[:k], *args[k + 2 :]]
        if word.startswith("--robot="):
            return [word.partition("=")[2], *args[:k], *args[k + 1 :]]
    return args


def _exchange(given: dict[str, Any], names: Sequence[str | None]) -> None:
    """Move the only argument that is a robot to the front where ROBOT is none; the others keep their order."""
    typed: list[Any] = []
    for name in names:
        value = given.get(str(name))
        typed += value if isinstance(value, tuple) else [value]
    robots = [k for k, value in enumerate(typed) if _is_robot(value)]
    if len(robots) != 1 or robots == [0] or names[0] != "robot":
        return
    ordered = [typed.pop(robots[0]), *typed]
    for name in names:
        count = len(given[str(name)]) if isinstance(given[str(name)], tuple) else None
        taken = [ordered.pop(0) for _ in range(1 if count is None else count)]
        given[str(name)] = taken[0] if count is None else tuple(taken)


def _is_robot(name: Any) -> bool:
    """Whether this looks like a robot: a bundled one, one of robot_descriptions, or a robot file that exists."""
    from linkwise.formats.files import READ_ENDINGS, bundled_names

    text = str(name)
    if text in bundled_names() or text.endswith("_description"):
        return True
    return text.lower().endswith(READ_ENDINGS) and Path(text).is_file()


class PathName(click.ParamType):
    """A file or folder, which shells complete."""

    name = "text"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str):
        return [CompletionItem(incomplete, type="file")]


class Output(PathName):
    """A file to be written; an ending that means another format is refused, as other programs would misread it."""

    def __init__(self, what: str, *endings: str):
        self.what, self.endings = what, endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        ending = Path(value).suffix.lower()
        if not value or (ending in OTHER_FORMATS and ending not in self.endings):
            self.fail(f"{value!r}: {self.what} is written as {' or '.join(self.endings)}", param, ctx)
        return value


OTHER_FORMATS = frozenset(
    [
        ".html",
        ".htm",
        ".csv",
        ".txt",
        ".tsv",
        ".json",
        ".pdf",
        ".doc",
        ".docx",
        ".odt",
        ".md",
        ".png",
        ".jpg",
        ".svg",
        ".xls",
        ".xlsx",
        ".ods",
        ".parquet",
        ".npz",
        ".npy",
        ".mat",
        ".h5",
        ".hdf5",
        ".pickle",
        ".pkl",
        ".bag",
        ".db3",
        ".mcap",
        ".zip",
        ".urdf",
        ".xml",
        ".toml",
        ".c",
        ".h",
        ".cu",
        ".cpp",
        ".hpp",
        ".rs",
        ".py",
        ".ipynb",
        ".js",
        ".mjs",
        ".wasm",
        ".fmu",
        ".o",
        ".so",
        ".a",
        ".gz",
        ".tar",
    ]
)
PAGE = Output("a page", ".html", ".htm")
TABLE = Output("a table of text", ".csv", ".txt")
C_FILE = Output("C code", ".c")

_PATH = re.compile(r"\b(FILE|DIR|LOG|LOGS|LOADED|UNLOADED|MEASUREMENTS|ROBOT2)\b")


def _wants_page(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    ctx.meta[OPEN] = wanted


open_option = click.option(
    "--open",
    is_flag=True,
    expose_value=False,
    callback=_wants_page,
    help="Show the written page in the browser.",
)


def _wants_quiet(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    ctx.meta[QUIET] = wanted


def is_quiet() -> bool:
    """Whether ``--quiet`` was typed."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def quiet_option() -> click.Option:
    """``-q``, which every command has."""
    names = ["-q", "--quiet"]
    return click.Option(
        names, is_flag=True, expose_value=False, callback=_wants_quiet, help="Show no progress."
    )


def open_in_browser(address: str) -> None:
    """Show a page; where there is no browser with a window, say what to open."""
    import webbrowser

    if not _has_windows() or not webbrowser.open(address):
        click.echo(f"no browser was found; the page is {address}", err=True)


def _has_windows() -> bool:
    """Whether a browser can open a window; without one, such as over ssh, a text browser would take the terminal."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in names)


def name_of(option: click.Parameter) -> str:
    """``out`` of ``--out``."""
    return max(option.opts, key=len).lstrip("-")


def command(
    name: str, headings: Mapping[str, str] | None = None, **options: Any
) -> Callable[[Callable], click.Command]:
    """Like ``click.command``, with the options of ``Command``."""
    return click.command(name, cls=Command, headings=headings, **options)


def _continued(line: str, width: int) -> Sequence[str]:
    """A line with an example, broken between words with a backslash at the end of each but the last."""
    if shown_width(line) <= width or not line.strip().startswith("linkwise "):
        return [line]
    begin = " " * (len(line) - len(line.lstrip()))
    lines, part = [], begin
    for word in re.findall(r"--\S+ [^-]\S*|\S+", line):  # an option stays with its value
        added = part + word if not part.strip() else f"{part} {word}"
        if part.strip() and shown_width(added) > width - 2:
            lines.append(f"{part} \\")
            added = f"{begin}    {word}"
        part = added
    return [*lines, part]
