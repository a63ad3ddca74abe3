"""Pick and place four ways: a quintic, the quickest quintic, the shortest time along its path, predictive control.

A Panda carries 1.5 kg from one side to the other. ``python examples/53_pick_and_place.py FILE.png`` draws torques and
speeds. The first motions are judged by inverse dynamics; predictive control has no path and is simulated.
"""

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import motion
from linkwise.optimal import Predictive
from linkwise.simulate import simulate

ARRIVED = 0.02  # [rad]: predictive control comes nearer and nearer, so this counts as there
panda = lw.load("panda").with_payload(1.5, (0.0, 0.0, 0.1), np.zeros((3, 3)))
pick = np.array([-0.6, 0.45, 0.0, -1.9, 0.0, 2.3, 0.8])
place = np.array([0.9, 0.2, 0.1, -2.2, 0.0, 2.4, 0.8])


def judged(t, qd, tau) -> tuple[float, float, float]:
    """Largest fractions of the torque and velocity limits, and the mechanical work without recovery [J]."""
    power = np.abs(tau * qd).sum(axis=1)
    work = float((0.5 * (power[1:] + power[:-1]) * np.diff(t)).sum())
    return (np.abs(tau) / panda.effort_limits).max(), (np.abs(qd) / panda.velocity_limits).max(), work


quintic = motion.quintic(pick, place, 1.5)
planned = {
    "quintic in 1.5 s": quintic,
    "quickest quintic": motion.fastest(quintic, panda),
    "time-optimal": motion.time_optimal(panda, quintic),
    "time-optimal, jerk 1000 rad/s³": motion.time_optimal(panda, quintic, jerk=1000.0),
}
rows, curves = {}, {}
for name, move in planned.items():
    t = np.linspace(0, move.duration, 2001)
    q, qd, qdd = move.at(t)
    tau = panda.inverse_dynamics(q, qd, qdd)
    rows[name], curves[name] = (move.duration, *judged(t, qd, tau)), (t, qd, tau)

controller = Predictive(panda, horizon=20, step=0.02, frequency=12.0, state_limits=True)
found = simulate(
    panda, controller, place, duration=1.5, step=2e-3, control_period=1e-2, q=pick, qd=np.zeros(7)
)
there = int(np.flatnonzero(np.abs(found.q - place).max(axis=1) > ARRIVED)[-1]) + 1
rest = slice(0, there + 1)
rows["predictive control"] = (found.t[there], *judged(found.t[rest], found.qd[rest], found.tau[rest]))
curves["predictive control"] = (found.t, found.qd, found.tau)

print(f"{'motion':32s}  time [s]  torque  velocity  work [J]")
for name, (duration, torque, speed, work) in rows.items():
    print(f"{name:32s}  {duration:8.3f}  {torque:6.0%}  {speed:8.0%}  {work:8.1f}")

axes = panels(2, 1, "pick and place with a Panda: largest fractions of the limits", size=(9, 6), sharex=True)
if axes is not None:
    for name, (t, qd, tau) in curves.items():
        axes[0].plot(t, (np.abs(tau) / panda.effort_limits).max(axis=1), label=name)
        axes[1].plot(t, (np.abs(qd) / panda.velocity_limits).max(axis=1), label=name)
    axes[0].set_ylabel("torque / limit")
    axes[1].set(ylabel="velocity / limit", xlabel="time [s]")
    axes[1].legend()

assert rows["time-optimal"][0] < 0.7 * rows["quickest quintic"][0]
assert max(rows["time-optimal"][1:3]) <= 1
assert rows["time-optimal"][0] < rows["time-optimal, jerk 1000 rad/s³"][0] < rows["quickest quintic"][0]
assert rows["predictive control"][1] <= 1 + 1e-9
