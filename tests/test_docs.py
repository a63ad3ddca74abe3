"""Every code block of the documentation is run, in the order of its page, in one folder per page.

A ``python`` block runs in the page's own names, a ``sh`` block in bash; what they print is compared with the ``text``
block that follows. A ``toml`` block is a robot, a layout of recordings or a study, and is loaded; a block that begins
with a comment with a file's name is written to that file first. ``<!-- skip: reason -->`` on the line before a block
leaves it out.

A ``python`` block that imports one of ``OTHERS`` is left out where that library is not installed, and one that needs a
GPU where there is none.

``LINKWISE_UPDATE_DOCS=1`` writes what is printed into the pages instead of comparing it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import linkwise as lw
from linkwise import identify

DOCS = Path(__file__).parents[1] / "docs"
UPDATE = bool(os.environ.get("LINKWISE_UPDATE_DOCS"))
RUN_ELSEWHERE = "py"  # blocks of this language: by tests/frameworks/test_pages.py
BLOCK = re.compile(r"(?:<!-- skip: ([^>]+) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHERS = ("pinocchio", "mujoco", "roboticstoolbox", "pybullet", "pydrake", "casadi", "torch")
FILE = re.compile(r"(?:#|//|/\*|%) ?([\w./-]+\.\w+)(?: \*/)?\n")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
PAGES = sorted(DOCS.rglob("*.md"))


@dataclass(frozen=True)
class Block:
    """One fenced block; ``start`` and ``end`` are where its text lies in the page."""

    language: str
    code: str
    skip: str | None
    start: int
    end: int


def blocks(path: Path) -> list[Block]:
    found = BLOCK.finditer(path.read_text(encoding="utf-8"))
    return [Block(match[2], match[3], match[1], match.start(3), match.end(3)) for match in found]


def has_gpu() -> bool:
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # not installed, no driver, no device
        return False


def is_runnable(block: Block) -> bool:
    """Whether the libraries that the block imports are installed, and the GPU that it uses is there."""
    if block.language == "python" and re.search(r'import cupy|device="cuda"', block.code) and not has_gpu():
        return False
    wanted = re.findall(r"^(?:import|from) (\w+)", block.code, re.MULTILINE)
    return all(find_spec(name) is not None for name in wanted if name in OTHERS)


class Runner:
    """Runs the blocks of one page in the current folder."""

    def __init__(self, page: Path):
        self.page = page
        self.names: dict = {"__name__": "__main__"}  # as where a reader types it
        self.printed = ""
        binaries = Path(sys.executable).parent
        self.environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "COLUMNS": "120"}
        self.environment["PYTHONPATH"] = str(Path(__file__).parents[1])  # research

    def run(self, block: Block) -> None:
        file = FILE.match(block.code)
        if (
            block.language == "sh"
            and re.search(r"^gcc ", block.code, re.MULTILINE)
            and shutil.which("gcc") is None
        ):
            pytest.skip("no gcc")
        if file and block.language != "python":
            Path(file[1]).write_text(block.code, encoding="utf-8")
        match block.language:
            case "python":
                self.python(block.code)
            case "sh":
                self.shell(block.code)
            case "toml":
                self.toml(block.code)
            case "text":
                pass
            case _:
                assert file, (
                    f"a block of language {block.language!r} that is not run: name its file or mark it with skip"
                )

    def python(self, code: str) -> None:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, self.page.name, "exec"), self.names)
        self.printed = printed.getvalue()

    def toml(self, code: str) -> None:
        data = tomllib.loads(code)
        if "compute" in data:
            pytest.importorskip("dask")
            assert lw.study(data).points > 0
        elif set(data) <= {"columns", "units", "drive", "recording"}:
            assert identify.Layout.of(data) != identify.Layout()
        else:
            Path("block.toml").write_text(code, encoding="utf-8")
            assert lw.load("block.toml").dof > 0

    def shell(self, code: str) -> None:
        ran = subprocess.run(["bash", "-e", "-c", code], capture_output=True, text=True, env=self.environment)
        assert ran.returncode == 0, ran.stderr
        self.printed = ran.stdout


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_blocks(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(path)
    wanted = [b for b in found if b.language != RUN_ELSEWHERE]
    if not any(b.language not in ("text", "") for b in wanted):
        pytest.skip("no code that is not run elsewhere")
    runner = Runner(path)
    changes: list[tuple[Block, str]] = []
    last: Block | None = None
    for block in found:
        if block.skip or block not in wanted or not is_runnable(block):
            last = None
            continue
        if block.language == "text" and last is not None:
            if UPDATE:
                changes.append((block, runner.printed))
            else:
                assert runner.printed == block.code
        elif block.language or FILE.match(block.code):
            runner.run(block)
        last = block if block.language in ("python", "sh") else None
    if UPDATE:
        _write(path, changes)


def _write(path: Path, changes: list[tuple[Block, str]]) -> None:
    text = path.read_text(encoding="utf-8")
    for block, printed in reversed(changes):
        text = text[: block.start] + printed + text[block.end :]
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in LINK.findall(text):
        assert (path.parent / target).exists(), target


def test_skipped_blocks_say_why():
    for path in PAGES:
        for block in blocks(path):
            assert block.skip is None or len(block.skip) > 8, f"{path.name}: {block.skip!r} is no reason"


def test_pages_of_the_site_exist():
    text = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    made = ("api/", "examples/", "notebooks/", "contributing.md", "changelog.md", "promises.md")
    for name in re.findall(r": ([\w/]+\.md)$", text, re.MULTILINE):
        assert name.startswith(made) or (DOCS / name).exists(), name


def test_messages_of_troubleshooting_are_those_of_the_source():
    """Every message in the first column is a text that the package can print."""
    source = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted((DOCS.parent / "src").rglob("*.py"))
    )
    plain = re.sub(r'"\s+f?"', "", source)  # texts over several lines
    text = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    cells = [row.split(" | ")[0] for row in re.findall(r"^\| (.+) \|$", text, re.MULTILINE)]
    messages = [piece for cell in cells for piece in re.findall(r"`([^`]+)`", cell)]
    assert len(messages) > 20
    for message in messages:
        for piece in message.split("…"):
            assert piece.strip() in plain, message


def test_words_of_users_belong_to_one_page_each():
    """`docs/figures/site_check.py` tries them in a browser."""
    rows = tomllib.loads((DOCS / "search_words.toml").read_text(encoding="utf-8"))
    words = [word for row in rows.values() for word in row.split()]
    assert len(words) == len(set(words)) >= 100
    for name in rows:
        assert (DOCS / f"{name}.md").exists(), name


OLD_PAGES = """
    tutorials/controller tutorials/five_minutes tutorials/identify tutorials/million_robots
    tutorials/other_libraries tutorials/own_kernel tutorials/view tutorials/your_own_robot howto/cluster
    howto/friction howto/gravity_compensation howto/microcontroller howto/payload_capability howto/ros2
    howto/training_loop howto/trusted_inertias calibration casadi_scipy_notebooks closed_loop collision
    command_line constraints contact control conventions embedded environments evidence float32 formats
    frameworks gpu identification motion moving_bases online optimal papers pick_and_place planning platforms
    predictive_control processors promises realtime recordings records refuted simulation studies systems
    task_space whole_body theory/contact theory/fijany_scheid theory/izaguirre theory/kozlowski
    theory/optimal_control theory/rodriguez theory/soft_contact theory/valera
