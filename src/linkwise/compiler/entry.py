"""What the interpreter calls when a kernel or a method of a robot is called: from Python objects to machine code.

Written in the subset of Python that ``emit.routines`` turns into machine code: every value is a 64-bit integer, an
address or a number. ``call_kernel`` and ``call_method`` have the signature of CPython's vectorcall. They recognise
arrays, lists and tuples of numbers, the options a method was called with before, ``out`` and ``threads``; a call that
is anything else (or wrong) is given unchanged to a function in Python, which also has all error messages.
"""

from __future__ import annotations

from linkwise.compiler.layout import (
    ALIGNED,
    AXES,
    COUNT_MASK,
    CTYPES_ADDRESS,
    DATA,
    DENSE,
    DOUBLES,
    DTYPE,
    FAILED,
    FLAGS,
    FLOATS,
    FRAME_BYTES,
    INPUT_BYTES,
    INTS,
    ITEMS,
    LENGTH,
    LIST_ITEMS,
    MOST_AXES,
    MOST_OUTPUT_AXES,
    NOT_TAKEN,
    NUMBER,
    OPTION,
    OPTIONAL_INPUT,
    READY,
    SHAPE,
    SHAPE_BYTES,
    STRIDES,
    TARGET,
    TUPLE_ITEMS,
    TYPE,
    WRITEABLE,
    Entry,
    Frame,
    Globals,
    Input,
    MethodTable,
    Plan,
    Shape,
    Target,
)
from linkwise.compiler.memory_operations import (
    call,
    call_double,
    call_int,
    copy_double,
    copy_float,
    double_to_float,
    float_to_double,
    int_to_double,
    is_nan_double,
    is_nan_float,
    load,
    load_int,
    stack,
    store,
)

MOST_STACK = 1 << 16  # bytes; more is allocated
SHORT_WORK = 4  # the interpreter lock is released where a batch is longer than its limit shifted by this
DOUBLE_NUMBER, FLOAT_NUMBER = 12, 11  # NumPy's numbers of its types
TWO_TO_63, MINUS_ONE = 0x43E0000000000000, 0xBFF0000000000000 - (1 << 64)  # bits of doubles


# -- entry points ------------------------------------------------------------------------------------------------


def call_kernel(callable: int, args: int, count: int, keywords: int) -> int:
    """A kernel: as many arrays as it has inputs, ``out`` and ``threads``."""
    target = load(callable + TARGET)
    table = load(target + Target.globals)
    given = count & COUNT_MASK
    out = load(table + Globals.none)
    threads = out
    taken = given == load(target + Target.arguments)
    if keywords:
        for k in range(load(keywords + LENGTH)):
            name = load(keywords + TUPLE_ITEMS + 8 * k)
            value = load(args + 8 * (given + k))
            if name == load(table + Globals.out_name):
                out = value
            elif name == load(table + Globals.threads_name):
                threads = value
            else:
                taken = 0
    if taken:
        made = run_target(target, args, out, threads)
        if made == FAILED:
            return 0
        if made:
            return made
    return fall_back(table, load(target + Target.fallback), callable, args, given, keywords)


def run_target(target: int, args: int, out: int, threads: int) -> int:
    """The prelude, where there is one, and the kernel with what it gives."""
    prelude = load(target + Target.prelude)
    main = load(target + Target.main)
    if prelude == 0:
        return compute(main, args, out, threads, 0)
    states = load(target + Target.states)
    none = load(load(main + Plan.globals) + Globals.none)
    first = compute(prelude, args + 8 * states, none, none, 0)
    if first == NOT_TAKEN or first == FAILED:
        return first
    inputs = stack(8 * (states + 1))
    for k in range(states):
        store(inputs + 8 * k, load(args + 8 * k))
    store(inputs + 8 * states, first)
    made = compute(main, inputs, out, threads, 0)
    call(load(load(main + Plan.globals) + Globals.release), first)
    return made


def call_method(callable: int, args: int, count: int, keywords: int) -> int:
    """A method of a robot, with options it was called with before."""
    method = load(callable + TARGET)
    table = load(method + MethodTable.globals)
    given = count & COUNT_MASK
    if given > 0:
        robot = load(args)
        kind = load(robot + TYPE)
        owner = load(method + MethodTable.owner)
        if kind == owner or call_int(load(table + Globals.is_subtype), kind, owner):
            made = call_known(table, method, robot, args + 8, given - 1, keywords)
            if made == FAILED:
                return 0
            if made:
                return made
    return fall_back(table, load(method + MethodTable.fallback), callable, args, given, keywords)


