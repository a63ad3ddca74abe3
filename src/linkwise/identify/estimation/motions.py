"""The motions of which recordings consist: parts that can be left out without leaving their like behind.

Where a recording repeats a motion, or two recordings have the same one, all of its repetitions are one motion.
"""

from __future__ import annotations

import numpy as np

from linkwise.errors import needed
from linkwise.identify.estimation.regression import Observer

BLOCKS = 10  # motions into which recordings are divided
ALIKE = 0.05  # distance of two states, of their spread, up to which they are the same


def motions(observer: Observer) -> np.ndarray:
    """For every row of a regression the number of its motion, shape (N,), from 0 to ``BLOCKS`` − 1.

    Rows are cut into blocks in the order of time; but a row that passes through a state, positions and velocities, that
    was met before belongs where that was.
    """
    known = observer.__dict__.get("_motions_of_rows")
    if known is not None:
        return known
    states = np.concatenate(
        [np.concatenate([s.filtered(s.q), s.filtered(s.qd)], axis=1) for s in observer.signals]
    )
    scaled = states / np.maximum(states.std(axis=0), 1e-12)
    reach = ALIKE * np.sqrt(
        scaled.shape[1]
    )  # all coordinates of two equal states together may be this far apart
    tree = needed("scipy.spatial", "identify").cKDTree(scaled)
    first = np.array([min(near) for near in tree.query_ball_point(scaled, reach)])
    places = np.unique(first)  # where something new was met
    found = np.searchsorted(places, first) * BLOCKS // len(places)
    observer.__dict__["_motions_of_rows"] = found
    return found
