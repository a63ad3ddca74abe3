"""A quadruped stands on four feet, is pushed, and its feet hold: contact as part of a fused simulation.

Prints the forces of the feet, how far they slipped while the robot stood, and what slippery ground changes.
"""

import numpy as np

import linkwise as lw
from linkwise import control
from linkwise.simulate import Plant, Push, simulate

robot = lw.quadruped()


class JointPD(control.Controller):
    """Springs and dampers at the joints; the base has no motors."""

    def control(self, links, gains, q, qd, reference, memory, period):
        parts = zip(gains["kp"][6:], gains["kd"][6:], reference.q[7:], q[7:], qd[6:], strict=True)
        return [0.0] * 6 + [kp * (wanted - at) - kd * rate for kp, kd, wanted, at, rate in parts], memory


stand = np.concatenate([[0.0, 0.0, 0.42, 0.0, 0.0, 0.0, 1.0], np.tile([0.0, 0.3, -0.6], 4)])
law = JointPD(
    robot, {"kp": np.r_[np.zeros(6), np.full(12, 80.0)], "kd": np.r_[np.zeros(6), np.full(12, 2.0)]}, 60.0
)
push = Push(wrench=(0.0, 0.0, 0.0, 0.0, 20.0, 0.0), frame="body", begin=1.5, end=1.7)
frictions = np.array([[0.8] * 4, [0.05] * 4])
result = simulate(
    Plant(robot, push=push),
    law,
    stand,
    duration=3.0,
    step=0.002,
    every=10,
    q=stand,
    vary={"contact_friction": frictions},
)

weight = 9.81 * sum(link.inertia.mass for link in robot.links)
carried = result.contact_forces[0, -1, :, 2]
print(f"weight {weight:.2f} N, carried by the feet {np.round(carried, 2)} N, together {carried.sum():.2f} N")
standing = result.t < 1.4
print(
    f"largest slip before the push, from 1 s on: {result.slip[0, (result.t > 1.0) & standing].max():.1e} m/s"
)
print(f"largest residual of the laws of contact: {result.residual.max():.1e}")
for place, friction in enumerate(frictions[:, 0]):
    print(
        f"friction {friction}: the push moves the body by {1e3 * result.final_q[place, 1]:.1f} mm to the side"
    )

assert abs(carried.sum() - weight) < 0.01 * weight
assert result.slip[0, (result.t > 1.0) & standing].max() < 1e-9
assert abs(result.final_q[0, 1]) < abs(result.final_q[1, 1])
