"""Robot files: readers and writers of URDF, MJCF, TOML and the specification of 1992, meshes, and what a format
cannot hold. ``files`` chooses the reader; the robot as data is in ``linkwise.model``.
"""
