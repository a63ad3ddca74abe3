"""One call of a kernel: from objects to a result."""

from __future__ import annotations

from linkwise.compiler.entry.devices import compute_on_device
from linkwise.compiler.entry.inputs import describe, fill
from linkwise.compiler.entry.operations import call, inline, load, load_int, stack, store
from linkwise.compiler.entry.results import finish, prepare, release_all
from linkwise.compiler.runtime.layout import (
    AXES,
    DATA,
    DENSE,
    DTYPE,
    FAILED,
    FLAGS,
    FRAME_BYTES,
    INPUT_BYTES,
    MOST_ARRAYS,
    MOST_OUTPUT_AXES,
    NOT_TAKEN,
    READY,
    SHAPE,
    SHAPE_BYTES,
    SHORT_WORK,
    TYPE,
    Frame,
    Globals,
    Plan,
    Shape,
)

MOST_STACK = 1 << 16  # bytes; more is allocated


def compute(plan: int, inputs: int, out: int, threads: int, look: int) -> int:
    """The result for these objects; NOT_TAKEN leaves the call to Python, FAILED: an error has been set."""
    table = load(plan + Plan.globals)
    none = load(table + Globals.none)
    if out == none and (threads == none or one_thread(table, threads, 1, 1)):
        made = compute_single(table, plan, inputs, look)
        if made == NOT_TAKEN and threads == none:
            made = compute_batch(table, plan, inputs, look)
        if made != NOT_TAKEN:
            return made
    number = load(plan + Plan.inputs)
    outputs = load(plan + Plan.outputs)
    if number and load(load(inputs) + TYPE) != load(table + Globals.array_type) and load(plan + Plan.devices):
        made = compute_on_device(table, plan, inputs, out)
        if made != NOT_TAKEN:
            return made
    # words: addresses of outputs and inputs, strides of inputs; then the results, then room for scalars
    words = stack(8 * (3 * outputs + 2 * number) + FRAME_BYTES + INPUT_BYTES * number)
    addresses = words + 8 * outputs
    results = addresses + 16 * number
    frame = results + 16 * outputs
    records = frame + FRAME_BYTES
    if not describe(table, plan, inputs, addresses, records, frame):
        return NOT_TAKEN
    count = load(frame + Frame.count)
    form = 8 * (2 * (load(frame + Frame.item) == 4) + (count > 1))
    run = load(plan + Plan.run + form)
    limit = load(plan + Plan.limit + form)
    if run == 0 or not one_thread(table, threads, count, limit):
        return NOT_TAKEN
    scratch = load(plan + Plan.scratch + form)
    size = scratch + load(frame + Frame.need)
    allocated = 0
    room = 0
    if size > MOST_STACK:
        allocated = call(load(table + Globals.allocate), size + 64)
        if allocated == 0:
            return NOT_TAKEN
        room = (allocated + 63) & -64
    elif size:
        room = stack(size)
    made = fill(table, plan, records, frame, addresses, room + scratch)
    if made == READY:
        made = prepare(table, plan, frame, out, words)
    if made == READY:
        execute(table, run, count, words, room, count > (limit >> SHORT_WORK))
        made = finish(table, plan, count, load(frame + Frame.item), words, results, look)
    if allocated:
        call(load(table + Globals.free), allocated)
    return made


@inline
def compute_single(table: int, plan: int, inputs: int, look: int) -> int:
    """The same for the most frequent call: every input is one dense state of the same precision."""
    words = stack(8 * 3 * MOST_ARRAYS)  # as in ``compute``; the strides of one state are not used
    results = stack(8 * 2 * MOST_ARRAYS)
    number = load(plan + Plan.few)
    outputs = load(plan + Plan.outputs)
    if number == 0:
        return NOT_TAKEN
    sizes = load(plan + Plan.sizes)
    kind = load(table + Globals.array_type)
    first = load(inputs)
    if load(first + TYPE) != kind:
        return NOT_TAKEN
    dtype = load(first + DTYPE)
    for k in range(number):
        array = load(inputs + 8 * k)
        if load(array + TYPE) != kind or load(array + DTYPE) != dtype:
            return NOT_TAKEN
        if (load_int(array + FLAGS) & DENSE) != DENSE or load_int(array + AXES) != 1:
            return NOT_TAKEN
        if load(load(array + SHAPE)) != load(sizes + 8 * k):
            return NOT_TAKEN
        store(words + 8 * (outputs + k), load(array + DATA))
    run = load(plan + Plan.quick)
    item = 8
    if dtype == load(table + Globals.float_dtype):
        run = load(plan + Plan.quick_float)
        item = 4
    elif dtype != load(table + Globals.double_dtype) or load(plan + Plan.single):
        return NOT_TAKEN
    if run == 0:
        return NOT_TAKEN
    shape = load(plan + Plan.shapes)
    for k in range(outputs):
        axes = load(shape + Shape.axes)
        result = 0
        data = results + 8 * (MOST_ARRAYS + k)
        if axes:
            call(load(table + Globals.hold), dtype)  # the array takes the reference
            result = call(
                load(table + Globals.new_array), kind, dtype, axes, shape + Shape.lengths, 0, 0, 0, 0
            )
            if result == 0:
                release_all(table, results, k)
                return FAILED
            data = load(result + DATA)
        store(words + 8 * k, data)
        store(results + 8 * k, result)
        shape += SHAPE_BYTES
    call(run, 0, 1, words, 0)
    if outputs == 1 and look == 0 and load(results):
        return load(results)
    return finish(table, plan, 1, item, words, results, look)


