"""Shared by all tests: the same examples on every run, and no compiled code in the user's own cache."""

from __future__ import annotations

import os
import tempfile

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=30,
    print_blob=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", parent=settings.get_profile("ci"), derandomize=False, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

if "LINKWISE_CACHE" not in os.environ:
    _folder = tempfile.TemporaryDirectory(prefix="linkwise-tests-")
    os.environ["LINKWISE_CACHE"] = _folder.name

os.environ.setdefault("LINKWISE_BACKGROUND", "0")  # no further processes; tests of them switch it on
