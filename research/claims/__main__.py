"""``python -m research.claims [NAME …] [--markdown]``: test the papers' claims, and print the results."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence

from research.claims import CONFIRMED, Claim, Outcome, all_claims

PAGE = """\
# What the papers claim, tested

Each claim and printed value below has a test; one command runs it and prints what came of it:

```sh
python -m research.claims printed_program
python -m research.claims
```

The second runs them all, and prints what came of those that are confirmed, too. This page is `python -m research.claims
--markdown`. *Partly* stands where a sentence holds
for some cases only; formulas with obvious misprints are on the pages of [the papers](papers.md).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests that are named, or all."""
    claims = {claim.name: claim for claim in all_claims()}
    parser = argparse.ArgumentParser("python -m research.claims", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(claims)}")
    parser.add_argument("--markdown", action="store_true", help="print the page docs/refuted.md")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in claims:
            close = difflib.get_close_matches(name, claims, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            print(f"no claim {name!r}; {hint}valid: {', '.join(claims)}", file=sys.stderr)
            return 2
    tested = ((claims[name], claims[name].test()) for name in given.names or claims)
    if given.markdown:
        print(PAGE + "\n" + tables(tested), end="")
        return 0
    for claim, outcome in tested:
        print(f"{outcome.verdict:<10} {claim.name} ({claim.paper}, {claim.place})")
        print(f"           says: {claim.says}")
        print(f"           {outcome.evidence}")
    return 0


def tables(tested: Iterable[tuple[Claim, Outcome]]) -> str:
    """A Markdown table per paper."""
    lines: list[str] = []
    paper = ""
    for claim, outcome in tested:
        if claim.paper != paper:
            paper = claim.paper
            lines += [
                "",
                f"## {paper}",
                "",
                "| claim | where | verdict | what came of it | name |",
                "|---|---|---|---|---|",
            ]
        confirmed = outcome.verdict == CONFIRMED
        verdict = outcome.verdict if confirmed else f"**{outcome.verdict}**"
        evidence = "" if confirmed else outcome.evidence  # the command prints it
        lines.append(f"| {claim.says} | {claim.place} | {verdict} | {evidence} | `{claim.name}` |")
    return "\n".join(lines).strip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
