"""Every sentence of the documentation that promises something names the tests that try to break it."""

import ast
import re

import pytest

import promises

SENTENCES = promises.with_words()
TABLE = promises.table()


def test_every_promise_is_in_the_table():
    """A new sentence with "always", "never", "every" … needs its test, or the reason why it promises nothing."""
    rows = {(page, start) for page, some in TABLE.items() for start in some}
    sentences = {(each.page, each.start) for each in SENTENCES}
    assert sorted(sentences - rows) == [], (
        "add rows to tests/promises.toml; python tests/promises.py prints them"
    )
    assert sorted(rows - sentences) == [], "these sentences are gone; remove them from tests/promises.toml"
    assert len(sentences) > 200


def test_the_tests_of_promises_exist():
    """And reasons for sentences that promise nothing are words of a short list."""
    functions, missing, reasons = {}, [], set()
    for some in TABLE.values():
        for start, tests in some.items():
            if isinstance(tests, str):
                reasons.add(tests)
                continue
            assert tests, start
            for test in tests:
                name, function = test.split("::")
                if name not in functions:
                    path = promises.ROOT / name
                    tree = (
                        ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
                    )
                    functions[name] = {
                        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
                    }
                if function not in functions[name]:
                    missing.append(test)
    assert missing == []
    assert len(reasons) <= 8, reasons


def test_the_page_has_every_promise_with_its_tests():
    """A row for each promise of the table."""
    text = promises.page()
    wanted = [test for some in TABLE.values() for test in some.values() if isinstance(test, list)]
    assert len(re.findall(r"^\| .+ \| `tests/.+ \|$", text, re.MULTILINE)) == len(wanted)
    assert all(f"`{test}`" in text for tests in wanted for test in tests)


def test_rows_without_a_sentence_are_named(monkeypatch):
    rows = {"docs/control.md": {"It never fails.": ["a test"]}, "docs/none.md": {"Always.": "a reason"}}
    monkeypatch.setattr(promises, "table", lambda: rows)
    with pytest.raises(
        ValueError, match=r"no page has:\ndocs/control.md: It never fails.\ndocs/none.md: Always."
    ):
        promises.page()


def test_new_promises_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# It\n\nIt never fails. It works\nat any speed: `q` keeps.\n\n```python\nnever = 1\n```\n\n| a | always |\n"
    )
    found = [text for text in promises.sentences(page) if promises.WORDS.search(text)]
    assert found == ["It never fails.", "It works at any speed:", "`q` keeps.", "always |"]
