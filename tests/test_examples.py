"""Every example runs and its own assertions hold."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("[0-9]*.py"))


def test_examples_have_a_number_each():
    numbers = [path.name[:2] for path in EXAMPLES]
    assert numbers[0] == "01"
    assert len(set(numbers)) == len(numbers)


def test_every_other_file_is_used_by_an_example():
    """What has no number is not run by itself, so an example must import it."""
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")]
    for path in sorted(set(FOLDER.glob("*.py")) - set(EXAMPLES)):
        pattern = re.compile(rf"^\s*(from {path.stem} import|import {path.stem})\b", re.MULTILINE)
        assert any(pattern.search(text) for text in texts), path.name


IDENTIFICATION = "21_from_a_log_to_c"  # also run as on other processors


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.processor if path.stem == IDENTIFICATION else ())
        for path in EXAMPLES
    ],
    ids=lambda path: path.stem,
)
def test_example(path, tmp_path):
    ran = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout, "an example shows something"
    assert list(tmp_path.iterdir()) == [], "an example leaves no files behind"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_fit_a_screen_and_check_themselves(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < 70
    assert text.startswith('"""')
    assert "assert " in text
