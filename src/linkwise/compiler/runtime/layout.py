"""Memory layouts that machine code called by the interpreter relies on.

Offsets in objects of CPython and NumPy, checked against real objects before they are used (``known``), and the
tables that Python fills for ``linkwise.compiler.entry``. All offsets are in bytes.
"""

from __future__ import annotations

import ctypes
import os
import sys
from enum import IntEnum, auto

import numpy as np

# PyObject and PyArrayObject, the same from NumPy 1.7 to 2.x.
REFERENCES, TYPE, DATA, AXES, SHAPE, STRIDES, DTYPE, FLAGS = 0, 8, 16, 24, 32, 40, 56, 64
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
DENSE = CONTIGUOUS | ALIGNED
NUMBERS = (
    24  # in a dtype: kind, character, byte order, a byte that is zero and the number of its type in one word
)
NUMBER = 16  # in a float or a NumPy float64: its value
LENGTH, LIST_ITEMS, TUPLE_ITEMS = 16, 24, 24
CTYPES_ADDRESS = 16  # in an object of ctypes: where its C data begin
COUNT_MASK = (1 << 63) - 1  # without PY_VECTORCALL_ARGUMENTS_OFFSET


class _Plain:
    """A class with nothing of its own: objects of ``dispatch.connected_class`` continue where these end."""


VECTORCALL = _Plain.__basicsize__
TARGET = VECTORCALL + 8


class Words(IntEnum):
    """Offsets of consecutive 64-bit words."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return 8 * count

    @classmethod
    def table(cls, **values: int) -> ctypes.Array[ctypes.c_int64]:
        """A table with these values; the others are zero."""
        made = (ctypes.c_int64 * len(cls))()
        for name, value in values.items():
            made[cls[name] // 8] = value
        return made


class Globals(Words):
    """Objects and C functions of CPython and NumPy."""

    array_type = auto()
    double_dtype = auto()
    float_dtype = auto()
    int_dtype = auto()
    float_type = auto()
    double_type = auto()  # numpy.float64
    int_type = auto()
    list_type = auto()
    tuple_type = auto()
    str_type = auto()
    none = auto()
    out_name = auto()
    threads_name = auto()
    vectorcall = auto()
    new_array = auto()
    new_scalar = auto()
    new_tuple = auto()
    set_item = auto()
    hold = auto()
    release = auto()
    unlock = auto()
    lock = auto()
    allocate = auto()
    free = auto()
    int_value = auto()
    int_to_double = auto()
    error_occurred = auto()
    clear_error = auto()
    compare_text = auto()
    is_subtype = auto()
    true = auto()
    get_attribute = auto()
    new_int = auto()
    byte_dtype = auto()
    set_base = auto()
    blocks = auto()  # address of ``BLOCKS`` places, see ``entry.memory``


class Plan(Words):
    """A kernel: its inputs and outputs, and its machine code in four forms: one or many states, two precisions."""

    globals = auto()
    inputs = auto()
    outputs = auto()
    single = auto()  # 1: float32 whatever the inputs are
    sizes = auto()  # address of the number of scalars of each input
    shapes = auto()  # address of a ``Shape`` for each output
    few = auto()  # number of inputs if ``entry.computation.compute_single`` has room for all arrays, or 0
    quick = auto()  # address of the code for one state if it is short and needs no scratch, or 0
    quick_float = auto()
    run = auto()  # address of the code in double precision for one state,
    run_many = auto()
    run_float = auto()
    run_float_many = auto()
    scratch = auto()  # bytes, for the same four forms,
    scratch_many = auto()
    scratch_float = auto()
    scratch_float_many = auto()
    limit = auto()  # the largest batch that is not worth a second thread,
    limit_many = auto()
    limit_float = auto()
    limit_float_many = auto()
    devices = auto()  # address of the first ``DeviceCall``; each has the address of the next; 0: none


class Shape(Words):
    """The shape of an output for one state."""

    axes = auto()
    size = auto()
    lengths = auto()
    length1 = auto()
    length2 = auto()
    length3 = auto()


class Target(Words):
    """What a kernel that is called points to: plans, and the function for calls that machine code leaves alone."""

    globals = auto()
    fallback = auto()
    arguments = auto()  # how many are expected
    states = auto()  # how many go to the main plan; the others to the prelude
    prelude = auto()  # 0: none
    main = auto()


class MethodTable(Words):
    """A method of robots: its parameters, and where a robot has its table of known calls."""

    globals = auto()
    fallback = auto()
    owner = auto()  # the class
    slot = auto()  # offset of the robot's table
    index = auto()  # of the method in that table
    parameters = auto()
    positional = auto()
    names = auto()
    roles = auto()
    defaults = auto()
    out = auto()  # which parameter it is
    threads = auto()


class KnownCall(Words):
    """What a robot remembers of one method."""

    first = auto()  # address of the first entry; each has the address of the next
    plain = auto()  # address of the plan for calls without options; 0: not known yet
    look = auto()  # of that plan, as in ``Entry``


class Entry(Words):
    """A known call of one robot's method: the options it was called with and the plan that computes it."""

    next = auto()
    plan = auto()
    look = auto()  # 1: results with a NaN are left to the fallback
    keys = auto()  # address of a word for each parameter
    order = auto()  # address of the parameter of each input of the kernel


