"""The version of the package: the number in pyproject.toml."""

__version__ = "0.3.0"
