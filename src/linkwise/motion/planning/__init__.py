"""Collision-free motions: a search by two trees, shortcuts, rounded corners, the shortest time under torque limits."""
