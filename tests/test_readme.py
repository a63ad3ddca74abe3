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
    """The two commands come first, then the command of the picture, then three lines of code with their output."""
    found = blocks(README)
    assert [language for language, _ in found[:4]] == ["sh", "sh", "python", "text"]
    assert re.findall(r"^make \w+", found[0][1], re.MULTILINE) == ["make demo", "make test"]
    assert len(found[2][1].strip().splitlines()) == 3


def test_the_picture_of_the_readme_is_that_of_the_command_beside_it():
    """The example writes the page, and the script that takes the picture opens this page."""
    text = README.read_text(encoding="utf-8")
    example = re.search(r"^python (examples/\w+)\.py walk\.html$", text, re.MULTILINE)
    assert example
    assert "write_page" in (ROOT / f"{example[1]}.py").read_text(encoding="utf-8")
    script = (ROOT / "docs" / "figures" / "moving_pictures.py").read_text(encoding="utf-8")
    assert f'example("{Path(example[1]).name}")' in script
    assert (ROOT / "docs" / "figures" / "walk.gif").stat().st_size < 1_000_000


def test_the_sentence_about_operation_counts():
    rows = (ROOT / "docs" / "records.md").read_text(encoding="utf-8").split("## Which robots")[0]
    last = re.findall(r"\| (yes|no|equal) \|$", rows, re.MULTILINE)
    sentence = (
        f"in {last.count('yes')} of {len(last)} rows of [docs/records.md](docs/records.md), and equal in one."
    )
    assert last.count("equal") == 1
    assert sentence in README.read_text(encoding="utf-8")


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

    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
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
