"""Functions of JAX, vectorised over states and compiled: shared by the adapters of adam and frax."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.bench.peers.base import INPUTS, Peer, States, Task


def load_jax() -> Any:
    """JAX on the processor, in double precision, with one thread; must be called before JAX is imported elsewhere."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    return jax


class JaxPeer(Peer):
    """A library whose functions of one state are traced by JAX."""

    precisions = ("float64", "float32")
    takes_batches = False  # whether its functions take leading axes themselves

    def __init__(self, jax: Any, functions: dict[str, Callable[..., Any]], dof: int):
        self.jax, self.functions = jax, functions
        self.order = np.arange(dof)
        self.compiled: dict[tuple[str, bool], Callable[..., Any]] = {}

    def call(self, function: str) -> tuple[str, Callable[..., Any]] | None:
        return (function, self.functions[function]) if function in self.functions else None

    def one(self, function: str, states: States) -> Task | None:
        return self._task(function, [states[name][0] for name in INPUTS[function]], False, "jit")

    def batch(self, function: str, states: States) -> Task | None:
        how = "jit" if self.takes_batches else "jit of vmap"
        return self._task(function, [states[name] for name in INPUTS[function]], True, how)

    def _task(self, function: str, values: list[np.ndarray], many: bool, how: str) -> Task | None:
        if function not in self.functions:
            return None
        jax = self.jax
        compiled = self.compiled.get((function, many))
        if compiled is None:
            plain = self.functions[function]
            many_by_jax = many and not self.takes_batches
            compiled = self.compiled[function, many] = jax.jit(jax.vmap(plain) if many_by_jax else plain)
        given = [jax.numpy.asarray(value) for value in values]

        def run() -> Any:
            return compiled(*given).block_until_ready()

        return Task(how, run, lambda: np.asarray(run()))
