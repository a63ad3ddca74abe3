"""LLVM text -> machine code -> functions that can be called.

LLVM itself is loaded only when something is compiled. Where ``image`` can link the result, the stored code
runs without LLVM; elsewhere the object file is stored and LLVM loads it.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Protocol

from linkwise.compiler.runtime import host
from linkwise.compiler.runtime.image import C_LIBRARY, Image, LoadedImage, UnsupportedObject, can_load, link
from linkwise.core import forks, system

if TYPE_CHECKING:
    import llvmlite.binding as llvm

# functions that are called by their address
NAMES = (
    *("run", "room", "serve", "run_job", "share_job", "call_kernel", "call_method", "launch", "new_result"),
    *("handle", "handle_cpu", "handle_cuda"),
    *("linear_product", "linear_triangle", "linear_rotate"),
    *("plan_tree", "check_path", "shorten_path"),
)
_IMAGE, _OBJECT = b"image\0", b"object"


class Code(Protocol):
    """Loaded machine code: addresses by name, valid as long as the object exists."""

    functions: dict[str, int]
    size: int


def compile_text(text: str, *, optimize: bool = False, quick: bool = False) -> bytes:
    """Machine code for this machine, to be given to ``load`` here or in another process.

    ``optimize`` first turns places on the stack into registers; programs that come from the graph need no pass.
    ``quick`` compiles in a fifth to a seventh of the time; the code takes about twice as long and gives the same bits.
    """
    with forks.unforked:
        binary = _object_file(text, optimize, quick)
    if can_load():
        try:
            return _IMAGE + link(binary).pack()
        except UnsupportedObject:
            pass
    return _OBJECT + binary


def _object_file(text: str, optimize: bool, quick: bool) -> bytes:
    import llvmlite.binding as llvm

    _initialize()
    machine = _target_machine(0 if quick else 1)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if optimize:
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return machine.emit_object(module)


def load(data: bytes) -> Code:
    """Make compiled code callable."""
    kind, content = data[:6], data[6:]
    if kind == _IMAGE:
        return LoadedImage(Image.unpack(content))
    if kind == _OBJECT:
        with forks.unforked:
            return LoadedObject(content)
    raise ValueError("not code of this compiler")


class LoadedObject:
    """Code linked and loaded by LLVM: ELF, Mach-O or COFF. LLVM writes it first and makes it executable afterwards."""

    def __init__(self, binary: bytes):
        import llvmlite.binding as llvm

        _initialize()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(binary))
        self._engine.finalize_object()
        self.functions: dict[str, int] = {}
        for name in NAMES:
            address = self._engine.get_function_address(name)
            if address:
                self.functions[name] = address
        self.size = len(binary)


@functools.cache
def _initialize() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Level 0 would choose instructions one by one ("fast"), give up at every fused multiply-add and start again:
    # it takes five times as long as looking at whole blocks, and the code is longer. Other levels do not use it.
    llvm.set_option("linkwise", "--fast-isel=false")
    # Operations are in the order of their schedule: moving them to other blocks takes a fifth of the time for long
    # programs with loops and makes the code longer.
    llvm.set_option("linkwise", "--disable-machine-sink")
    if host.is_x86():  # what moves addresses to their uses takes a tenth of the time and gains nothing
        llvm.set_option("linkwise", "--disable-cgp")
        # another order of instructions, chosen after ours: a twelfth of the time, and the code is as fast without it
        llvm.set_option("linkwise", "--enable-misched=false")
    if host.sve_bits() > 128:  # LLVM's option to use registers of a known length; shorter vectors stay NEON
        llvm.set_option("linkwise", f"--aarch64-sve-vector-bits-min={host.vector_bits()}")
    if system.WINDOWS:
        _name_what_windows_needs()


WINDOWS_NAMES = frozenset({"__chkstk", "_fltused"})
"""What code for Windows refers to beside ``C_LIBRARY``: growth of the stack by pages, a mark of floating-point code."""
_mark = ctypes.c_int(0)


def _name_what_windows_needs() -> None:
    """Tell LLVM's loader where these names are: a process on Windows has no list of all its functions."""
    import llvmlite.binding as llvm

    llvm.add_symbol("_fltused", ctypes.addressof(_mark))
    for name in sorted(C_LIBRARY | WINDOWS_NAMES):
        address = system.c_function(name)
        if address:
            llvm.add_symbol(name, address)


def _target_machine(level: int = 1) -> llvm.TargetMachine:
    """The code generator for this processor.

    The graph has been optimized, so no pass runs before it; and level 1 of the generator gives the same code as
    level 2 for long lists of operations, in two thirds to one third of the time. Level 0 chooses registers without
    looking ahead. No level changes the operations.
    """
    import llvmlite.binding as llvm

    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        reloc="pic",
        codemodel="default",
    )