class Input(Words):
    """What a call finds out about an input."""

    kind = auto()
    data = auto()
    axes = auto()  # leading ones
    lengths = auto()
    steps = auto()
    rows = auto()  # to be copied; 0: read where they are
    stride = auto()


class Frame(Words):
    """What a call finds out about its inputs together."""

    item = auto()  # bytes of a scalar: 8 or 4
    count = auto()  # states
    need = auto()  # bytes of copies
    axes = auto()  # leading axes of the result,
    lengths = auto()  # the last one first
    length1 = auto()
    length2 = auto()
    length3 = auto()
    length4 = auto()
    length5 = auto()
    length6 = auto()
    length7 = auto()


class Launch(Words):
    """A kernel that is loaded on a GPU, and the driver's functions that start it."""

    start = auto()  # address of cuLaunchKernel,
    current = auto()  # of cuCtxGetCurrent,
    enter = auto()  # of cuCtxPushCurrent,
    leave = auto()  # of cuCtxPopCurrent
    context = auto()  # of the GPU
    function = auto()
    threads = auto()  # of a block
    shared = auto()  # bytes of a block
    states = auto()  # that a block computes
    most_blocks = auto()
    grows = (
        auto()
    )  # 1: every further state needs room in a block; 0: the blocks take states until none is left
    bytes = auto()  # of the parameters
    scratch = auto()  # bytes of memory that a block needs; its address is the last parameter


class Library(Words):
    """How arrays of a library on a GPU are read and made. Names are the addresses of interned strings."""

    array_type = auto()
    exchange = auto()  # address of its ``Exchange``; 0: arrays are read by the attributes that CuPy's have
    dense = auto()  # name of the attribute that is True for dense arrays
    shape = auto()  # names,
    dtype = auto()
    memory = auto()
    pointer = auto()  # of the memory,
    device = auto()
    memory_type = auto()  # type of the memory if it is known where objects have these in memory; 0: it is not
    at_dense = auto()  # offsets in an array: a 32-bit integer,
    at_dtype = auto()  # an object,
    at_memory = auto()  # an object,
    at_shape = auto()  # two addresses, where the lengths begin and end;
    at_pointer = auto()  # in the memory: a word,
    at_device = auto()  # a 32-bit integer
    followed = auto()  # name of the attribute that is True where gradients are wanted
    modes = auto()  # object whose attribute
    forward_mode = auto()  # of this name is -1 unless derivatives are followed forwards
    make = auto()  # callable: (shape, dtype), or (an input, shape) where there is an ``exchange``
    like = auto()  # callable: (an input), a new array of the same shape; 0: none
    stream = auto()  # callable: the current stream, and the name of its attribute with the address
    stream_pointer = auto()


class Exchange(Words):
    """DLPackExchangeAPI of DLPack 1.3: functions in C for arrays of a library."""

    version = auto()
    previous = auto()
    allocate = auto()
    from_object = auto()
    to_object = auto()
    view = auto()  # (object, DLTensor *): nothing is held
    stream = auto()  # (kind of device, its number, void **)


class DeviceCall(Words):
    """A kernel for arrays of one library in one precision on one GPU."""

    next = auto()
    library = auto()
    launch = auto()
    dtype = auto()  # as ``DeviceArray`` has it
    item = auto()  # bytes of a scalar
    device = auto()
    make_dtype = auto()  # object that ``Library.make`` is given


class DeviceArray(Words):
    """What a call finds out about a dense array on a GPU."""

    data = auto()
    device = auto()
    dtype = auto()  # address of the object, or DLDataType
    axes = auto()
    lengths = auto()
    length1 = auto()
    length2 = auto()
    length3 = auto()
    length4 = auto()
    length5 = auto()
    length6 = auto()
    length7 = auto()
    length8 = auto()
    length9 = auto()
    length10 = auto()
    length11 = auto()


