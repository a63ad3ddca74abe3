"""Functions that a study imports by name."""

import numpy as np

import linkwise as lw


@lw.kernel(q=2, payload=1)
def heat(q, payload):
    return q[0] * q[1] + payload[0]


def slow_sum(q, tau):
    return {"sum": q.sum(axis=1), "both": np.concatenate([q, tau], axis=1)}


def wrong_shape(q):
    return q.sum()


def root(x):
    if (x < 0.2).any():
        raise ValueError("too small")
    return np.sqrt(x)
