"""Joint positions of poses: inverse kinematics, and joints along a path of a frame."""
