"""Shapes of robots: what URDF and MJCF files draw and what they say about collisions, meshes, simple solids, and
capsules from the kinematics where a file has none."""