# DLTensor
TENSOR_DATA, TENSOR_PLACE, TENSOR_DEVICE, TENSOR_AXES, TENSOR_DTYPE = 0, 8, 12, 16, 20
TENSOR_SHAPE, TENSOR_STRIDES, TENSOR_OFFSET, TENSOR_BYTES = 24, 32, 40, 48
ON_CUDA = 2  # kDLCUDA

MOST_AXES = 8  # leading ones
MOST_ARRAYS = 8  # inputs, and outputs, of the most frequent call
# A batch is short up to the limit for one thread shifted by this; the interpreter lock is released for longer ones.
SHORT_WORK = 6
MOST_OUTPUT_AXES = 4
# Memory of large results, see ``entry.memory``: how many blocks are kept, results that use them, all together [bytes].
BLOCKS, LARGE, LARGEST, MOST_KEPT = 32, 1 << 17, 1 << 24, 1 << 26
INPUT_BYTES, SHAPE_BYTES, FRAME_BYTES = 8 * len(Input), 8 * len(Shape), 8 * len(Frame)
ARRAY_BYTES = 8 * len(DeviceArray)

# Kinds of inputs.
DOUBLES, FLOATS, INTS, ITEMS = 0, 1, 2, 3
# Roles of a method's parameters.
REQUIRED_INPUT, OPTIONAL_INPUT, OPTION, OTHER = 0, 1, 2, 3
# Results of a call that are no object.
NOT_TAKEN, FAILED, READY = 0, 1, 2
TOO_MANY_STATES = -1  # result of a launch; others are the driver's


def known() -> bool:
    """Read real objects by these offsets and compare."""

    def word(place: int) -> int:
        return ctypes.c_int64.from_address(place).value

    def short(place: int) -> int:
        return ctypes.c_int.from_address(place).value

    owner = np.arange(12.0)
    before = short(id(owner) + REFERENCES)
    holders = [owner, owner]
    if short(id(owner) + REFERENCES) - before != len(holders):
        return False
    for array in (owner, owner[3:8], owner[::2], owner.reshape(3, 4)):
        start = id(array)
        dense = array.flags.c_contiguous and array.flags.aligned
        if (
            word(start + TYPE) != id(np.ndarray)
            or word(start + DATA) != array.__array_interface__["data"][0]
            or short(start + AXES) != array.ndim
            or [word(word(start + SHAPE) + 8 * k) for k in range(array.ndim)] != list(array.shape)
            or [word(word(start + STRIDES) + 8 * k) for k in range(array.ndim)] != list(array.strides)
            or word(start + DTYPE) != id(np.dtype(np.float64))
            or (short(start + FLAGS) & DENSE == DENSE) != dense
            or not short(start + FLAGS) & WRITEABLE
        ):
            return False
    for name in ("float64", "float32", "int64"):
        dtype, swapped = np.dtype(name), np.dtype(name).newbyteorder()
        kind = bytes([*dtype.kind.encode(), *dtype.char.encode(), *b"=\0", *dtype.num.to_bytes(4, "little")])
        if word(id(dtype) + NUMBERS).to_bytes(8, "little", signed=True) != kind:
            return False
        if word(id(swapped) + NUMBERS) == word(id(dtype) + NUMBERS):
            return False
    numbers = (1.5, np.float64(2.5))
    sequences = ((1.5, 2.5), [1.5, 2.5])
    items = (id(sequences[0]) + TUPLE_ITEMS, word(id(sequences[1]) + LIST_ITEMS))
    table = (ctypes.c_int64 * 3)()
    return (
        all(ctypes.c_double.from_address(id(x) + NUMBER).value == x for x in numbers)
        and all(word(id(s) + LENGTH) == 2 for s in sequences)
        and all(
            word(at) == id(s[0]) and word(at + 8) == id(s[1]) for at, s in zip(items, sequences, strict=True)
        )
        and word(id(table) + CTYPES_ADDRESS) == ctypes.addressof(table)
    )


def supported() -> bool:
    """Whether this Python and this NumPy lay out their objects as machine code expects.

    The environment variable LINKWISE_CALLS=python says no: every call then goes through Python.
    """
    version = tuple(int(part) for part in np.__version__.split(".")[:2])
    return (
        os.environ.get("LINKWISE_CALLS") != "python"
        and sys.implementation.name == "cpython"
        and (3, 11) <= sys.version_info[:2] <= (3, 14)
        # without interpreter lock: objects have another layout; Windows says so in its version only
        and "t" not in getattr(sys, "abiflags", "")
        and "free-threading" not in sys.version
        and (1, 26) <= version < (3, 0)
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and not hasattr(sys, "gettotalrefcount")  # debugging builds have longer objects
        and known()
    )


SUPPORTED = supported()
