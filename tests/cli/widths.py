"""Whether text fits a width without a broken word."""

from linkwise.cli.support import layout

WIDTHS = (60, 80, 120)


def words(text: str) -> set[str]:
    return {word.rstrip(",") for word in text.split()}


def check_width(written: list[str], width: int, whole: str) -> None:
    """No line is wider, unless it is one word, and every word is one of the whole text."""
    for line in written:
        assert layout.shown_width(line) <= width or len(line.split()) == 1, f"{width}: {line}"
    assert words("\n".join(written)) <= words(whole), width