def fall_back(table: int, function: int, callable: int, args: int, given: int, keywords: int) -> int:
    """Call ``function(callable, *args, **keywords)``."""
    total = given
    if keywords:
        total += load(keywords + LENGTH)
    words = stack(8 * (total + 1))
    store(words, callable)
    for k in range(total):
        store(words + 8 * (k + 1), load(args + 8 * k))
    return call(load(table + Globals.vectorcall), function, words, given + 1, keywords)


# -- methods of robots -------------------------------------------------------------------------------------------


def call_known(table: int, method: int, robot: int, args: int, given: int, keywords: int) -> int:
    """Find the plan for these options among the known calls of the robot."""
    slot = load(robot + load(method + MethodTable.slot))
    if slot == 0 or given > load(method + MethodTable.positional):
        return NOT_TAKEN
    parameters = load(method + MethodTable.parameters)
    values = stack(8 * parameters)
    if not collect(method, args, given, keywords, values):
        return NOT_TAKEN
    first = load(load(slot + CTYPES_ADDRESS) + load(method + MethodTable.index))
    entry = first
    while entry:
        if matches(table, method, entry, values, 0):
            break
        entry = load(entry + Entry.next)
    if entry == 0:  # a name may be another object with the same text
        entry = first
        while entry:
            if matches(table, method, entry, values, 1):
                break
            entry = load(entry + Entry.next)
    if entry == 0:
        return NOT_TAKEN
    plan = load(entry + Entry.plan)
    order = load(entry + Entry.order)
    count = load(plan + Plan.inputs)
    inputs = stack(8 * count)
    for k in range(count):
        store(inputs + 8 * k, load(values + load(order + 8 * k)))
    out = load(values + load(method + MethodTable.out))
    threads = load(values + load(method + MethodTable.threads))
    return compute(plan, inputs, out, threads, load(entry + Entry.look))


def collect(method: int, args: int, given: int, keywords: int, values: int) -> int:
    """The value of every parameter; 0 where one is missing or unknown."""
    parameters = load(method + MethodTable.parameters)
    defaults = load(method + MethodTable.defaults)
    names = load(method + MethodTable.names)
    for k in range(given):
        store(values + 8 * k, load(args + 8 * k))
    for k in range(given, parameters):
        store(values + 8 * k, load(defaults + 8 * k))
    if keywords:
        for k in range(load(keywords + LENGTH)):
            name = load(keywords + TUPLE_ITEMS + 8 * k)
            found = given
            while found < parameters:
                if load(names + 8 * found) == name:
                    break
                found += 1
            if found == parameters:
                return 0
            store(values + 8 * found, load(args + 8 * (given + k)))
    for k in range(parameters):
        if load(values + 8 * k) == 0:
            return 0
    return 1


def matches(table: int, method: int, entry: int, values: int, by_text: int) -> int:
    """Whether a known call had the same options."""
    keys = load(entry + Entry.keys)
    roles = load(method + MethodTable.roles)
    for k in range(load(method + MethodTable.parameters)):
        role = load(roles + 8 * k)
        value = load(values + 8 * k)
        key = load(keys + 8 * k)
        if role == OPTIONAL_INPUT and (value != load(table + Globals.none)) != key:
            return 0
        if role == OPTION and value != key:
            text = load(table + Globals.str_type)
            if by_text == 0 or load(value + TYPE) != text or load(key + TYPE) != text:
                return 0
            if call_int(load(table + Globals.compare_text), value, key) != 0:
                return 0
    return 1


# -- one call ----------------------------------------------------------------------------------------------------


def compute(plan: int, inputs: int, out: int, threads: int, look: int) -> int:
    """The result for these objects; NOT_TAKEN leaves the call to Python, FAILED: an error has been set."""
    table = load(plan + Plan.globals)
    number = load(plan + Plan.inputs)
    outputs = load(plan + Plan.outputs)
    # words: addresses of outputs and inputs, strides of inputs; then the results, then room for scalars
    words = stack(8 * (3 * outputs + 2 * number))
    addresses = words + 8 * outputs
    results = addresses + 16 * number
    frame = stack(FRAME_BYTES)
    records = stack(INPUT_BYTES * number)
    if not look_at_inputs(table, plan, inputs, addresses, records, frame):
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
    if size > MOST_STACK:
        allocated = call(load(table + Globals.allocate), size + 64)
        if allocated == 0:
            return NOT_TAKEN
        size = 0
    room = stack(size)
    if allocated:
        room = (allocated + 63) & -64
    made = fill(table, plan, records, frame, addresses, room + scratch)
    if made == READY:
        made = prepare(table, plan, frame, out, words)
    if made == READY:
        execute(table, run, count, words, room, count > (limit >> SHORT_WORK))
        made = finish(table, plan, frame, words, results, look)
    if allocated:
        call(load(table + Globals.free), allocated)
    return made


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
    return count == 1 or value == 1


