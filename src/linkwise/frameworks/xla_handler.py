"""The functions that XLA calls for a kernel, in the subset of ``linkwise.compiler.emit.routines``.

XLA gives a call frame (``XLA_FFI_CallFrame`` of ``xla/ffi/api/c_api.h``); a table says what the kernel is. Shapes and
precisions are checked against the table, and an error goes back to XLA as a message. No Python object is touched.
"""

from __future__ import annotations

from enum import auto

from linkwise.compiler.entry.launches import blocks_of, launch
from linkwise.compiler.entry.operations import call, load, load_int, stack, store
from linkwise.compiler.runtime.layout import Launch, Words


class Handler(Words):
    """A kernel in one precision."""

    version = auto()  # major and minor version of XLA's interface, 32 bits each
    inputs = auto()
    outputs = auto()
    dtype = auto()  # XLA's number of the precision
    sizes = auto()  # address of the scalars of a row of each input,
    rows = auto()  # and of each output
    axes = auto()  # address of the number of axes of each output for one state
    messages = auto()  # address of a message for each input, for each output, and the others of ``MESSAGES``
    # on the CPU
    one = auto()  # address of the code for one state,
    many = auto()  # and for batches
    scratch_one = auto()  # bytes
    scratch_many = auto()
    width = auto()  # states of a block
    work = auto()  # bytes of machine code that a block runs through
    worth = auto()  # of them that are worth a thread
    pool = auto()
    share = auto()
    allocate = auto()
    free = auto()
    # on GPUs
    devices = auto()  # number of the entries of
    launches = auto()  # address of the tables of ``gpu.launch`` by the number of the GPU


class Job(Words):
    """As ``compiler.emit.pool.JOB``."""

    run = auto()
    count = auto()
    chunk = auto()
    arguments = auto()
    scratch = auto()
    scratch_step = auto()
    helpers = auto()


# Messages that follow those of the inputs and outputs.
NUMBER, MEMORY, NOT_LOADED, NOT_STARTED = 0, 1, 2, 3

# XLA_FFI_CallFrame, XLA_FFI_Buffer, XLA_FFI_Metadata, XLA_FFI_Api, in bytes
EXTENSION, API, CONTEXT, ARGUMENTS_NUMBER, ARGUMENTS = 8, 16, 24, 56, 72
RESULTS_NUMBER, RESULTS, ATTRIBUTES_NUMBER, ATTRIBUTES = 96, 112, 136, 160
EXTENSION_TYPE, EXTENSION_METADATA, IS_METADATA = 8, 24, 1
METADATA_VERSION, METADATA_TRAITS, CAN_BE_CAPTURED = 24, 32, 1
BUFFER_DTYPE, BUFFER_DATA, BUFFER_AXES, BUFFER_LENGTHS = 16, 24, 32, 40
SCALAR_VALUE = 8
ERROR_CREATE, STREAM_GET, MEMORY_ALLOCATE, MEMORY_FREE, DEVICE_GET = 48, 80, 120, 128, 184
INVALID_ARGUMENT, INTERNAL = 3, 13
MOST_STACK = 1 << 16
LINE = 128
ALIGNMENT = 16  # the most that XLA takes when memory is asked for
CHUNKS_PER_THREAD = 16  # as in ``compiler.native_threads``


def handle_cpu(frame: int, table: int) -> int:
    """Compute on the CPU; 0, or an error of XLA."""
    if is_question(frame):
        return answer(frame, table, 0)
    number = load(table + Handler.inputs)
    outputs = load(table + Handler.outputs)
    words = stack(8 * (outputs + 2 * number))
    place = stack(8)
    error = read(frame, table, words, place)
    count = load(place)
    if error or count == 0:
        return error
    if count == 1:
        scratch = load(table + Handler.scratch_one)
        if scratch == 0:
            call(load(table + Handler.one), 0, 1, words, 0)
            return 0
        return compute(frame, table, load(table + Handler.one), 1, words, scratch)
    threads = wanted_threads(frame, table, count)
    if threads > 1:
        done = compute_together(table, count, words, threads)
        if done == 1:
            return 0
    return compute(frame, table, load(table + Handler.many), count, words, load(table + Handler.scratch_many))


