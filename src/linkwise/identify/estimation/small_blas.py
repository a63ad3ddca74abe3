"""One thread for small matrices: with several threads, synchronisation would take longer than the work."""

from __future__ import annotations

import contextlib


def one_thread() -> contextlib.AbstractContextManager:
    """A block in which NumPy's linear algebra uses one thread; without threadpoolctl the number of threads is not
    changed."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1, user_api="blas")
