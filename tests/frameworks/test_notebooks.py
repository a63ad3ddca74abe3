"""The notebooks run, and are stored with the outputs that code-hosting pages show."""

import importlib.util
import platform
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
LARGEST = 700_000  # bytes: code-hosting pages show no large notebooks
MODULES = ("casadi", "pandas", "scipy", "jax", "torch")


def writer():
    spec = importlib.util.spec_from_file_location("write", FOLDER / "write.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRITER = writer()


def test_every_notebook_is_stored():
    assert sorted(WRITER.NOTEBOOKS) == sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    assert len(WRITER.NOTEBOOKS) == 11


@pytest.mark.parametrize("name", WRITER.NOTEBOOKS)
def test_stored_notebooks_are_whole_small_and_of_no_machine(name):
    path = FOLDER / f"{name}.ipynb"
    text = path.read_text(encoding="utf-8")
    stored = nbformat.reads(text, as_version=4)
    nbformat.validate(stored)
    wanted = [(cell.cell_type, cell.source) for cell in WRITER.build(name).cells]
    assert [(cell.cell_type, cell.source) for cell in stored.cells] == wanted, (
        "run examples/notebooks/write.py"
    )
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    outputs = [output for cell in code for output in cell.outputs]
    assert len(outputs) >= 3
    assert {output.output_type for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert all(output.get("name", "stdout") == "stdout" for output in outputs)
    assert len(text) < LARGEST
    for trace in ("/home", "/root", "/tmp", "site-packages", " at 0x"):
        assert trace not in text, trace
    assert re.search(rf"\b{re.escape(platform.node() or 'localhost')}\b", text) is None


@pytest.mark.parametrize("name", WRITER.NOTEBOOKS)
def test_notebooks_run(name):
    text = WRITER.NOTEBOOKS[name]
    for module in MODULES:
        if f"import {module}" in text or f"from {module}" in text:
            pytest.importorskip(module)
    ran = WRITER.run(WRITER.build(name))  # raises where a cell does
    kinds = {
        key for cell in ran.cells for output in cell.get("outputs", ()) for key in output.get("data", {})
    }
    assert {"image/svg+xml", "text/html"} & kinds or name.startswith(("4", "8", "11"))


def test_pages_in_notebooks_need_no_server():
    """What ``robot.show()`` has stored is a page in a frame; nothing in a notebook has an address."""
    framed = 0
    for path in FOLDER.glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        framed += text.count("<iframe srcdoc=")
        assert "127.0.0.1" not in text
        assert "localhost" not in text
    assert framed >= 3
