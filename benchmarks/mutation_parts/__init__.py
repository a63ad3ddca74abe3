"""Parts of mutation.py."""
