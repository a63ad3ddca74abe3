"""The code of the pages about frameworks, which other tests of pages cannot run."""

import re
from pathlib import Path

import pytest

import test_docs

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"frameworks.md": ("jax", "torch", "casadi")}


@pytest.mark.parametrize("page", PAGES)
def test_blocks(page, tmp_path, monkeypatch):
    for needed in PAGES[page]:
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```py\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"__name__": "page"})


def test_no_page_is_forgotten():
    with_code = {path.name for path in DOCS.glob("*.md") if "```py\n" in path.read_text(encoding="utf-8")}
    assert with_code == set(PAGES)


@pytest.mark.parametrize("page", ["frameworks.md", "which_library.md"])
def test_blocks_that_need_a_library_of_this_environment(page, tmp_path, monkeypatch):
    for needed in ("torch", "casadi"):
        pytest.importorskip(needed)
    test_docs.test_blocks(DOCS / page, tmp_path, monkeypatch)
