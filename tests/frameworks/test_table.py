"""The tables of docs/frameworks.md are what running every cell gives."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_the_page_shows_what_works(framework, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    sys.modules.pop("frameworks_parts", None)
    from frameworks_parts import table

    name = {"jax": "JAX", "torch": "PyTorch"}[framework]
    found = table.markdown(name, table.rows(getattr(table, f"{framework}_transformations")()))
    assert found in (ROOT / "docs/frameworks.md").read_text(encoding="utf-8"), (
        "python benchmarks/frameworks.py --table --write docs/frameworks.md"
    )
