"""A Panda gets a new target while it moves: jerk-limited moves from any state, and one motion through points.

Every 0.15 s the target changes. Each time a move starts from the state that the arm has then; positions, velocities and
accelerations never jump, and no limit is passed.
"""

import numpy as np

import linkwise as lw
from linkwise import motion

panda = lw.load("panda")
home = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.8, 0.7])
online = motion.Online.of(panda, acceleration=10.0, jerk=200.0)
rng = np.random.default_rng(0)

state, records = (home, np.zeros(7), np.zeros(7)), []
for turn in range(8):
    target = home + rng.uniform(-0.4, 0.4, 7)
    move = online.move(*state, target=target)
    times = np.linspace(0.0, 0.15, 151)
    records.append(move.at(times))
    state = tuple(x[-1] for x in records[-1])
    print(f"target {turn + 1}: {move.duration:.3f} s away")
final = online.move(*state, target=home)
records.append(final.at(np.linspace(0.0, final.duration, 500)))

q, qd, qdd = (np.concatenate(part) for part in zip(*records, strict=True))
print(f"largest speed: {np.abs(qd / panda.velocity_limits).max():.1%} of the limit")
print(f"largest acceleration: {np.abs(qdd).max():.3f} of 10 rad/s^2")
assert (np.abs(qd) <= panda.velocity_limits * (1 + 1e-9)).all()
assert np.abs(qdd).max() <= 10.0 * (1 + 1e-9)
assert np.abs(q[-1] - home).max() < 1e-9

points = home + rng.uniform(-0.5, 0.5, (5, 7))
path = online.through(points, blend=0.05, q=home)
stops = sum(online.move(a, target=b).duration for a, b in zip([home, *points[:-1]], points, strict=True))
print(f"through five points: {path.duration:.3f} s, {stops:.3f} s with a stop at each")
