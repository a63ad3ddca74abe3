"""Packages on other processors under QEMU: the same bits, and in constant time the same number of instructions."""

import re
import shutil
import subprocess

import pytest

import linkwise as lw
from linkwise.embedded import Options, Package
from linkwise.embedded.processors import PROCESSORS, conditional_jumps

HERE = {
    processor.name: pytest.param(
        processor,
        id=processor.name,
        marks=pytest.mark.skipif(
            not (processor.here and shutil.which("make")),
            reason=f"no {processor.compiler} or no {processor.emulator}",
        ),
    )
    for processor in PROCESSORS
}
FUSED = {"fpv4-sp": ("float32",), "fpv5-d16": ("float32", "float64"), "vfpv3": ()}
"""Precisions in which units of ARM have fused multiply-adds; AArch64 and RV64GC have both."""
NATIVE = ("gcc", "objdump", "-O2 -mfma"), ("clang", "objdump", "-O2 -mfma")


def test_fused_multiply_adds_are_those_of_the_unit():
    for processor in PROCESSORS:
        unit = re.search(r"-mfpu=(\S+)", processor.flags)
        known = [fused for name, fused in FUSED.items() if unit and unit[1].startswith(name)]
        assert processor.fused == (known[0] if unit else ("float32", "float64")), processor.name


def make(folder, *goals):
    done = subprocess.run(
        ["make", "-s", *goals], cwd=folder, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    """What a controller's computer needs, in float32."""
    folder = tmp_path_factory.mktemp("controller") / "pkg"
    names = ["computed_torque", "gravity_torques", "forward_dynamics"]
    Package(lw.load("panda"), names, Options("float32"), count=12).write(folder)
    return folder


@pytest.fixture(scope="module")
def constant(tmp_path_factory):
    """Constant time: limits, a memory, sines, divisions."""
    folder = tmp_path_factory.mktemp("constant") / "pkg"
    names = ["integral_tracking", "forward_dynamics"]
    Package(lw.load("two_link"), names, Options("float32"), constant_time=True, count=4).write(folder)
    return folder


@pytest.mark.parametrize("processor", HERE.values())
def test_the_check_of_a_controller_passes(controller, processor):
    assert make(controller, f"check-{processor.name}").endswith("36 states, all bits equal\n")


@pytest.mark.parametrize("processor", [HERE["cortex-m4"], HERE["cortex-r5"]])
def test_fused_multiply_adds_in_software_have_the_same_bits(tmp_path, processor):
    """Doubles on an M4, everything on an R5: their libraries round twice."""
    Package(lw.load("two_link"), ["forward_dynamics"], count=12).write(tmp_path / "pkg")
    assert "12 states, all bits equal" in make(tmp_path / "pkg", f"check-{processor.name}")


@pytest.mark.parametrize("processor", [HERE["cortex-m7"], HERE["aarch64"]])
def test_moves_of_all_joints_are_those_of_one_after_the_other(tmp_path, processor):
    """Without vectors of AVX; the check compares both."""
    Package(lw.load("two_link"), ["online"], Options("float32"), count=2).write(tmp_path / "pkg")
    assert "check_two_link_online_move()" in (tmp_path / "pkg/check/check.c").read_text()
    assert "6 states, all bits equal" in make(tmp_path / "pkg", f"check-{processor.name}")


@pytest.mark.parametrize("processor", [HERE["cortex-m7"]])
def test_instructions_of_a_computed_torque_cycle(controller, processor):
    counts = _counts(make(controller, f"count-{processor.name}", "COUNT=5"))
    assert counts["panda_computed_torque"][1] < 1500


@pytest.mark.parametrize("processor", [HERE["cortex-m4"], HERE["cortex-m7"], HERE["cortex-r5"]])
def test_constant_time_takes_the_same_instructions_for_all_numbers(constant, processor):
    """Zeros, infinities and NaN among them."""
    counts = _counts(make(constant, f"count-{processor.name}", "COUNT=300", "SPECIAL=1"))
    assert len(counts) == 2
    for least, most in counts.values():
        assert least == most


def _counts(text):
    return {name: (int(least), int(most)) for name, least, most in re.findall(r"(\w+) (\d+) (\d+)\n", text)}


def disassembled(folder, compiler, objdump, flags, start=""):
    make(folder, f"CC={compiler}", f"CFLAGS={flags}", f"BUILD=build/{compiler}{start}")
    files = sorted((folder / f"build/{compiler}{start}").glob("*.o"))
    return subprocess.run([objdump, "-d", *files], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("processor", HERE.values())
def test_constant_time_has_no_conditional_jumps(constant, processor):
    """A Cortex-R5 has no fused multiply-add: there it is computed in doubles."""
    tools = processor.compiler, f"{processor.tools}objdump", processor.flags, processor.name
    assert conditional_jumps(disassembled(constant, *tools)) == []


@pytest.mark.parametrize("tools", [t for t in NATIVE if shutil.which(t[0])], ids=lambda tools: tools[0])
def test_constant_time_has_no_conditional_jumps_here(constant, tools):
    assert conditional_jumps(disassembled(constant, *tools)) == []


@pytest.mark.skipif(not shutil.which("clang"), reason="no clang")
def test_conditional_jumps_are_found_where_they_are(tmp_path):
    Package(lw.load("two_link"), ["integral_tracking"], Options("float32"), count=1).write(tmp_path / "pkg")
    assert conditional_jumps(disassembled(tmp_path / "pkg", *NATIVE[1]))


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_constant_time_without_the_instruction(constant, tmp_path):
    """Floats are computed in doubles of the processor, with the same bits; doubles are refused."""
    flags = "-O2 -mno-fma"
    assert conditional_jumps(disassembled(constant, "gcc", "objdump", flags, "none")) == []
    assert "all bits equal" in make(constant, "check", "CC=gcc", f"CFLAGS={flags}", "BUILD=build/gccnone")
    (f,) = Package(lw.load("two_link"), ["gravity_torques"], constant_time=True, count=1).functions
    (tmp_path / "double.c").write_text(f.text)
    done = subprocess.run(
        ["gcc", "-mno-fma", "-E", "double.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "needs a fused multiply-add of the processor" in done.stderr
