"""Kernels on NVIDIA GPUs: arrays of CuPy, PyTorch and JAX go in and come out as the same kind, without a copy.

Nothing here is imported before such an array is given to a kernel. The driver and the run-time compiler are used
through their C interfaces, so that any one of the three frameworks is enough; without a GPU, a driver or a compiler
the first call says in one line what is missing.

======================  ======================================================================
``call``                what a kernel does with arrays that are not NumPy's
``autograd``            gradients in PyTorch and JAX
``frameworks``          the three kinds of arrays: how each is recognised, read and made
``device``              a kernel compiled for one GPU, from the cache where possible; its launch
``driver``, ``nvrtc``   the C interfaces
======================  ======================================================================
"""

from linkwise.gpu.call import call
from linkwise.gpu.errors import DeviceError
from linkwise.gpu.rollout import call_rollout

__all__ = ["DeviceError", "call", "call_rollout"]