# -- inputs ------------------------------------------------------------------------------------------------------


def look_at_inputs(table: int, plan: int, inputs: int, addresses: int, records: int, frame: int) -> int:
    """Precision, number of states, addresses and strides; 0 where an input is not recognised."""
    item = dense_single(table, plan, inputs, addresses)
    if item == 0:
        return describe(table, plan, inputs, addresses, records, frame)
    store(frame + Frame.item, item)
    store(frame + Frame.count, 1)
    store(frame + Frame.axes, 0)
    store(frame + Frame.need, 0)
    number = load(plan + Plan.inputs)
    for k in range(number):
        store(addresses + 8 * (number + k), 0)
    return 1


def dense_single(table: int, plan: int, inputs: int, addresses: int) -> int:
    """Bytes of a scalar if every input is one dense state of the same precision, else 0: the most frequent call."""
    number = load(plan + Plan.inputs)
    sizes = load(plan + Plan.sizes)
    kind = load(table + Globals.array_type)
    if number == 0:
        return 0
    first = load(inputs)
    if load(first + TYPE) != kind:
        return 0
    dtype = load(first + DTYPE)
    for k in range(number):
        array = load(inputs + 8 * k)
        if load(array + TYPE) != kind or load(array + DTYPE) != dtype:
            return 0
        if (load_int(array + FLAGS) & DENSE) != DENSE or load_int(array + AXES) != 1:
            return 0
        if load(load(array + SHAPE)) != load(sizes + 8 * k):
            return 0
        store(addresses + 8 * k, load(array + DATA))
    if dtype == load(table + Globals.double_dtype) and load(plan + Plan.single) == 0:
        return 8
    if dtype == load(table + Globals.float_dtype):
        return 4
    return 0


def describe(table: int, plan: int, inputs: int, addresses: int, records: int, frame: int) -> int:
    """The same for arrays of any shape, strides and precision, lists and tuples of numbers."""
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
    dtype = load(value + DTYPE)
    if dtype == load(table + Globals.double_dtype):
        store(record + Input.kind, DOUBLES)
    elif dtype == load(table + Globals.float_dtype):
        store(record + Input.kind, FLOATS)
    elif dtype == load(table + Globals.int_dtype):
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
    for row in range(rows):
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


# -- results -----------------------------------------------------------------------------------------------------


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
    number = DOUBLE_NUMBER if load(frame + Frame.item) == 8 else FLOAT_NUMBER
    kind = load(table + Globals.array_type)
    total = axes + load(shape + Shape.axes)
    return call(load(table + Globals.new_array), kind, total, lengths, number, 0, 0, 0, 0, 0)


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
    dtype = load(table + Globals.double_dtype) if item == 8 else load(table + Globals.float_dtype)
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


def finish(table: int, plan: int, frame: int, words: int, results: int, look: int) -> int:
    """The object to be returned; NOT_TAKEN where a NaN must be explained."""
    outputs = load(plan + Plan.outputs)
    item = load(frame + Frame.item)
    for k in range(outputs):
        size = load(load(plan + Plan.shapes) + SHAPE_BYTES * k + Shape.size)
        if look and has_nan(load(words + 8 * k), load(frame + Frame.count) * size, item):
            release_all(table, results, outputs)
            return NOT_TAKEN
    dtype = load(table + Globals.double_dtype) if item == 8 else load(table + Globals.float_dtype)
    for k in range(outputs):
        if load(results + 8 * k) == 0:
            result = call(load(table + Globals.new_scalar), load(words + 8 * k), dtype, 0)
            if result == 0:
                release_all(table, results, outputs)
                return FAILED
            store(results + 8 * k, result)
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
    """Give back the first results."""
    for k in range(count):
        if load(results + 8 * k):
            call(load(table + Globals.release), load(results + 8 * k))
    return 0
