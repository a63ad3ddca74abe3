"""Robots of the package example-robot-data; tests that need one are skipped where it is not installed."""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path

import pytest

import linkwise as lw


def path_of(name: str) -> Path:
    """The file of a robot."""
    try:
        files = importlib.metadata.distribution("example-robot-data").files or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return next(Path(str(file.locate())) for file in files if file.name == f"{name}.urdf")


def loaded(name: str, base: str = "floating") -> lw.Robot:
    """The robot, without warnings about its file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        return lw.load(path_of(name), base=base)
