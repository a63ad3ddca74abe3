"""Claims and printed values of the papers, each with a test: ``python -m research.claims``."""

from research.claims.claim import CONFIRMED, PARTLY, REFUTED, Claim, Outcome

__all__ = ["CONFIRMED", "PARTLY", "REFUTED", "Claim", "Outcome", "all_claims"]


def all_claims() -> tuple[Claim, ...]:
    """Every claim, paper by paper."""
    from research.claims import fijany_scheid, izaguirre, kozlowski, rodriguez, valera

    return tuple(
        claim for paper in (rodriguez, kozlowski, valera, izaguirre, fijany_scheid) for claim in paper.CLAIMS
    )
