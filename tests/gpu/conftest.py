"""What the tests of this folder share."""

import os

from pretended import pretended

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leaves memory to CuPy, PyTorch and other workers

__all__ = ["pretended"]
