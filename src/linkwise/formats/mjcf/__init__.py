"""MJCF, MuJoCo's format: ``reader`` and ``writer``, and a file for each part of the format."""
