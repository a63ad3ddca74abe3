"""Results of a call: new arrays, or those of the caller."""

from __future__ import annotations

from linkwise.compiler.entry.memory import new_result
from linkwise.compiler.entry.operations import call, is_nan_double, is_nan_float, load, load_int, stack, store
from linkwise.compiler.runtime.layout import (
    AXES,
    DATA,
    DENSE,
    DTYPE,
    FAILED,
    FLAGS,
    LENGTH,
    LIST_ITEMS,
    MOST_AXES,
    MOST_OUTPUT_AXES,
    NOT_TAKEN,
    READY,
    SHAPE,
    SHAPE_BYTES,
    TUPLE_ITEMS,
    TYPE,
    WRITEABLE,
    Frame,
    Globals,
    Plan,
    Shape,
)


def prepare(table: int, plan: int, frame: int, out: int, words: int) -> int:
    """New arrays, or those of the caller, to write to; READY, NOT_TAKEN or FAILED."""
    outputs = load(plan + Plan.outputs)
    addresses = words + 8 * outputs
    results = addresses + 16 * load(plan + Plan.inputs)
    for k in range(outputs):
        shape = load(plan + Plan.shapes) + SHAPE_BYTES * k
        result = 0
        if out == load(table + Globals.none):
            if load(frame + Frame.axes) + load(shape + Shape.axes) == 0:
                store(words + 8 * k, results + 8 * (outputs + k))  # a scalar: made from its value afterwards
            else:
                result = new_array(table, frame, shape)
                if result == 0:
                    release_all(table, results, k)
                    return FAILED
                store(words + 8 * k, load(result + DATA))
        else:
            result = given_array(table, out, k, outputs)
            if result == 0 or not can_take(table, plan, frame, shape, result, words, k):
                release_all(table, results, k)
                return NOT_TAKEN
            store(words + 8 * k, load(result + DATA))
            call(load(table + Globals.hold), result)
        store(results + 8 * k, result)
    return READY


def new_array(table: int, frame: int, shape: int) -> int:
    lengths = stack(8 * (MOST_AXES + MOST_OUTPUT_AXES))
    axes = load(frame + Frame.axes)
    for j in range(axes):
        store(lengths + 8 * j, load(frame + Frame.lengths + 8 * (axes - 1 - j)))
    for j in range(load(shape + Shape.axes)):
        store(lengths + 8 * (axes + j), load(shape + Shape.lengths + 8 * j))
    item = load(frame + Frame.item)
    size = load(frame + Frame.count) * item * load(shape + Shape.size)
    return new_result(table, dtype_of(table, item), axes + load(shape + Shape.axes), lengths, size)


def dtype_of(table: int, item: int) -> int:
    """The dtype of numbers with so many bytes."""
    return load(table + Globals.double_dtype) if item == 8 else load(table + Globals.float_dtype)


def given_array(table: int, out: int, k: int, outputs: int) -> int:
    """The k-th object of ``out``; 0 where there are not as many as outputs."""
    if outputs == 1:
        return out
    kind = load(out + TYPE)
    if kind == load(table + Globals.tuple_type) and load(out + LENGTH) == outputs:
        return load(out + TUPLE_ITEMS + 8 * k)
    if kind == load(table + Globals.list_type) and load(out + LENGTH) == outputs:
        return load(load(out + LIST_ITEMS) + 8 * k)
    return 0


def can_take(table: int, plan: int, frame: int, shape: int, array: int, words: int, k: int) -> int:
    """Whether the code can write the k-th output to an array of the caller."""
    if load(array + TYPE) != load(table + Globals.array_type):
        return 0
    wanted = DENSE | WRITEABLE
    if (load_int(array + FLAGS) & wanted) != wanted:
        return 0
    item = load(frame + Frame.item)
    dtype = dtype_of(table, item)
    axes = load(frame + Frame.axes)
    own = load(shape + Shape.axes)
    if load(array + DTYPE) != dtype or load_int(array + AXES) != axes + own:
        return 0
    lengths = load(array + SHAPE)
    for j in range(axes):
        if load(lengths + 8 * j) != load(frame + Frame.lengths + 8 * (axes - 1 - j)):
            return 0
    for j in range(own):
        if load(lengths + 8 * (axes + j)) != load(shape + Shape.lengths + 8 * j):
            return 0
    count = load(frame + Frame.count)
    start = load(array + DATA)
    end = start + count * item * load(shape + Shape.size)
    return is_apart(plan, count, item, words, k, start, end)


def is_apart(plan: int, count: int, item: int, words: int, k: int, start: int, end: int) -> int:
    """Whether no input and none of the outputs before the k-th lies between two addresses."""
    number = load(plan + Plan.inputs)
    addresses = words + 8 * load(plan + Plan.outputs)
    for j in range(number):
        low = load(addresses + 8 * j)
        high = low + item * load(load(plan + Plan.sizes) + 8 * j)
        reach = item * (count - 1) * load(addresses + 8 * (number + j))
        if reach < 0:
            low += reach
        else:
            high += reach
        if low < end and start < high:
            return 0
    for j in range(k):
        low = load(words + 8 * j)
        high = low + count * item * load(load(plan + Plan.shapes) + SHAPE_BYTES * j + Shape.size)
        if low < end and start < high:
            return 0
    return 1


def finish(table: int, plan: int, count: int, item: int, words: int, results: int, look: int) -> int:
    """The object to be returned; NOT_TAKEN where a NaN must be explained."""
    outputs = load(plan + Plan.outputs)
    if look:
        for k in range(outputs):
            size = load(load(plan + Plan.shapes) + SHAPE_BYTES * k + Shape.size)
            if has_nan(load(words + 8 * k), count * size, item):
                release_all(table, results, outputs)
                return NOT_TAKEN
    dtype = dtype_of(table, item)
    for k in range(outputs):
        if load(results + 8 * k) == 0:
            result = call(load(table + Globals.new_scalar), load(words + 8 * k), dtype, 0)
            if result == 0:
                release_all(table, results, outputs)
                return FAILED
            store(results + 8 * k, result)
    return together(table, results, outputs)


def together(table: int, results: int, outputs: int) -> int:
    """The only result, or a tuple of all."""
    if outputs == 1:
        return load(results)
    made = call(load(table + Globals.new_tuple), outputs)
    if made == 0:
        release_all(table, results, outputs)
        return FAILED
    for k in range(outputs):
        call(load(table + Globals.set_item), made, k, load(results + 8 * k))
    return made


def has_nan(data: int, count: int, item: int) -> int:
    found = 0
    if item == 8:
        for j in range(count):
            found = found | is_nan_double(data + 8 * j)
    else:
        for j in range(count):
            found = found | is_nan_float(data + 4 * j)
    return found


def release_all(table: int, results: int, count: int) -> int:
    """Release the references to the first results."""
    for k in range(count):
        if load(results + 8 * k):
            call(load(table + Globals.release), load(results + 8 * k))
    return 0
