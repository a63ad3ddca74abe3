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
    """Ends the process at x = 1234, dies at x = 4321, fails at x = 3000."""
    if (x == 1234.0).any():
        os._exit(3)
    if (x == 4321.0).any():
        os.kill(os.getpid(), signal.SIGSEGV)
    if (x == 3000.0).any():
        raise ValueError("three thousand")
    return 2.0 * x
