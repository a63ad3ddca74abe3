"""The body on four legs that benchmarks have, for tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from whole_body_parts.four_legs import four_legs, round_feet

__all__ = ["four_legs", "round_feet"]
