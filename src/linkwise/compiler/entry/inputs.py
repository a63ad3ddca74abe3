"""Inputs of a call: what they are, and copies of those that cannot be read where they are."""

from __future__ import annotations

from linkwise.compiler.entry.operations import (
    call,
    call_double,
    copy_double,
    copy_float,
    double_to_float,
    float_to_double,
    int_to_double,
    load,
    load_int,
    stack,
    store,
)
from linkwise.compiler.runtime.layout import (
    ALIGNED,
    AXES,
    COUNT_MASK,
    DATA,
    DENSE,
    DOUBLES,
    DTYPE,
    FLAGS,
    FLOATS,
    INPUT_BYTES,
    INTS,
    ITEMS,
    LENGTH,
    LIST_ITEMS,
    MOST_AXES,
    NOT_TAKEN,
    NUMBER,
    NUMBERS,
    READY,
    SHAPE,
    STRIDES,
    TUPLE_ITEMS,
    TYPE,
    Frame,
    Globals,
    Input,
    Plan,
)

TWO_TO_63, MINUS_ONE = 0x43E0000000000000, 0xBFF0000000000000 - (1 << 64)  # bits of doubles


def describe_dense(table: int, plan: int, inputs: int, addresses: int, frame: int) -> int:
    """What the inputs are if all are dense arrays of one precision with at most one leading axis; 0: they are not."""
    number = load(plan + Plan.inputs)
    sizes = load(plan + Plan.sizes)
    kind = load(table + Globals.array_type)
    if number == 0:
        return 0
    first = load(inputs)
    if load(first + TYPE) != kind:
        return 0
    dtype = load(first + DTYPE)
    count = -1
    for k in range(number):
        array = load(inputs + 8 * k)
        if load(array + TYPE) != kind or load(array + DTYPE) != dtype:
            return 0
        if (load_int(array + FLAGS) & DENSE) != DENSE:
            return 0
        axes = load_int(array + AXES)
        lengths = load(array + SHAPE)
        size = load(sizes + 8 * k)
        stride = 0
        if axes == 2:
            rows = load(lengths)
            if count != -1 and rows != count:
                return 0
            count = rows
            lengths += 8
            stride = size
        elif axes != 1:
            return 0
        if load(lengths) != size:
            return 0
        store(addresses + 8 * k, load(array + DATA))
        store(addresses + 8 * (number + k), stride)
    item = 8
    if dtype == load(table + Globals.float_dtype):
        item = 4
    elif dtype != load(table + Globals.double_dtype) or load(plan + Plan.single):
        return 0
    store(frame + Frame.item, item)
    store(frame + Frame.count, 1 if count == -1 else count)
    store(frame + Frame.need, 0)
    store(frame + Frame.axes, count != -1)
    store(frame + Frame.lengths, count)
    return count != 0


def describe(table: int, plan: int, inputs: int, addresses: int, records: int, frame: int) -> int:
    """Precision, number of states, addresses and strides of the inputs: arrays of any shape, strides and precision,
    lists and tuples of numbers; 0 where one is something else."""
    if describe_dense(table, plan, inputs, addresses, frame):
        return 1
    number = load(plan + Plan.inputs)
    sizes = load(plan + Plan.sizes)
    lengths = frame + Frame.lengths
    store(frame + Frame.axes, 0)
    floats = 0
    for k in range(number):
        record = records + INPUT_BYTES * k
        if not describe_one(table, load(inputs + 8 * k), load(sizes + 8 * k), record):
            return 0
        if not broadcast(record, frame):
            return 0
        floats += load(record + Input.kind) == FLOATS
    item = 8
    if load(plan + Plan.single) or (number and floats == number):
        item = 4
    count = 1
    for j in range(load(frame + Frame.axes)):
        count = count * load(lengths + 8 * j)
    need = 0
    for k in range(number):
        record = records + INPUT_BYTES * k
        size = load(sizes + 8 * k)
        if needs_copy(record, frame, size, item):
            need += 8 * load(record + Input.rows) * size
        store(addresses + 8 * k, load(record + Input.data))
        store(addresses + 8 * (number + k), load(record + Input.stride))
    store(frame + Frame.item, item)
    store(frame + Frame.count, count)
    store(frame + Frame.need, need)
    return count > 0


def describe_one(table: int, value: int, size: int, record: int) -> int:
    """What an input is: numbers of which kind, where, with which leading axes."""
    kind = load(value + TYPE)
    store(record + Input.axes, 0)
    if kind == load(table + Globals.list_type) or kind == load(table + Globals.tuple_type):
        items = value + TUPLE_ITEMS
        if kind == load(table + Globals.list_type):
            items = load(value + LIST_ITEMS)
        store(record + Input.kind, ITEMS)
        store(record + Input.data, items)
        return load(value + LENGTH) == size
    if kind != load(table + Globals.array_type):
        return 0
    axes = load_int(value + AXES) - 1
    if axes < 0 or axes > MOST_AXES or (load_int(value + FLAGS) & ALIGNED) == 0:
        return 0
    # arrays from pickles have types of their own, which say the same
    numbers = load(load(value + DTYPE) + NUMBERS)
    if numbers == load(load(table + Globals.double_dtype) + NUMBERS):
        store(record + Input.kind, DOUBLES)
    elif numbers == load(load(table + Globals.float_dtype) + NUMBERS):
        store(record + Input.kind, FLOATS)
    elif numbers == load(load(table + Globals.int_dtype) + NUMBERS):
        store(record + Input.kind, INTS)
    else:
        return 0
    store(record + Input.data, load(value + DATA))
    store(record + Input.axes, axes)
    store(record + Input.lengths, load(value + SHAPE))
    store(record + Input.steps, load(value + STRIDES))
    return load(load(value + SHAPE) + 8 * axes) == size


