"""The linker for AArch64: code made by LLVM's cross compiler, linked here, run under QEMU by a small C program."""

import shutil
import struct
import subprocess
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import host, image, relocations
from linkwise.errors import LinkwiseError

COMPILER, QEMU = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
needs_qemu = pytest.mark.skipif(not (COMPILER and QEMU), reason="no compiler or QEMU for AArch64")

# maps the image, enters C functions, and calls run(first, count, arguments, scratch) as Python does
CALLER = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static void *known(const char *name) {
    return !strcmp(name, "fma") ? (void *)fma : !strcmp(name, "memcpy") ? (void *)memcpy
         : !strcmp(name, "memset") ? (void *)memset : !strcmp(name, "memmove") ? (void *)memmove : 0;
}
int main(int count, char **words) {
    static unsigned char code[1 << 22];
    static double values[1 << 16];
    FILE *file = fopen(words[1], "rb");
    size_t size = fread(code, 1, sizeof code, file);
    size_t number = fread(values, 8, 1 << 16, fopen(words[2], "rb"));
    unsigned char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long entry, place;
    sscanf(words[3], "%lu", &entry);
    memcpy(memory, code, size);
    for (int k = 4; k + 1 < count; k += 2) {
        void *function = known(words[k]);
        sscanf(words[k + 1], "%lu", &place);
        memcpy(memory + place, &function, 8);
    }
    if (mprotect(memory, size, PROT_READ | PROT_EXEC)) return 3;
    __builtin___clear_cache((char *)memory, (char *)memory + size);
    ((void (*)(double *, double *, double *))(memory + entry))(values, values + number / 2, values);
    fwrite(values, 8, number, stdout);
    return 0;
}
"""

# constants in a section of their own, calls of C functions, loops, vectors of a given length
PROGRAM = """
@table = private constant [4 x double] [double 1.25, double -2.5, double 3.0, double 0.1]
declare double @llvm.fma.f64(double, double, double)
declare double @fma(double, double, double)
define internal double @helper(double %x, i64 %k) noinline nounwind {
  %k4 = and i64 %k, 3
  %p = getelementptr [4 x double], ptr @table, i64 0, i64 %k4
  %c = load double, ptr %p
  %y = call double @fma(double %x, double %c, double 0.3)
  ret double %y
}
define void @run(ptr %in, ptr %out, ptr %rest) nounwind {
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  %from = getelementptr double, ptr %in, i64 %k
  %to = getelementptr double, ptr %out, i64 %k
  %x = load <WIDTH x double>, ptr %from, align 8
  %c = load <WIDTH x double>, ptr @wide, align 64
  %m = fmul <WIDTH x double> %x, %c
  %s = fadd <WIDTH x double> %m, %x
  %f = extractelement <WIDTH x double> %s, i32 1
  %h = call double @helper(double %f, i64 %k)
  %r = insertelement <WIDTH x double> %s, double %h, i32 1
  store <WIDTH x double> %r, ptr %to, align 8
  %next = add i64 %k, WIDTH
  %more = icmp ult i64 %next, 64
  br i1 %more, label %loop, label %done
done:
  ret void
}
@wide = private constant <WIDTH x double> <CONSTANTS>, align 64
"""

CROSS = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
features, bits = sys.argv[1:]
if int(bits) > 128:
    llvm.set_option("x", f"--aarch64-sve-vector-bits-min={bits}")
triple = "aarch64-unknown-linux-gnu"
machine = llvm.Target.from_triple(triple).create_target_machine(
    features=features, opt=1, reloc="pic", codemodel="default")
module = llvm.parse_assembly(sys.stdin.read())
module.triple, module.data_layout = triple, str(machine.target_data)
sys.stdout.buffer.write(machine.emit_object(module))
"""


def compiled(text: str, features: str, bits: int) -> bytes:
    command = [sys.executable, "-c", CROSS, features, str(bits)]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True, timeout=120).stdout


