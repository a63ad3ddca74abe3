"""Robots in TOML: ``reader`` and ``writer``, and the tables of the file."""
