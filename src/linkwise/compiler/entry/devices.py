"""A call with arrays on a GPU: dense arrays of one library in one precision, all states together or one for all.

Arrays are read as their library allows it: through DLPack's functions in C where it has them (PyTorch from 2.10 on),
from their own memory where its layout is known (CuPy, see ``linkwise.gpu.cupy_layout``), else by attributes. New arrays
come from the library's own allocator, and the launch goes to its current stream. What is not recognised, and whatever
fails, is left to ``linkwise.gpu`` in Python, which also has the messages.
"""

from __future__ import annotations

from linkwise.compiler.entry.launches import blocks_of, is_current, launch
from linkwise.compiler.entry.operations import call, call_int, load, load_int, stack, store
from linkwise.compiler.entry.results import given_array, is_apart, release_all, together
from linkwise.compiler.runtime.layout import (
    ARRAY_BYTES,
    LENGTH,
    MOST_AXES,
    NOT_TAKEN,
    ON_CUDA,
    READY,
    SHAPE_BYTES,
    TENSOR_AXES,
    TENSOR_BYTES,
    TENSOR_DATA,
    TENSOR_DEVICE,
    TENSOR_DTYPE,
    TENSOR_OFFSET,
    TENSOR_PLACE,
    TENSOR_SHAPE,
    TENSOR_STRIDES,
    TUPLE_ITEMS,
    TYPE,
    DeviceArray,
    DeviceCall,
    Exchange,
    Globals,
    Launch,
    Library,
    Plan,
    Shape,
)


def compute_on_device(table: int, plan: int, inputs: int, out: int) -> int:
    """The result for arrays on a GPU; NOT_TAKEN leaves the call to Python."""
    kind = load(load(inputs) + TYPE)
    device = load(plan + Plan.devices)
    while device:
        if load(load(device + DeviceCall.library) + Library.array_type) == kind:
            break
        device = load(device + DeviceCall.next)
    if device == 0:
        return NOT_TAKEN
    library = load(device + DeviceCall.library)
    if follows_forwards(table, library):
        return NOT_TAKEN
    number = load(plan + Plan.inputs)
    outputs = load(plan + Plan.outputs)
    arrays = stack(ARRAY_BYTES * number)
    widest = arrays
    for k in range(number):
        array = arrays + ARRAY_BYTES * k
        if not read_array(table, library, load(inputs + 8 * k), array):
            return NOT_TAKEN
        if load(array + DeviceArray.axes) > load(widest + DeviceArray.axes):
            widest = array
    while device:
        if load(device + DeviceCall.library) == library and fits(device, widest):
            break
        device = load(device + DeviceCall.next)
    # words: addresses of outputs and inputs, strides of inputs, number of states, scratch memory; then the results
    words = stack(8 * (2 * outputs + 2 * number + 2))
    last = words + 8 * (outputs + 2 * number)
    results = last + 16  # after the address of scratch memory
    if device == 0:
        return NOT_TAKEN
    if load(library + Library.exchange) == 0 and not is_current(load(device + DeviceCall.launch)):
        return NOT_TAKEN  # new arrays and the current stream would be those of another GPU
    count = arrange(plan, device, arrays, widest, words + 8 * outputs)
    if count == 0:
        return NOT_TAKEN
    store(last, count)
    if out == load(table + Globals.none):
        made = make_results(table, plan, device, arrays, widest, load(inputs), words, results)
    else:
        made = take_results(table, plan, device, widest, count, out, words, results)
    if made == READY:
        if send_with_scratch(table, device, load(inputs), words, last + 8, count):
            return together(table, results, outputs)
        release_all(table, results, outputs)
    return NOT_TAKEN


