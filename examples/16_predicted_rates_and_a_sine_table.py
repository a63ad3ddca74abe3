"""Kozłowski's section 5 (1990): is the rate predicted from operation counts the rate that is measured? And
what does a table of sines in steps of 0.1° cost in accuracy?

He found counts and clock of an 80387 to predict 200 Hz for inverse and 100 Hz for forward dynamics.
"""

import time

import numpy as np

import linkwise as lw
from linkwise.algorithms import newton_euler
from linkwise.functions.table import mechanism_of

robot = lw.load("puma560")
states = np.random.default_rng(0).uniform(-2, 2, (3, 2048, robot.dof))
SINE = 12  # a sine or cosine, counted in multiplications and additions


def work(function: str) -> tuple[float, float]:
    """(operations of one evaluation, seconds that it takes on one core)."""
    kernel = robot.kernel(function)
    counted, given = kernel.operations, states[: len(kernel.inputs)]
    clock = [time.thread_time()]
    for _ in range(30):
        kernel(*given, threads=1)
        clock.append(time.thread_time())
    return counted.total + SINE * counted.trigonometric, np.diff(clock).min() / states.shape[1]


per_operation = np.divide(*work("bias_torques")[::-1])  # one function tells how long an operation takes
print(f"{per_operation * 1e12:.0f} ps per operation on this machine; an 80387 took about 5 µs")
print("function             operations   predicted [MHz]   measured [MHz]")
for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "gravity_torques"):
    operations, seconds = work(function)
    predicted = 1 / (operations * per_operation)
    print(f"{function:<20} {operations:10.0f} {predicted / 1e6:17.2f} {1e-6 / seconds:16.2f}")
    assert 0.4 < predicted * seconds < 2.5  # counts still predict the rate


class Tabulated(np.ndarray):
    """Angles whose sines and cosines come from a table, as in the Pascal programs of 1990."""

    TABLE = np.sin(np.radians(np.arange(0, 3600) / 10))

    def sin(self):
        return self.TABLE[np.rint(np.degrees(np.asarray(self)) * 10).astype(int) % 3600]

    def cos(self):
        return self.TABLE[np.rint(np.degrees(np.asarray(self)) * 10 + 900).astype(int) % 3600]


links = mechanism_of(robot)
q, qd, qdd = (list(part.T) for part in states)
exact = np.stack(newton_euler.inverse_dynamics(links, q, qd, qdd))
rough = np.stack(newton_euler.inverse_dynamics(links, [a.view(Tabulated) for a in q], qd, qdd))
error = np.abs(rough - exact).max(axis=1) / np.abs(exact).max(axis=1)
print("a table of 0.1°: torque errors of " + ", ".join(f"{e:.2%}" for e in error) + " of the largest torque")
assert 1e-4 < error[:3].max() < 5e-3  # half a step is 0.05°, a sine is off by up to 9e-4