def compute(frame: int, table: int, run: int, count: int, words: int, scratch: int) -> int:
    """With this thread alone."""
    if scratch <= MOST_STACK:
        room = stack(scratch + 64)
        call(run, 0, count, words, (room + 63) & -64)
        return 0
    memory = call(load(table + Handler.allocate), scratch + 64)
    if memory == 0:
        return failure(frame, table, MEMORY)
    call(run, 0, count, words, (memory + 63) & -64)
    call(load(table + Handler.free), memory)
    return 0


def wanted_threads(frame: int, table: int, count: int) -> int:
    """As many threads as the attribute of the call allows and the batch is worth."""
    if load(frame + ATTRIBUTES_NUMBER) != 1 or load(table + Handler.pool) == 0:
        return 1
    threads = load(load(load(load(frame + ATTRIBUTES)) + SCALAR_VALUE))
    width = load(table + Handler.width)
    blocks = (count + width - 1) // width
    useful = blocks * load(table + Handler.work) // load(table + Handler.worth)
    if useful > blocks:
        useful = blocks
    if threads > useful:
        threads = useful
    return threads


def compute_together(table: int, count: int, words: int, threads: int) -> int:
    """With the helpers of the pool; 0 where they are at work for somebody else."""
    step = (load(table + Handler.scratch_many) + LINE - 1) & -LINE
    memory = call(load(table + Handler.allocate), step * threads + LINE)
    if memory == 0:
        return 0
    width = load(table + Handler.width)
    blocks = (count + width - 1) // width
    pieces = threads * CHUNKS_PER_THREAD
    job = stack(56)
    store(job + Job.run, load(table + Handler.many))
    store(job + Job.count, count)
    store(job + Job.chunk, width * ((blocks + pieces - 1) // pieces))
    store(job + Job.arguments, words)
    store(job + Job.scratch, (memory + LINE - 1) & -LINE)
    store(job + Job.scratch_step, step)
    store(job + Job.helpers, threads - 1)
    done = call(load(table + Handler.share), load(table + Handler.pool), job)
    call(load(table + Handler.free), memory)
    return done


def handle_cuda(frame: int, table: int) -> int:
    """Launch on the stream of the call, without waiting; 0, or an error of XLA."""
    if is_question(frame):
        return answer(frame, table, CAN_BE_CAPTURED)
    number = load(table + Handler.inputs)
    outputs = load(table + Handler.outputs)
    words = stack(8 * (outputs + 2 * number + 2))
    place = stack(8)
    error = read(frame, table, words, place)
    count = load(place)
    if error or count == 0:
        return error
    api = load(frame + API)
    asked = stack(48)
    error = ask(frame, api, DEVICE_GET, asked)
    if error:
        return error
    device = load_int(asked + 24)
    if device < 0 or device >= load(table + Handler.devices):
        return failure(frame, table, NOT_LOADED)
    target = load(load(table + Handler.launches) + 8 * device)
    if target == 0:
        return failure(frame, table, NOT_LOADED)
    error = ask(frame, api, STREAM_GET, asked)
    if error:
        return error
    stream = load(asked + 24)
    last = words + 8 * (outputs + 2 * number)
    store(last, count)
    needed = load(target + Launch.scratch)
    if needed == 0:
        code = launch(target, words, count, stream)
    else:
        size = needed * blocks_of(target, count)
        store(asked, 48)
        store(asked + 8, 0)
        store(asked + 16, load(frame + CONTEXT))
        store(asked + 24, size + LINE)
        store(asked + 32, ALIGNMENT)
        error = call(load(api + MEMORY_ALLOCATE), asked)
        if error:
            return error
        memory = load(asked + 40)
        store(last + 8, (memory + LINE - 1) & -LINE)
        code = launch(target, words, count, stream)
        store(asked, 40)
        store(asked + 32, memory)
        error = call(load(api + MEMORY_FREE), asked)
        if error:
            return error
    if code:
        return failure(frame, table, NOT_STARTED)
    return 0


def ask(frame: int, api: int, what: int, asked: int) -> int:
    """Fill a structure of XLA for the execution context of the call: the answer is at 24."""
    store(asked, 32)
    store(asked + 8, 0)
    store(asked + 16, load(frame + CONTEXT))
    store(asked + 24, 0)
    return call(load(api + what), asked)


# -- both -------------------------------------------------------------------------------------------------------------


def is_question(frame: int) -> int:
    """Whether XLA asks which version of its interface the handler is for."""
    extension = load(frame + EXTENSION)
    if extension == 0:
        return 0
    return load_int(extension + EXTENSION_TYPE) == IS_METADATA


def answer(frame: int, table: int, traits: int) -> int:
    metadata = load(load(frame + EXTENSION) + EXTENSION_METADATA)
    store(metadata + METADATA_VERSION, load(table + Handler.version))
    store(metadata + METADATA_TRAITS, traits)
    return 0


def read(frame: int, table: int, words: int, place: int) -> int:
    """Write addresses of outputs and inputs, strides of inputs and the number of states; an error of XLA, or 0."""
    number = load(table + Handler.inputs)
    outputs = load(table + Handler.outputs)
    dtype = load(table + Handler.dtype)
    store(place, 0)
    if load(frame + ARGUMENTS_NUMBER) != number or load(frame + RESULTS_NUMBER) != outputs:
        return failure(frame, table, NUMBER)
    count = 0
    for k in range(outputs):
        buffer = load(load(frame + RESULTS) + 8 * k)
        leading = load(buffer + BUFFER_AXES) - load(load(table + Handler.axes) + 8 * k)
        states = product(buffer, leading)
        total = product(buffer, load(buffer + BUFFER_AXES))
        if k == 0:
            count = states
        if load_int(buffer + BUFFER_DTYPE) != dtype or states != count or leading < 0:
            return wrong(frame, table, number + k)
        if total != count * load(load(table + Handler.rows) + 8 * k):
            return wrong(frame, table, number + k)
        store(words + 8 * k, load(buffer + BUFFER_DATA))
    for k in range(number):
        buffer = load(load(frame + ARGUMENTS) + 8 * k)
        axes = load(buffer + BUFFER_AXES)
        size = load(load(table + Handler.sizes) + 8 * k)
        if load_int(buffer + BUFFER_DTYPE) != dtype or axes == 0:
            return wrong(frame, table, k)
        states = product(buffer, axes - 1)
        if load(load(buffer + BUFFER_LENGTHS) + 8 * (axes - 1)) != size:
            return wrong(frame, table, k)
        if states != count and states != 1:
            return wrong(frame, table, k)
        stride = size
        if states != count:
            stride = 0
        store(words + 8 * (outputs + k), load(buffer + BUFFER_DATA))
        store(words + 8 * (outputs + number + k), stride)
    store(place, count)
    return 0


def product(buffer: int, last: int) -> int:
    """Of some lengths of a buffer."""
    lengths = load(buffer + BUFFER_LENGTHS)
    total = 1
    for k in range(last):
        total = total * load(lengths + 8 * k)
    return total


def wrong(frame: int, table: int, which: int) -> int:
    """An error about one of the arrays."""
    return error_of(frame, load(load(table + Handler.messages) + 8 * which), INVALID_ARGUMENT)


def failure(frame: int, table: int, which: int) -> int:
    """One of the other errors."""
    place = load(table + Handler.inputs) + load(table + Handler.outputs) + which
    return error_of(frame, load(load(table + Handler.messages) + 8 * place), INTERNAL)


def error_of(frame: int, message: int, code: int) -> int:
    asked = stack(32)
    store(asked, 28)
    store(asked + 8, 0)
    store(asked + 16, message)
    store(asked + 24, code)
    return call(load(load(frame + API) + ERROR_CREATE), asked)