"""


def test_every_old_page_has_a_new_place():
    """Pages of the time before the five tabs: each is in the table, with a link or under its old name."""
    rows = re.findall(
        r"^\| (.+?) \| (.+) \|$", (DOCS / "old_pages.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    for name in OLD_PAGES.split():
        places = [new for old, new in rows if re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", old)]
        assert places, name
        assert any("](" in new for new in places) or (DOCS / f"{name}.md").exists() or name == "promises", (
            name
        )


def test_formulas_are_understood_by_katex(tmp_path):
    """Those in running text and tables as well as those on lines of their own."""
    node = shutil.which("node") or pytest.skip("no node")
    found: list[tuple[str, str]] = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        found += [(page.name, each) for each in re.findall(r"^\$\$$(.*?)^\$\$$", text, re.M | re.S)]
        text = re.sub(r"^\$\$$.*?^\$\$$", "", text, flags=re.M | re.S)
        found += [(page.name, each) for each in re.findall(r"\$([^$\n]+)\$", text)]
    assert len(found) > 150
    (tmp_path / "formulas.json").write_text(json.dumps(found))
    script = (
        f"const katex = require({str(DOCS / 'figures/katex/katex.min.js')!r});"
        "for (const [page, formula] of require('./formulas.json'))"
        "  try { katex.renderToString(formula, {throwOnError: true}) }"
        "  catch (error) { console.log(page, error.message) }"
    )
    run = subprocess.run([node, "-e", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == ""
