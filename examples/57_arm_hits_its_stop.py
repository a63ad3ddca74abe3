"""An arm swings into the stop of its first joint: the joint ends there, and what is behind it goes on.

Two links fall from the horizontal under gravity; the first joint stops at −40°. Prints the angles over time, with and
without restitution of the stop, and checks that the joint never leaves its range and that energy never grows.
"""

import numpy as np

import linkwise as lw
from linkwise import control
from linkwise.simulate import simulate

LIMIT = np.radians(-40.0)
links = [lw.Link("base")]
joints = []
for k in (1, 2):
    links.append(lw.Link(f"link{k}", lw.Inertia.from_com(1.0, (0.25, 0, 0), (1e-3, 0.02, 0.02))))
    place = lw.Transform.from_rpy((0.5 * (k - 1), 0, 0))
    limits = lw.Limits(LIMIT, np.pi) if k == 1 else lw.Limits()
    parent = links[k - 1].name
    axis = (0.0, -1.0, 0.0)
    joints.append(lw.Joint(f"joint{k}", "revolute", parent, links[k].name, place, axis, limits))
arm = lw.Robot("arm", links, joints)

for restitution in (0.0, 0.5):
    robot = arm.with_contacts([lw.Stop("joint1", restitution=restitution)])
    result = simulate(robot, control.Passive(robot), duration=1.5, step=0.001, every=1, q=np.zeros(2))
    hit = int(np.argmax(result.q[:, 0] < LIMIT + np.radians(0.3)))
    energy = result.energy()
    print(f"restitution {restitution}: joint 1 reaches its stop after {result.t[hit]:.3f} s")
    for k in range(0, len(result.t), 300):
        angles = np.degrees(result.q[k])
        print(f"  {result.t[k]:.1f} s: {angles[0]:7.2f}° {angles[1]:8.2f}°")
    lowest, lost = np.degrees(result.q[:, 0].min()), energy[0] - energy[-1]
    print(f"  lowest angle of joint 1: {lowest:.4f}°; energy lost: {lost:.3f} J")
    assert result.q[:, 0].min() > LIMIT - 1e-6
    assert np.diff(energy).max() < 0.02
