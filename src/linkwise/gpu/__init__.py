"""Kernels on NVIDIA GPUs: arrays of CuPy, PyTorch and JAX go in and come out as the same kind, without a copy.

Nothing here is imported before such an array is given to a kernel. The driver and the run-time compiler are used
through their C interfaces, so that any one of the three frameworks is enough; without a GPU, a driver or a compiler
the first call says in one line what is missing.

======================  ======================================================================
``call``                what a kernel does with arrays that are not NumPy's
``frameworks``          the three kinds of arrays: how each is recognised, read and made
``graph``               calls recorded as CUDA graphs
``connect``             lets machine code make calls that were seen before
``launch``              a launch by addresses, for machine code and other callers
``device``              a kernel compiled for one GPU, from the cache where possible; its launch
``driver``, ``nvrtc``   the C interfaces
======================  ======================================================================
"""

from linkwise.gpu.call import call
from linkwise.gpu.errors import DeviceError
from linkwise.gpu.graph import Graph, graph, parametric_graph
from linkwise.gpu.rollout import call_rollout, rollout_graph

__all__ = ["DeviceError", "Graph", "call", "call_rollout", "graph", "parametric_graph", "rollout_graph"]
