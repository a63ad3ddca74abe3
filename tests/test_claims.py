"""The claims of the papers: every verdict that docs/refuted.md states is what the test gives."""

import re
from pathlib import Path

import pytest

from research.claims import CONFIRMED, PARTLY, REFUTED, all_claims
from research.claims.__main__ import main
from research.claims.izaguirre_program import operations

PAGE = (Path(__file__).parents[1] / "docs" / "refuted.md").read_text(encoding="utf-8")
STATED = {
    name: verdict
    for verdict, name in re.findall(r"\| \**(\w+)\** \| [^|]* \| `(\w+)` \|$", PAGE, re.MULTILINE)
}


def test_the_page_lists_every_claim():
    names = [claim.name for claim in all_claims()]
    assert len(names) == len(set(names))
    assert list(STATED) == names


@pytest.mark.parametrize("claim", all_claims(), ids=lambda claim: claim.name)
def test_verdict(claim):
    outcome = claim.test()
    assert outcome.verdict in (CONFIRMED, REFUTED, PARTLY)
    assert outcome.verdict == STATED[claim.name], outcome.evidence
    assert outcome.evidence


def test_the_listing_is_counted_as_printed():
    assert operations() == (95, 48)


def test_one_command(capsys):
    assert main(["table_1", "c13"]) == 0
    printed = capsys.readouterr().out
    assert "confirmed  table_1" in printed
    assert "partly     c13" in printed
    assert main(["tabel_1"]) == 2
    assert "did you mean 'table_1'?" in capsys.readouterr().err
