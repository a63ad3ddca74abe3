"""A gripper lifts a cube from a table and holds it: friction that can hold does not creep.

Two fingers close on the cube with 3 N each, a slide lifts it and waits. Engines with soft contact let such a cube sink
by 50 to 2300 µm/s (mujoco issue 3328). Prints the forces of the fingers and the motion of the cube in the fingers
while it is held.
"""

import numpy as np

import linkwise as lw
from linkwise import control
from linkwise.simulate import simulate

hand = lw.Link("hand", lw.Inertia.from_com(0.5, (0, 0, 0), (1e-3, 1e-3, 1e-3)))
fingers = [
    lw.Link(name, lw.Inertia.from_com(0.05, (0, 0, 0), (2e-5, 2e-5, 2e-5))) for name in ("left", "right")
]
at = [lw.Transform.from_rpy(place) for place in ((0, 0, 0.1), (0, -0.06, -0.075), (0, 0.06, -0.075))]
joints = [
    lw.Joint("lift", "prismatic", "stand", "hand", at[0], (0.0, 0.0, 1.0)),
    lw.Joint("left_joint", "prismatic", "hand", "left", at[1], (0.0, 1.0, 0.0)),
    lw.Joint("right_joint", "prismatic", "hand", "right", at[2], (0.0, -1.0, 0.0)),
]
gripper = lw.Robot("gripper", [lw.Link("stand"), hand, *fingers], joints).with_contacts(
    [
        lw.Shape.capsule(name, 0.006, 0.02, rpy=(0.0, np.pi / 2, 0.0), friction=0.8)
        for name in ("left", "right")
    ]
)
scene = lw.Scene(
    [gripper, lw.Body.box((0.05, 0.05, 0.05), mass=0.1, name="cube", friction=0.8), lw.Ground(friction=0.8)],
    contacts=[lw.Contact("left", "cube"), lw.Contact("right", "cube")],
)


class CloseAndLift(control.Controller):
    """The slide follows its target; the fingers push with a constant force."""

    def control(self, links, gains, q, qd, reference, memory, period):
        lift = gains["kp"][0] * (reference.q[0] - q[0]) - gains["kd"][0] * qd[0] + 0.6 * 9.81
        return [lift, 3.0 - 2.0 * qd[1], 3.0 - 2.0 * qd[2], *[0.0] * 6], memory


start = scene.neutral.copy()
start[3:6] = (0.0, 0.0, 0.025)  # the cube on the table
law = CloseAndLift(scene, {"kp": np.full(9, 60.0), "kd": np.full(9, 12.0)}, 60.0)
closed = simulate(scene, law, start, duration=0.3, step=0.002, q=start)
lifted = start.copy()
lifted[0] = 0.1
result = simulate(scene, law, lifted, duration=4.0, step=0.002, every=5, q=closed.final_q, qd=closed.final_qd)

held = result.t > 2.0
in_hand = result.q[held, 5] - result.q[held, 0]
drift = np.abs(in_hand - in_hand[0]).max() / (result.t[held][-1] - result.t[held][0])
forces = result.contact_arrows[held][-1]
names = np.array(scene.contact_names)
print(f"cube after 4 s at {1e3 * result.q[-1, 5]:.3f} mm, lifted by {1e3 * result.q[-1, 0]:.3f} mm")
for finger in ("left", "right"):
    own = np.array([name.startswith(f"{finger}:") for name in names])
    force = np.round(-forces[own].sum(axis=0), 3) + 0.0
    print(f"{finger:5} finger on the cube: {force} N")
print(f"creep while it is held: {1e6 * drift:.2g} µm/s; residual {result.residual[held].max():.0e}")
assert result.q[-1, 5] > 0.1
assert drift < 1e-11
