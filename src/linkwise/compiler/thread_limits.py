"""``threadpoolctl.threadpool_limits`` counts for Linkwise's threads, too.

threadpoolctl finds libraries by the names of their files. Linkwise has none, but never runs without NumPy's, so that is
the file its controller answers to.
"""

from __future__ import annotations

import contextlib

from linkwise.compiler import threads


def _register() -> None:
    import threadpoolctl  # used where it is installed

    class Controller(threadpoolctl.LibController):
        user_api = "linkwise"
        internal_api = "linkwise"
        filename_prefixes = ("_multiarray_umath",)

        def get_num_threads(self) -> int:
            return threads.wanted(None)

        def set_num_threads(self, num_threads: int) -> None:
            threads.limit = int(num_threads)

        def get_version(self) -> None:
            return None

    threadpoolctl.register(Controller)


with contextlib.suppress(ImportError):
    _register()
