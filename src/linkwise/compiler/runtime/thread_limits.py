"""``threadpoolctl.threadpool_limits`` also limits Linkwise's threads.

threadpoolctl finds libraries by the names of their files. Linkwise has no such file, but always runs together with
NumPy's, so its controller is registered for that one.
"""

from __future__ import annotations

import contextlib

from linkwise.compiler.runtime import threads


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
