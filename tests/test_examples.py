"""Every example runs and its own assertions hold."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("[0-9]*.py"))


def test_examples_are_numbered_from_one():
    assert [path.name[:2] for path in EXAMPLES] == [f"{k:02d}" for k in range(1, len(EXAMPLES) + 1)]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path):
    ran = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout, "an example shows something"
    assert list(tmp_path.iterdir()) == [], "an example leaves no files behind"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_fit_a_screen_and_check_themselves(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < 60
    assert text.startswith('"""')
    assert "assert " in text
