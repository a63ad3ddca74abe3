"""What the tests of this folder share."""

import os

from pretended import pretended

# JAX would take three quarters of the GPU's memory, which CuPy, PyTorch and other workers need, too
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

__all__ = ["pretended"]
