"""Parts of ``planning.py``."""
