"""The version of the package: the number in pyproject.toml."""

__version__ = "0.2.0"
