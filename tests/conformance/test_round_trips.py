"""Robots of other people, saved and loaded again in every format: the same robot, to the last bit.

Every eighth file; ``LINKWISE_ALL_ROBOTS=1`` takes all.
"""

import os
import warnings
from pathlib import Path

import pytest
from engines import DATA, example_robots, shared_robots, title
from mjcf_stubs import with_stubs

import linkwise as lw

FILES = [*example_robots(), *shared_robots(), *sorted((DATA / "mjcf").glob("*/*.xml"))]
CHOSEN = FILES if os.environ.get("LINKWISE_ALL_ROBOTS") else FILES[::8]


@pytest.mark.skipif(not FILES, reason=f"neither example-robot-data nor files under {DATA}")
@pytest.mark.parametrize("path", CHOSEN, ids=title)
def test_saved_and_loaded(path: Path, tmp_path):
    if path.suffix == ".xml":
        path = with_stubs(path.parent, tmp_path / "stubs") / path.name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.ModelWarning)
        try:
            robot = lw.load(path)
        except lw.ModelError as error:
            pytest.skip(f"refused: {error}")
        for ending in ("toml", "urdf", "xml"):
            target = tmp_path / f"robot.{ending}"
            try:
                lw.save(robot, target)
            except lw.ModelError as error:
                if ending == "xml" and "no body has this inertia" in str(error):
                    continue
                raise
            assert lw.load(target).content() == robot.content()
