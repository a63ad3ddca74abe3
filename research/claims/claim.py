"""What a claim of a paper is, and what testing it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CONFIRMED, REFUTED, PARTLY = "confirmed", "refuted", "partly"


@dataclass(frozen=True)
class Outcome:
    """The verdict, and the numbers behind it in one sentence."""

    verdict: str
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A sentence or a printed value of a paper, and how it is tested."""

    name: str
    paper: str
    place: str  # equation, table or section
    says: str
    test: Callable[[], Outcome]


def judged(holds: bool, evidence: str) -> Outcome:
    """Confirmed if it holds, else refuted."""
    return Outcome(CONFIRMED if holds else REFUTED, evidence)