@pytest.fixture(scope="module")
def caller(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aarch64")
    (folder / "caller.c").write_text(CALLER)
    command = [COMPILER, "-O1", "-static", "-o", folder / "caller", folder / "caller.c", "-lm"]
    subprocess.run(command, check=True, timeout=120)
    return folder / "caller"


@needs_qemu
@pytest.mark.parametrize(
    ("features", "bits", "processor"),
    [("+neon", 128, "cortex-a72"), ("+neon,+sve", 256, "max,sve256=on,sve512=off")],
    ids=["neon", "sve"],
)
def test_linked_code_runs(features, bits, processor, caller, tmp_path):
    width = bits // 64
    constants = [0.5, 0.25, 2.0, 4.0][:width]
    text = PROGRAM.replace("WIDTH", str(width))
    text = text.replace("CONSTANTS", ", ".join(f"double {value}" for value in constants))
    linked = image.link(compiled(text, features, bits))
    values = np.arange(128, dtype=np.float64) / 7.0
    (tmp_path / "code").write_bytes(linked.code)
    values.tofile(tmp_path / "values")
    words = [str(word) for pair in linked.imports.items() for word in pair]
    command = [QEMU, "-cpu", processor, caller, tmp_path / "code", tmp_path / "values"]
    ran = subprocess.run([*command, str(linked.functions["run"]), *words], capture_output=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    found = np.frombuffer(ran.stdout)[64:]
    x = values[:64]
    expected = x * np.tile(constants, 64 // width) + x
    table = np.array([1.25, -2.5, 3.0, 0.1])
    for k in range(0, 64, width):
        expected[k + 1] = expected[k + 1] * table[k & 3] + 0.3
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert "fma" in linked.imports


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_kernels_can_be_linked(function):
    """Every relocation and symbol of a kernel for AArch64 is known."""
    from linkwise.compiler.emit import blocks
    from linkwise.compiler.shapes import nest

    program = lw.load("two_link").kernel(function).program()
    linked = image.link(compiled(blocks.module(nest(program), 2), "+neon", 128))
    assert "run" in linked.functions


def test_distances_that_do_not_fit_are_refused():
    code = bytearray(struct.pack("<I", 0x94000000))
    relocate = relocations.PROCESSORS[183].relocate
    relocate(code, 283, 0, -8)
    assert struct.unpack("<I", code) == (0x97FFFFFE,)
    for kind, target in ((283, 1 << 28), (286, 4), (275, 1 << 40), (311, 0), (283, 2)):
        with pytest.raises(relocations.UnsupportedObject):
            relocate(code, kind, 0, target)


def test_addresses_are_where_the_processor_reads_them():
    """ADR: bits 29 and 30, then 5 to 23 (Arm Architecture Reference Manual, C6.2.10); other bits stay."""
    rng, relocate = np.random.default_rng(0), relocations.PROCESSORS[183].relocate
    for kind, shift in ((274, 0), (275, 12)):
        for _ in range(50):
            here, distance = 8 * int(rng.integers(1, 8)), int(rng.integers(-(1 << 20), 1 << 20))
            before = int(rng.integers(0, 1 << 32))
            code = bytearray(72)
            struct.pack_into("<I", code, here, before)
            relocate(code, kind, here, (distance << shift) + (here if shift == 0 else 0))
            (word,) = struct.unpack_from("<I", code, here)
            value = (word >> 29 & 3) + 4 * (word >> 5 & 0x7FFFF)
            assert value - (1 << 21) * (value >> 20) == distance
            assert (word ^ before) & ~0x60FFFFE0 == 0


def test_vector_widths_on_aarch64(monkeypatch):
    monkeypatch.delenv("LINKWISE_VECTOR_BITS", raising=False)
    for length, bits in ((0, 128), (128, 128), (256, 256), (384, 256), (2048, 512)):
        host.vector_bits.cache_clear()
        monkeypatch.setattr(host, "sve_bits", lambda length=length: length)
        monkeypatch.setattr(host.platform, "machine", lambda: "aarch64")
        assert host.vector_bits() == bits
    monkeypatch.undo()
    host.vector_bits.cache_clear()


def test_the_width_of_vectors_can_be_limited(monkeypatch):
    widest = host._widest_vector()
    for text in ("128", "256", "512", "wide"):
        host.vector_bits.cache_clear()
        monkeypatch.setenv("LINKWISE_VECTOR_BITS", text)
        if text == "wide":
            with pytest.raises(LinkwiseError, match="LINKWISE_VECTOR_BITS: expected 128, 256 or 512"):
                host.vector_bits()
        else:
            assert host.vector_bits() == min(widest, int(text))
    monkeypatch.undo()
    host.vector_bits.cache_clear()
