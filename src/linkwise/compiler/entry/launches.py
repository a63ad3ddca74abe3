"""The launch of a kernel on a GPU. It uses no Python objects, so that any thread may call it."""

from __future__ import annotations

from linkwise.compiler.entry.operations import call_int, load, stack, store
from linkwise.compiler.runtime.layout import TOO_MANY_STATES, Launch

PARAMETERS, PARAMETERS_SIZE = 1, 2  # CU_LAUNCH_PARAM_BUFFER_POINTER, ..._SIZE


def launch(table: int, words: int, count: int, stream: int) -> int:
    """Start a kernel for ``count`` states; 0, or an error of the driver. ``words`` are its parameters.

    Nothing waits for the GPU, and nothing is allocated: the launch can be part of a graph that is being captured.
    """
    blocks = blocks_of(table, count)
    if blocks > load(table + Launch.most_blocks):
        return TOO_MANY_STATES
    if is_current(table):
        return start(table, words, blocks, stream)
    code = call_int(load(table + Launch.enter), load(table + Launch.context))
    if code:
        return code
    code = start(table, words, blocks, stream)
    left = stack(8)
    call_int(load(table + Launch.leave), left)
    return code


def blocks_of(table: int, count: int) -> int:
    """Blocks of a launch for so many states; more than ``most_blocks`` where one launch cannot take them."""
    states = load(table + Launch.states)
    blocks = (count + states - 1) // states
    if blocks > load(table + Launch.most_blocks) and load(table + Launch.grows) == 0:
        blocks = load(table + Launch.most_blocks)
    return blocks


def is_current(table: int) -> int:
    """Whether the calling thread uses the GPU already."""
    context = stack(8)
    store(context, 0)
    call_int(load(table + Launch.current), context)
    return load(context) == load(table + Launch.context)


def start(table: int, words: int, blocks: int, stream: int) -> int:
    extra = stack(40)
    size = stack(8)
    store(size, load(table + Launch.bytes))
    store(extra, PARAMETERS)
    store(extra + 8, words)
    store(extra + 16, PARAMETERS_SIZE)
    store(extra + 24, size)
    store(extra + 32, 0)
    function = load(table + Launch.function)
    threads = load(table + Launch.threads)
    shared = load(table + Launch.shared)
    return call_int(
        load(table + Launch.start), function, blocks, 1, 1, threads, 1, 1, shared, stream, 0, extra
    )
