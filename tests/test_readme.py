"""What the README shows is what happens: its Python blocks are run and compared with the output shown after them."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def blocks(path: Path) -> list[tuple[str, str]]:
    """(language, text) of every fenced block."""
    return BLOCK.findall(path.read_text(encoding="utf-8"))


def test_python_blocks_print_what_the_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}  # as where a reader types it
    found = blocks(README)
    for (language, code), (following, shown) in zip(found, [*found[1:], ("", "")], strict=True):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, README.name, "exec"), names)
        if following == "text":
            assert printed.getvalue() == shown


def test_readme_shows_output():
    languages = [language for language, _ in blocks(ROOT / "README.md")]
    assert languages[:5] == ["sh", "sh", "sh", "python", "text"]
    code = blocks(ROOT / "README.md")[3][1]
    assert len(code.strip().splitlines()) <= 12, "ten lines of use, not more"


def test_readme_commands_are_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_every_command_is_described():
    from linkwise.cli.app import COMMANDS

    text = (ROOT / "docs" / "command_line.md").read_text()
    for command in COMMANDS:
        assert f"`linkwise {command}" in text


@pytest.mark.parametrize("path", [README, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_every_algorithm_is_in_the_papers_table():
    import linkwise as lw

    text = (ROOT / "README.md").read_text()
    robot = lw.load("two_link")
    for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix"):
        for algorithm in robot.algorithms(function):
            assert f"`{algorithm}`" in text


def test_the_chart_has_the_figures_of_the_table():
    """README's chart is drawn by a script from README's table; the numbers must be the same."""
    chart = (ROOT / "docs" / "figures" / "speed.svg").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w ]+), 4096 states, float64 \|(.+)\|$", readme, re.MULTILINE)
    assert len(rows) == 4
    for function, cells in rows:
        assert f"{function}, Linkwise" in chart
        for number in re.findall(r"^\s*([\d.]+)", "\n".join(cells.split("|")), re.MULTILINE):
            assert f">{number} ns<" in chart, "draw it again: python docs/figures/make_figures.py speed"


def test_the_install_lines_work_without_a_package_index():
    """`pip install linkwise` would find nothing: pages install from the repository, or add an extra."""
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pip install \"?\'?linkwise(?![\[\w])", text), path.name
