"""URDF: ``reader`` and ``writer``, what URDF cannot express (``extension``), and misspellings."""
