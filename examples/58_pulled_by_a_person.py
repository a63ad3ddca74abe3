"""A person pulls the tool of an arm and lets go: Cartesian impedance, soft along one axis; and a turn of 180°.

The tool of a Stanford arm is a spring of 800 N/m along its x and y axes and of 100 N/m along z. Prints how far 10 N
along each axis move it, beside 10 N over the stiffness, and how the energy falls after the person lets go. Then the
hand starts turned by 179° and by 181°: torques do not jump, and both ways round end at the target.
"""

import numpy as np

import linkwise as lw
from linkwise import control
from linkwise.simulate import Plant, Push, simulate

arm = lw.load("stanford")
q = np.array([0.3, 0.6, 0.5, 0.4, 0.7, 0.2])
stiffness = np.array(
    [20.0, 20.0, 5.0, 800.0, 800.0, 100.0]
)  # three [N·m/rad], three [N/m], in the axes of the tool
law = control.CartesianImpedance(arm, stiffness=stiffness)
pose = arm.pose(q)

start = np.tile(q, (5, 1))
start[3:, 5] += np.radians([179.0, 181.0])
pulls = np.zeros((5, 6))
pulls[:3, 3:] = np.diag([10.0, 10.0, 10.0])  # [N]
plant = Plant(arm, friction=False, push=Push(wrench=np.zeros(6), end=3.0))
result = simulate(plant, law, q, duration=6.0, q=start, vary={"push_wrench": pulls}, every=10, warn=False)

reached = arm.pose(result.q)
held = 299  # the last row before the person lets go
for axis in range(3):
    moved = (reached[axis, held, :3, 3] - pose[:3, 3]) @ pose[:3, :3]
    expected = 10.0 / stiffness[3 + axis]
    print(f"10 N along {'xyz'[axis]}: {1000 * moved[axis]:6.2f} mm; 10 N / K: {1000 * expected:6.2f} mm")
    energy = arm.kinetic_energy(result.q[axis], result.qd[axis])
    assert energy[-1] < 1e-3 * energy.max()
    assert abs(moved[axis] / expected - 1.0) < 0.01

for lane, angle in ((3, 179), (4, 181)):
    steps = np.abs(np.diff(result.tau[lane], axis=0)).max(axis=0)
    left = np.linalg.norm(reached[lane, -1] - pose)
    end = result.q[lane, -1, 5] - q[5]
    print(f"turned by {angle}°: {left:.1e} from the target after 6 s, the last joint at {end:+.2f} rad")
    assert steps.max() < 0.1 * np.abs(result.tau[lane]).max()
    assert left < 1e-2