def broadcast(record: int, frame: int) -> int:
    """Join the leading axes of an input with those of the others, the last ones first."""
    axes = load(record + Input.axes)
    known = load(frame + Frame.axes)
    for j in range(axes):
        length = load(load(record + Input.lengths) + 8 * (axes - 1 - j))
        place = frame + Frame.lengths + 8 * j
        if j >= known or load(place) == 1:
            store(place, length)
        elif length != 1 and length != load(place):
            return 0
    if axes > known:
        store(frame + Frame.axes, axes)
    return 1


def step_of(record: int, j: int) -> int:
    """Bytes from one element to the next along the j-th leading axis from the right; 0 where the input is repeated."""
    axes = load(record + Input.axes)
    if j >= axes:
        return 0
    if load(load(record + Input.lengths) + 8 * (axes - 1 - j)) == 1:
        return 0
    return load(load(record + Input.steps) + 8 * (axes - 1 - j))


def needs_copy(record: int, frame: int, size: int, item: int) -> int:
    """Whether the rows of an input must be converted or gathered; if not, their distance in scalars."""
    store(record + Input.rows, 0)
    store(record + Input.stride, 0)
    kind = load(record + Input.kind)
    axes = load(record + Input.axes)
    rows = 1
    for j in range(load(frame + Frame.axes)):
        if step_of(record, j) != 0:
            rows = 0
    if rows == 0:  # as many as there are states
        rows = 1
        for j in range(load(frame + Frame.axes)):
            rows = rows * load(frame + Frame.lengths + 8 * j)
    if kind != (DOUBLES if item == 8 else FLOATS):
        store(record + Input.rows, rows)
        return 1
    if size > 1 and load(load(record + Input.steps) + 8 * axes) != item:
        store(record + Input.rows, rows)
        return 1
    distance = 0
    expected = 0
    seen = 0
    for j in range(load(frame + Frame.axes)):
        length = load(frame + Frame.lengths + 8 * j)
        if length != 1:
            step = step_of(record, j)
            if seen == 0:
                distance = step
                seen = 1
            elif step != expected:
                store(record + Input.rows, rows)
                return 1
            expected = step * length
    if distance & (item - 1):
        store(record + Input.rows, rows)
        return 1
    store(record + Input.stride, distance >> (3 if item == 8 else 2))
    return 0


def fill(table: int, plan: int, records: int, frame: int, addresses: int, target: int) -> int:
    """Copy the inputs that cannot be read where they are; READY, or NOT_TAKEN where an item is no number."""
    if load(frame + Frame.need) == 0:
        return READY
    item = load(frame + Frame.item)
    number = load(plan + Plan.inputs)
    sizes = load(plan + Plan.sizes)
    for k in range(number):
        record = records + INPUT_BYTES * k
        rows = load(record + Input.rows)
        size = load(sizes + 8 * k)
        if rows:
            store(addresses + 8 * k, target)
            store(addresses + 8 * (number + k), size if rows > 1 else 0)
            if load(record + Input.kind) == ITEMS:
                if not convert_items(table, load(record + Input.data), size, target, item):
                    return NOT_TAKEN
            else:
                convert_rows(record, frame, rows, size, target, item)
            target += 8 * rows * size
    return READY


def convert_items(table: int, items: int, size: int, target: int, item: int) -> int:
    """The objects of a list or tuple as numbers; 0 where one is none."""
    number = stack(8)
    for j in range(size):
        if not convert_object(table, load(items + 8 * j), number):
            return 0
        if item == 8:
            copy_double(target + 8 * j, number)
        else:
            double_to_float(target + 4 * j, number)
    return 1


def convert_object(table: int, value: int, target: int) -> int:
    """A float, an int below 2**63 or a NumPy float64, as a double."""
    kind = load(value + TYPE)
    if kind == load(table + Globals.float_type) or kind == load(table + Globals.double_type):
        copy_double(target, value + NUMBER)
        return 1
    if kind != load(table + Globals.int_type):
        return 0
    call_double(load(table + Globals.int_to_double), value, target)
    bits = load(target)
    if bits == MINUS_ONE and call(load(table + Globals.error_occurred)):
        call(load(table + Globals.clear_error))
        return 0
    return (bits & COUNT_MASK) < TWO_TO_63


def convert_rows(record: int, frame: int, rows: int, size: int, target: int, item: int) -> int:
    """The rows of an array, dense and in the right precision."""
    kind = load(record + Input.kind)
    step = load(load(record + Input.steps) + 8 * load(record + Input.axes))
    data = load(record + Input.data)
    axes = load(frame + Frame.axes)
    places = stack(8 * MOST_AXES)
    for j in range(axes):
        store(places + 8 * j, 0)
    for _row in range(rows):
        source = data
        for j in range(axes):
            source += load(places + 8 * j) * step_of(record, j)
        for j in range(size):
            convert_number(kind, source + step * j, target, item)
            target += item
        j = 0
        while j < axes:  # the next place, as an odometer counts
            place = load(places + 8 * j) + 1
            store(places + 8 * j, place)
            if place < load(frame + Frame.lengths + 8 * j):
                break
            store(places + 8 * j, 0)
            j += 1
    return 0


def convert_number(kind: int, source: int, target: int, item: int) -> int:
    """One number of an array in another precision."""
    number = stack(8)
    if kind == FLOATS and item == 4:
        copy_float(target, source)
    else:
        if kind == FLOATS:
            float_to_double(number, source)
        elif kind == INTS:
            int_to_double(number, source)
        else:
            copy_double(number, source)
        if item == 8:
            copy_double(target, number)
        else:
            double_to_float(target, number)
    return 0
