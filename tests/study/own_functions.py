"""Functions that a study imports by name."""

import os
import signal

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


def deadly(x):
    """Ends the process at x = 123, dies at x = 432, fails at x = 300."""
    if (x == 123.0).any():
        os._exit(3)
    if (x == 432.0).any():
        os.kill(os.getpid(), signal.SIGSEGV)
    if (x == 300.0).any():
        raise ValueError("three hundred")
    return 2.0 * x