def send_with_scratch(table: int, device: int, first: int, words: int, place: int, count: int) -> int:
    """``send`` with memory that the blocks need, from the library's allocator: it reuses memory in stream order."""
    needed = load(load(device + DeviceCall.launch) + Launch.scratch)
    if needed == 0:
        return send(table, device, words, count)
    item = load(device + DeviceCall.item)
    shape = stack(SHAPE_BYTES)
    array = stack(ARRAY_BYTES)
    store(shape + Shape.axes, 1)
    blocks = blocks_of(load(device + DeviceCall.launch), count)
    store(shape + Shape.lengths, (blocks * needed + item - 1) // item)
    store(array + DeviceArray.axes, 1)  # no leading axes
    scratch = new_array_on_device(table, device, array, first, shape)
    if scratch == 0:
        call(load(table + Globals.clear_error))
        return 0
    sent = 0
    if read_address(table, load(device + DeviceCall.library), scratch, array):
        store(place, load(array + DeviceArray.data))
        sent = send(table, device, words, count)
    call(load(table + Globals.release), scratch)
    return sent


def send(table: int, device: int, words: int, count: int) -> int:
    """Start the kernel on the library's current stream, without the interpreter lock."""
    stream = stack(8)
    if not find_stream(table, device, stream):
        return 0
    thread = call(load(table + Globals.unlock))
    code = launch(load(device + DeviceCall.launch), words, count, load(stream))
    call(load(table + Globals.lock), thread)
    return code == 0


def find_stream(table: int, device: int, place: int) -> int:
    """Write the address of the stream that the library's next operation would go to."""
    library = load(device + DeviceCall.library)
    exchange = load(library + Library.exchange)
    store(place, 0)
    if exchange:
        if call_int(load(exchange + Exchange.stream), ON_CUDA, load(device + DeviceCall.device), place):
            call(load(table + Globals.clear_error))
            return 0
        return 1
    found = call(load(table + Globals.vectorcall), load(library + Library.stream), 0, 0, 0)
    if found == 0:
        call(load(table + Globals.clear_error))
        return 0
    address = number_of(table, found, load(library + Library.stream_pointer))
    call(load(table + Globals.release), found)
    store(place, address)
    return address != -1


# -- inputs -----------------------------------------------------------------------------------------------------------


def fits(device: int, array: int) -> int:
    """Whether a kernel is for arrays of this precision on this GPU."""
    same = load(device + DeviceCall.dtype) == load(array + DeviceArray.dtype)
    return same and load(device + DeviceCall.device) == load(array + DeviceArray.device)


def arrange(plan: int, device: int, arrays: int, widest: int, addresses: int) -> int:
    """Write addresses and strides of the inputs; the number of states, 0 where the arrays do not fit together."""
    number = load(plan + Plan.inputs)
    sizes = load(plan + Plan.sizes)
    leading = load(widest + DeviceArray.axes) - 1
    count = 1
    for j in range(leading):
        count = count * load(widest + DeviceArray.lengths + 8 * j)
    for k in range(number):
        array = arrays + ARRAY_BYTES * k
        axes = load(array + DeviceArray.axes)
        size = load(sizes + 8 * k)
        stride = 0
        if axes == 0 or not fits(device, array):
            return 0
        if load(array + DeviceArray.lengths + 8 * (axes - 1)) != size:
            return 0
        if axes > 1:
            if axes - 1 != leading or not begins_alike(array, widest, leading):
                return 0
            stride = size
        store(addresses + 8 * k, load(array + DeviceArray.data))
        store(addresses + 8 * (number + k), stride)
    return count


def begins_alike(array: int, other: int, axes: int) -> int:
    """Whether two arrays have the same lengths along the first axes."""
    for j in range(axes):
        if load(array + DeviceArray.lengths + 8 * j) != load(other + DeviceArray.lengths + 8 * j):
            return 0
    return 1


def read_array(table: int, library: int, value: int, array: int) -> int:
    """What a dense array on a GPU is; 0 where the value is something else."""
    if load(value + TYPE) != load(library + Library.array_type):
        return 0
    if load(library + Library.exchange):
        return read_by_exchange(table, library, value, array)
    if load(library + Library.memory_type):
        return read_by_layout(library, value, array)
    return read_by_attributes(table, library, value, array)


def follows_forwards(table: int, library: int) -> int:
    """Whether the library is differentiating in forward mode, which does not show in its arrays."""
    modes = load(library + Library.modes)
    if modes == 0:
        return 0
    return number_of(table, modes, load(library + Library.forward_mode)) != -1


def read_by_exchange(table: int, library: int, value: int, array: int) -> int:
    """By DLPack's functions; gradients are left to Python."""
    followed = attribute(table, value, load(library + Library.followed))
    if followed == 0:
        return 0
    call(load(table + Globals.release), followed)  # True and False are never freed
    if followed == load(table + Globals.true):
        return 0
    tensor = stack(TENSOR_BYTES)
    if call_int(load(load(library + Library.exchange) + Exchange.view), value, tensor):
        call(load(table + Globals.clear_error))
        return 0
    axes = load_int(tensor + TENSOR_AXES)
    if load_int(tensor + TENSOR_PLACE) != ON_CUDA or axes > MOST_AXES + 1:
        return 0
    expected = 1
    for j in range(axes):
        place = 8 * (axes - 1 - j)
        length = load(load(tensor + TENSOR_SHAPE) + place)
        if length != 1 and load(load(tensor + TENSOR_STRIDES) + place) != expected:
            return 0
        store(array + DeviceArray.lengths + place, length)
        expected = expected * length
    data = load(tensor + TENSOR_DATA)
    store(array + DeviceArray.data, data + load(tensor + TENSOR_OFFSET))
    store(array + DeviceArray.device, load_int(tensor + TENSOR_DEVICE))
    store(array + DeviceArray.dtype, load_int(tensor + TENSOR_DTYPE))
    store(array + DeviceArray.axes, axes)
    if data == 0:  # a tensor that stands for another one
        return 0
    return expected > 1  # a single scalar may be a view with a pending change of sign, which looks dense


def read_by_layout(library: int, value: int, array: int) -> int:
    """From the object's own memory."""
    memory = load(value + load(library + Library.at_memory))
    if load_int(value + load(library + Library.at_dense)) == 0:
        return 0
    if load(memory + TYPE) != load(library + Library.memory_type):
        return 0
    lengths = load(value + load(library + Library.at_shape))
    axes = (load(value + load(library + Library.at_shape) + 8) - lengths) >> 3
    if axes > MOST_AXES + 1:
        return 0
    for j in range(axes):
        store(array + DeviceArray.lengths + 8 * j, load(lengths + 8 * j))
    data = load(memory + load(library + Library.at_pointer))
    store(array + DeviceArray.data, data)
    store(array + DeviceArray.device, load_int(memory + load(library + Library.at_device)))
    store(array + DeviceArray.dtype, load(value + load(library + Library.at_dtype)))
    store(array + DeviceArray.axes, axes)
    return data > 0


def read_by_attributes(table: int, library: int, value: int, array: int) -> int:
    dense = attribute(table, value, load(library + Library.dense))
    if dense == 0:
        return 0
    call(load(table + Globals.release), dense)
    if dense != load(table + Globals.true):
        return 0
    dtype = attribute(table, value, load(library + Library.dtype))
    if dtype == 0:
        return 0
    call(load(table + Globals.release), dtype)  # the array still holds it; only the address is compared
    store(array + DeviceArray.dtype, dtype)
    memory = attribute(table, value, load(library + Library.memory))
    if memory == 0:
        return 0
    data = number_of(table, memory, load(library + Library.pointer))
    store(array + DeviceArray.data, data)
    store(array + DeviceArray.device, number_of(table, memory, load(library + Library.device)))
    call(load(table + Globals.release), memory)
    shape = attribute(table, value, load(library + Library.shape))
    if shape == 0:
        return 0
    taken = read_lengths(table, shape, array)
    call(load(table + Globals.release), shape)
    return taken and data > 0


def read_lengths(table: int, shape: int, array: int) -> int:
    if load(shape + TYPE) != load(table + Globals.tuple_type) or load(shape + LENGTH) > MOST_AXES + 1:
        return 0
    axes = load(shape + LENGTH)
    for j in range(axes):
        length = call(load(table + Globals.int_value), load(shape + TUPLE_ITEMS + 8 * j))
        store(array + DeviceArray.lengths + 8 * j, length)
    store(array + DeviceArray.axes, axes)
    return 1


def attribute(table: int, value: int, name: int) -> int:
    """An attribute as a new reference; 0 where there is none."""
    found = call(load(table + Globals.get_attribute), value, name)
    if found == 0:
        call(load(table + Globals.clear_error))
    return found


def number_of(table: int, value: int, name: int) -> int:
    """An attribute that is an integer; -1 where there is none."""
    found = attribute(table, value, name)
    if found == 0:
        return -1
    number = call(load(table + Globals.int_value), found)
    call(load(table + Globals.release), found)
    if number == -1:
        call(load(table + Globals.clear_error))
    return number


# -- results ----------------------------------------------------------------------------------------------------------


def make_results(
    table: int, plan: int, device: int, arrays: int, widest: int, first: int, words: int, results: int
) -> int:
    """New arrays from the library's allocator; ``first`` is the first input, ``arrays`` begins with what it is."""
    library = load(device + DeviceCall.library)
    array = stack(ARRAY_BYTES)
    argument = stack(8)
    store(argument, first)
    for k in range(load(plan + Plan.outputs)):
        shape = load(plan + Plan.shapes) + SHAPE_BYTES * k
        if load(library + Library.like) and has_shape(arrays, widest, shape):
            result = call(load(table + Globals.vectorcall), load(library + Library.like), argument, 1, 0)
        else:
            result = new_array_on_device(table, device, widest, first, shape)
        if result and not read_address(table, library, result, array):
            call(load(table + Globals.release), result)
            result = 0
        if result == 0:
            call(load(table + Globals.clear_error))
            release_all(table, results, k)
            return NOT_TAKEN
        store(words + 8 * k, load(array + DeviceArray.data))
        store(results + 8 * k, result)
    return READY


def new_array_on_device(table: int, device: int, widest: int, first: int, shape: int) -> int:
    """An array of the leading axes of the inputs and the axes of an output."""
    library = load(device + DeviceCall.library)
    leading = load(widest + DeviceArray.axes) - 1
    own = load(shape + Shape.axes)
    lengths = call(load(table + Globals.new_tuple), leading + own)
    if lengths == 0:
        return 0
    for j in range(leading + own):
        length = load(widest + DeviceArray.lengths + 8 * j)
        if j >= leading:
            length = load(shape + Shape.lengths + 8 * (j - leading))
        call(load(table + Globals.set_item), lengths, j, call(load(table + Globals.new_int), length))
    arguments = stack(16)
    store(arguments, lengths)
    store(arguments + 8, load(device + DeviceCall.make_dtype))
    if load(library + Library.exchange):
        store(arguments, first)
        store(arguments + 8, lengths)
    made = call(load(table + Globals.vectorcall), load(library + Library.make), arguments, 2, 0)
    call(load(table + Globals.release), lengths)
    return made


def read_address(table: int, library: int, value: int, array: int) -> int:
    """The address of a new array."""
    if load(library + Library.exchange):
        tensor = stack(TENSOR_BYTES)
        if call_int(load(load(library + Library.exchange) + Exchange.view), value, tensor):
            return 0
        store(array + DeviceArray.data, load(tensor + TENSOR_DATA) + load(tensor + TENSOR_OFFSET))
        return 1
    if load(library + Library.memory_type):
        return read_by_layout(library, value, array)
    memory = attribute(table, value, load(library + Library.memory))
    if memory == 0:
        return 0
    data = number_of(table, memory, load(library + Library.pointer))
    call(load(table + Globals.release), memory)
    store(array + DeviceArray.data, data)
    return data > 0


def take_results(
    table: int, plan: int, device: int, widest: int, count: int, out: int, words: int, results: int
) -> int:
    """The caller's arrays, where the kernel can write to them while it reads the inputs."""
    outputs = load(plan + Plan.outputs)
    array = stack(ARRAY_BYTES)
    for k in range(outputs):
        result = given_array(table, out, k, outputs)
        taken = result != 0
        if taken:
            taken = read_array(table, load(device + DeviceCall.library), result, array)
        if taken:
            taken = can_take_on_device(plan, device, widest, count, array, words, k)
        if not taken:
            release_all(table, results, k)
            return NOT_TAKEN
        store(words + 8 * k, load(array + DeviceArray.data))
        call(load(table + Globals.hold), result)
        store(results + 8 * k, result)
    return READY


def can_take_on_device(
    plan: int, device: int, widest: int, count: int, array: int, words: int, k: int
) -> int:
    """Whether the k-th output can be written to an array: its precision, place and shape, and nothing overlaps."""
    shape = load(plan + Plan.shapes) + SHAPE_BYTES * k
    if not fits(device, array) or not has_shape(array, widest, shape):
        return 0
    item = load(device + DeviceCall.item)
    first = load(array + DeviceArray.data)
    return is_apart(plan, count, item, words, k, first, first + count * item * load(shape + Shape.size))


def has_shape(array: int, widest: int, shape: int) -> int:
    """Whether an array has the shape of an output: the leading axes of the inputs and its own."""
    leading = load(widest + DeviceArray.axes) - 1
    own = load(shape + Shape.axes)
    if load(array + DeviceArray.axes) != leading + own or not begins_alike(array, widest, leading):
        return 0
    for j in range(own):
        if load(array + DeviceArray.lengths + 8 * (leading + j)) != load(shape + Shape.lengths + 8 * j):
            return 0
    return 1
