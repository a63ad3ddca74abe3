"""Tests inside other programs; each module skips where its package is missing. Run by `make test-frameworks`."""

import pytest

import linkwise as lw


@pytest.fixture(scope="session")
def panda():
    return lw.load("panda")