def compute_batch(table: int, plan: int, inputs: int, look: int) -> int:
    """The same for small batches: every input has one leading axis, is dense and of the same precision and length."""
    number = load(plan + Plan.few)
    outputs = load(plan + Plan.outputs)
    if number == 0:
        return NOT_TAKEN
    words = stack(8 * 3 * MOST_ARRAYS)
    results = stack(8 * MOST_ARRAYS)
    lengths = stack(8 * (1 + MOST_OUTPUT_AXES))
    kind = load(table + Globals.array_type)
    first = load(inputs)
    if load(first + TYPE) != kind or load_int(first + AXES) != 2:
        return NOT_TAKEN
    dtype = load(first + DTYPE)
    count = load(load(first + SHAPE))
    addresses = words + 8 * outputs
    for k in range(number):
        array = load(inputs + 8 * k)
        size = load(load(plan + Plan.sizes) + 8 * k)
        if load(array + TYPE) != kind or load(array + DTYPE) != dtype:
            return NOT_TAKEN
        if (load_int(array + FLAGS) & DENSE) != DENSE or load_int(array + AXES) != 2:
            return NOT_TAKEN
        if load(load(array + SHAPE)) != count or load(load(array + SHAPE) + 8) != size:
            return NOT_TAKEN
        store(addresses + 8 * k, load(array + DATA))
        store(addresses + 8 * (number + k), size)
    form = 8
    item = 8
    if dtype == load(table + Globals.float_dtype):
        form = 24
        item = 4
    elif dtype != load(table + Globals.double_dtype) or load(plan + Plan.single):
        return NOT_TAKEN
    run = load(plan + Plan.run + form)
    scratch = load(plan + Plan.scratch + form)
    if (
        run == 0
        or count < 2
        or count > (load(plan + Plan.limit + form) >> SHORT_WORK)
        or scratch > MOST_STACK
    ):
        return NOT_TAKEN
    room = stack(scratch)
    shape = load(plan + Plan.shapes)
    store(lengths, count)
    for k in range(outputs):
        axes = load(shape + Shape.axes)
        for j in range(axes):
            store(lengths + 8 * (1 + j), load(shape + Shape.lengths + 8 * j))
        call(load(table + Globals.hold), dtype)  # the array takes the reference
        result = call(load(table + Globals.new_array), kind, dtype, axes + 1, lengths, 0, 0, 0, 0)
        if result == 0:
            release_all(table, results, k)
            return FAILED
        store(words + 8 * k, load(result + DATA))
        store(results + 8 * k, result)
        shape += SHAPE_BYTES
    call(run, 0, count, words, room)
    return finish(table, plan, count, item, words, results, look)


def execute(table: int, run: int, count: int, words: int, room: int, release: int) -> int:
    """Run the code; the interpreter lock is released where that takes long."""
    if release:
        thread = call(load(table + Globals.unlock))
        call(run, 0, count, words, room)
        call(load(table + Globals.lock), thread)
    else:
        call(run, 0, count, words, room)
    return 0


def one_thread(table: int, threads: int, count: int, limit: int) -> int:
    """Whether this thread is to compute all states."""
    if threads == load(table + Globals.none):
        return count == 1 or count <= limit
    if load(threads + TYPE) != load(table + Globals.int_type):
        return 0
    value = call(load(table + Globals.int_value), threads)
    if value < 1:
        call(load(table + Globals.clear_error))
        return 0
    return count == 1 or value == 1 or 2 * count <= limit
