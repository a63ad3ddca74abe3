"""One thread for small matrices: several would wait for each other longer than they work."""

from __future__ import annotations

import contextlib


def one_thread() -> contextlib.AbstractContextManager:
    """A block in which NumPy's linear algebra uses one thread; without threadpoolctl it does as it likes."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return contextlib.nullcontext()
    return threadpool_limits(1, user_api="blas")
