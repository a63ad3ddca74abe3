"""Tests inside other programs; each module skips where its package is missing. Run by `make test-frameworks`."""

import pytest

import linkwise as lw


@pytest.fixture(scope="session")
def panda():
    return lw.load("panda")


@pytest.fixture(scope="session")
def small():
    """Small enough for numerical derivatives of derivatives."""
    return lw.load("two_link")
