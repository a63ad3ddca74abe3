"""Memory of large results, which is used again.

The system gives large arrays new pages each time, and clearing them may take as long as the computation. Blocks for
results of ``LARGE`` to ``LARGEST`` bytes are therefore kept, at most ``BLOCKS`` of them with ``MOST_KEPT`` bytes. A
block is a NumPy array; a result is an array whose base it is. Views of the result refer to the block, too, so that
nothing but this list refers to it once the last of them is gone: then it is free. Every caller holds the interpreter
lock.
"""

from __future__ import annotations

from linkwise.compiler.entry.operations import call, call_int, load, load_int, stack, store
from linkwise.compiler.runtime.layout import (
    BLOCKS,
    DATA,
    DENSE,
    LARGE,
    LARGEST,
    MOST_KEPT,
    REFERENCES,
    SHAPE,
    WRITEABLE,
    Globals,
)


def new_result(table: int, dtype: int, axes: int, lengths: int, size: int) -> int:
    """A new array of ``size`` bytes, or 0 with an error set."""
    kind = load(table + Globals.array_type)
    block = 0
    data = 0
    flags = 0
    if size >= LARGE and size <= LARGEST:
        block = held_block(table, size)
        if block:
            data = load(block + DATA)
            flags = DENSE | WRITEABLE
    call(load(table + Globals.hold), dtype)  # the array takes the reference
    made = call(load(table + Globals.new_array), kind, dtype, axes, lengths, 0, data, flags, 0)
    if block:
        if made == 0:
            call(load(table + Globals.release), block)
        elif call_int(load(table + Globals.set_base), made, block):  # the array takes the reference
            call(load(table + Globals.release), made)
            made = 0
    return made


def held_block(table: int, size: int) -> int:
    """A block with room for so many bytes and at most twice as many, with a reference to it; 0 where none is left."""
    blocks = load(table + Globals.blocks)
    for k in range(BLOCKS):
        block = load(blocks + 8 * k)
        if block and load_int(block + REFERENCES) == 1:
            room = length_of(block)
            if room >= size and room <= 2 * size:
                call(load(table + Globals.hold), block)
                return block
    place = make_room(table, blocks, size)
    if place == 0:
        return 0
    lengths = stack(8)
    store(lengths, size)
    byte = load(table + Globals.byte_dtype)
    call(load(table + Globals.hold), byte)
    block = call(
        load(table + Globals.new_array), load(table + Globals.array_type), byte, 1, lengths, 0, 0, 0, 0
    )
    if block == 0:
        call(load(table + Globals.clear_error))
        return 0
    store(place, block)
    call(load(table + Globals.hold), block)
    return block


def make_room(table: int, blocks: int, size: int) -> int:
    """The address of a place for a new block, 0 where there is none; free blocks are given up for it."""
    total = size
    for k in range(BLOCKS):
        block = load(blocks + 8 * k)
        if block:
            total += length_of(block)
    place = 0
    for k in range(BLOCKS):
        block = load(blocks + 8 * k)
        if block and load_int(block + REFERENCES) == 1 and (total > MOST_KEPT or place == 0):
            total -= length_of(block)
            store(blocks + 8 * k, 0)
            call(load(table + Globals.release), block)
            block = 0
        if block == 0:
            place = blocks + 8 * k
    if total > MOST_KEPT:
        return 0
    return place


def length_of(block: int) -> int:
    return load(load(block + SHAPE))
