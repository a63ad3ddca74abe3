"""C packages: their files, their self-test, the compilers and linters that they satisfy, the folders they replace."""

import json
import re
import shutil

import numpy as np
import pytest
from packages_built import COMPILERS, WARNINGS, needs_make, run

import linkwise as lw
from linkwise import motion
from linkwise.control import CONTROLLERS, Policy
from linkwise.embedded import ENTRIES, Options, Package, entries, stack
from linkwise.errors import LinkwiseError, UnknownNameError
from linkwise.files.outputs import OutputError

NAMES = {
    "float32": ("gravity_torques", *CONTROLLERS, *ENTRIES),
    "float64": (
        "gravity_torques",
        "forward_dynamics",
        "integral_tracking",
        "state_observer",
        "rollout",
        "two_rate",
    ),
}
ALLOWED_CALLS = {"memcpy", "fma", "fmaf", "sqrt", "sqrtf", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}

pytestmark = needs_make


@pytest.fixture(scope="module", params=["float32", "float64"])
def built(request, tmp_path_factory):
    """A package, its folder, and what its check said. That in float32 has everything that has a name."""
    weights = tmp_path_factory.mktemp("weights") / "policy.npz"
    Policy.random((4, 6, 2)).save(weights)
    made = Package(
        lw.load("two_link"),
        NAMES[request.param],
        Options(dtype=request.param, weights=str(weights)),
        constant_time=request.param == "float64",
        count=8,
    )
    folder = tmp_path_factory.mktemp(request.param) / "arm"
    made.write(folder)
    quick = "-O1 -march=native" if request.param == "float32" else "-O2 -march=native"
    said = run(
        "make", "check", "all", f"CC={COMPILERS[0]}", f"CFLAGS={quick}", f"WARNINGS={WARNINGS}", cwd=folder
    )
    return made, folder, said


def test_the_check_passes_without_a_warning(built):
    made, folder, said = built
    total = int(re.search(r"(\d+) states, all bits equal", said)[1])
    assert total >= 2 * len(made.functions)
    for compiler in COMPILERS:
        options = (
            f"CC={compiler}",
            f"BUILD=build/{compiler}",
            "CFLAGS=-O0 -march=native",
            f"WARNINGS={WARNINGS}",
        )
        if compiler != COMPILERS[0]:
            assert f"{total} states, all bits equal" in run("make", "check", *options, cwd=folder)
        run("make", "runtime", *options, cwd=folder)


def test_the_check_fails_for_one_wrong_bit(built, tmp_path):
    _, folder, _ = built
    shutil.copytree(folder, tmp_path / "arm")
    check = tmp_path / "arm" / "check" / "check.c"
    text = check.read_text()
    place = re.search(r"expected_tau\[\d+\]\[\d+\] = \{\s+\{0x[0-9a-f]+?([0-9a-f])u", text)
    flipped = format(int(place[1], 16) ^ 1, "x")
    check.write_text(text[: place.start(1)] + flipped + text[place.end(1) :])
    said = run("make", "check", "CFLAGS=-O0 -march=native", cwd=tmp_path / "arm", fails=True)
    assert "1 of the numbers" in said
    assert "state 0: element 0 is" in said


def test_nothing_is_allocated_and_no_function_calls_itself(built):
    made, folder, _ = built
    for f in made.functions:
        symbols = run("nm", "-u", f"build/{f.name}.o", cwd=folder).split()
        assert set(symbols) - {"U"} <= ALLOWED_CALLS
        body = f.text[f.text.rindex(f"{f.name}(") :]
        assert f"{f.name}(" not in body[1:]


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_the_stack_is_within_the_bound_of_the_header():
    made = Package(lw.load("puma560"), ["computed_torque", "pose"], Options("float32"), count=1)
    sources = {
        name.split("/")[-1]: text
        for name, text in made.files.items()
        if name.startswith(("src/", "include/"))
    }
    header = made.files["include/puma560.h"]
    for flags in (("-O0", "-mfma"), ("-O3", "-mfma")):
        if not (found := stack.measured(sources, flags=flags)):
            pytest.skip("this gcc measures no stack")
        for f in made.functions:
            bound = int(re.search(rf"#define {f.name.upper()}_STACK (\d+)", header)[1])
            assert found[f.name] <= bound
    assert "bytes of stack" in header
    assert "measured: " in header


def test_the_header_says_order_units_and_sizes(built):
    made, _, _ = built
    header = made.files["include/two_link.h"]
    for k, name in enumerate(made.robot.joint_names):
        assert re.search(rf"\b{k}  {name} \[rad, N\*m\]", header)
    assert "#define TWO_LINK_N 2" in header
    assert "joint positions [rad or m]" in header
    for f in made.functions:
        assert f"{'void' if f.function.status is None else 'int'} {f.name}(" in header
    assert header.isascii()
    joints, text = made.robot.coordinate_joints, made.files["src/two_link_limits.c"]
    for name, values in (
        ("lower", [joint.limits.lower for joint in joints]),
        ("upper", [joint.limits.upper for joint in joints]),
        ("effort", made.robot.effort_limits),
    ):
        listed = re.search(rf"two_link_{name}\[TWO_LINK_N\] = {{([^}}]*)}}", text)[1]
        found = [float(number.strip().rstrip("f")) for number in listed.split(",")]
        np.testing.assert_allclose(found, np.clip(values, -1e30, 1e30), rtol=1e-6)


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_the_wrapper_is_cpp(built, standard, tmp_path):
    _, folder, _ = built
    spans = "std::span<const real, 2>(q), std::span<real, 2>(tau)" if standard == "c++20" else None
    program = f"""
        #include "two_link.hpp"
        using two_link::real;
        int main() {{
            const std::array<real, 2> q{{real(0.1), real(0.2)}};
            std::array<real, 2> tau{{}}, other = two_link::gravity_torques(q);
            const auto found = two_link::state_observer(q, q, q, q);
            static_assert(two_link::n == 2);
            {f"two_link::gravity_torques({spans});" if spans else "two_link_gravity_torques(q.data(), tau.data());"}
            return tau == other && found.next_q[0] > 0 ? 0 : 1;
        }}"""
    (tmp_path / "main.cpp").write_text(program)
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{folder / 'include'}"]
    run(
        "g++",
        f"-std={standard}",
        *flags,
        "main.cpp",
        folder / "build/libtwo_link.a",
        "-o",
        "main",
        cwd=tmp_path,
    )
    run("./main", cwd=tmp_path)


@pytest.mark.skipif(not shutil.which("cargo"), reason="no Rust")
def test_the_crate_gives_the_same_bits(tmp_path):
    made = Package(lw.load("two_link"), ["gravity_torques", "state_observer"], Options("float32"), count=1)
    made.write(tmp_path / "arm")
    q, bits = np.array([0.1, 0.2], np.float32), lambda x: np.asarray(x, np.float32).view(np.uint32)
    expected = bits(made.functions[0].entry.kernel(q)), bits(made.functions[1].entry.kernel(q, q, q, q)[1])
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text(
        "fn main() {\n    let q = [0.1, 0.2];\n"
        "    let words = |x: [two_link::Real; two_link::N]| x.map(two_link::Real::to_bits);\n"
        "    let tau = words(two_link::gravity_torques(&q));\n"
        "    let next = words(two_link::state_observer(&q, &q, &q, &q).next_qd);\n"
        '    println!("{} {} {} {}", tau[0], tau[1], next[0], next[1]);\n}\n'
    )
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n\n'
        '[dependencies]\ntwo_link = { path = "arm/rust" }\n'
    )
    said = run("cargo", "run", "--offline", "--quiet", cwd=tmp_path)
    assert said.split() == [str(x) for x in np.concatenate(expected)]
    assert made.files["rust/lib.rs"].count("#![no_std]") == 1


def test_the_crate_compiles_as_the_makefile_does():
    """Code in constant time must not set errno; pointers to inputs are constant, others are not."""
    for constant_time in (False, True):
        made = Package(lw.load("two_link"), ["gravity_torques"], constant_time=constant_time, count=1)
        for name in ("Makefile", "rust/build.rs"):
            assert ("-fno-math-errno" in made.files[name]) == constant_time, name
        assert "gravity_torques(q: *const Real, tau: *mut Real)" in made.files["rust/lib.rs"]


@pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("pkg-config")), reason="no CMake or no pkg-config"
)
def test_cmake_and_pkg_config(tmp_path):
    Package(lw.load("two_link"), ["gravity_torques"], count=2).write(tmp_path / "arm")
    run("cmake", "-S", "arm", "-B", "built", f"-DCMAKE_INSTALL_PREFIX={tmp_path}/there", cwd=tmp_path)
    run("cmake", "--build", "built", cwd=tmp_path)
    assert "100% tests passed" in run("ctest", "--test-dir", "built", cwd=tmp_path)
    run("cmake", "--install", "built", cwd=tmp_path)
    (found,) = (tmp_path / "there").rglob("two_link.pc")
    flags = run("pkg-config", "--cflags", "--libs", found, cwd=tmp_path)
    assert f"-I{tmp_path}/there/include" in flags
    assert "-ltwo_link" in flags


@pytest.mark.skipif(
    not (shutil.which("clang-tidy") and shutil.which("cppcheck")), reason="no clang-tidy or no cppcheck"
)
def test_linters_find_only_what_is_listed(tmp_path):
    made = Package(
        lw.load("two_link"), ["integral_tracking", "rollout"], Options("float32"), constant_time=True, count=2
    )
    made.write(tmp_path / "arm")
    said = run("make", "lint", cwd=tmp_path / "arm")
    assert "misra" not in said.replace("--addon=misra", "").replace("check/misra.txt", "")


# -- the folder --------------------------------------------------------------------------------------------------------


def test_only_an_unchanged_package_is_replaced(tmp_path):
    made = Package(lw.load("two_link"), ["gravity_torques"], count=1)
    folder = tmp_path / "arm"
    made.write(folder)
    (folder / "build").mkdir()
    assert made.write(folder)
    assert not (folder / "build").exists()
    source = folder / "src" / "two_link_gravity_torques.c"
    source.write_text("mine")
    with pytest.raises(OutputError, match=r"two_link_gravity_torques\.c.*--force"):
        made.write(folder)
    assert source.read_text() == "mine"
    (folder / "notes.txt").write_text("mine, too")
    made.write(folder, force=True)
    assert source.read_text() != "mine"
    assert (folder / "notes.txt").read_text() == "mine, too"
    (folder / "notes.txt").unlink()
    made.write(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "more").symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(OutputError, match="more"):
        made.write(folder)
    (folder / "more").unlink()
    elsewhere.rmdir()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm"]


def test_places_that_are_no_folders_are_refused(tmp_path):
    made = Package(lw.load("two_link"), ["gravity_torques"], count=1)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "no" / "arm"):
        with pytest.raises(OutputError):
            made.write(place)


def test_an_estimator_forgets_within_about_a_second():
    for period, factor in ((0.001, "0.999"), (0.01, "0.99"), (0.25, "0.75"), (2.0, "0.5")):
        (made,) = entries(lw.load("two_link"), ["recursive_least_squares"], Options(period=period))
        assert f"forgetting factor {factor} per sample" in made.summary


def test_names_are_checked():
    robot = lw.load("two_link")
    with pytest.raises(UnknownNameError, match="did you mean 'computed_torque'"):
        Package(robot, ["computed_torq"])
    with pytest.raises(LinkwiseError, match="cannot begin"):
        Package(robot, ["pose"], prefix="1x")
    with pytest.raises(LinkwiseError, match="it has no constraints"):
        Package(robot, ["constraint_forces"])
    with pytest.raises(LinkwiseError, match="ball or floating"):
        Package(lw.load("two_link", base="floating"), ["trajectory"])
    with pytest.raises(LinkwiseError, match="time depends on data"):
        _ = Package(robot, ["iterated_forward_dynamics"], constant_time=True).files


def test_long_chains_are_loops_with_memory_of_the_caller(tmp_path):
    made = Package(lw.general_chain(60), ["inverse_dynamics"], Options("float32"), count=2)
    (f,) = made.functions
    assert f.room > 0
    assert f"_ROOM {f.room}" in made.files[f"include/{made.prefix}.h"]
    made.write(tmp_path / "chain")
    said = run("make", "check", f"WARNINGS={WARNINGS}", cwd=tmp_path / "chain")
    assert "2 states, all bits equal" in said


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_package(tmp_path, monkeypatch, capsys):
    from linkwise.cli import main

    monkeypatch.chdir(tmp_path)
    command = [
        "generate",
        "two_link",
        "computed_torque",
        "gravity_torques",
        "--dtype",
        "float32",
        "--payload",
    ]
    assert main([*command, "--states", "4", "--torque-limits", "50,20", "--out", "pkg", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["function"] for row in said["functions"]] == [
        "two_link_computed_torque",
        "two_link_gravity_torques",
    ]
    assert "8 states, all bits equal" in run("make", "check", cwd=tmp_path / "pkg")
    assert "payload" in (tmp_path / "pkg/include/two_link.h").read_text()
    assert "50.0f, 20.0f" in (tmp_path / "pkg/src/two_link_computed_torque_defaults.c").read_text()
    motion.write_csv("motion.csv", motion.quintic([0, 0], [1, 2], 1.0), rate=10)
    planned = ["generate", "two_link", "trajectory", "--trajectory", "motion.csv"]
    assert main([*planned, "--out", "plan", "--states", "1"]) == 0
    assert "motion of 10 pieces from 0 s to 1 s" in (tmp_path / "plan/include/two_link.h").read_text()
    capsys.readouterr()
    assert main(["generate", "two_link", "computed_torque"]) == 0
    assert "int two_link_computed_torque(" in capsys.readouterr().out
    for wrong, why in (
        (["pose", "jacobian"], "give --out DIR"),
        (["pose", "--force", "--out", "x.c"], "--force is for packages"),
        (["pose", "--period", "0.1"], "--period is for controllers"),
        (["two_rate"], "several functions"),
        (["pose", "jacobian", "--header", "--out", "other"], "--header is for one function"),
        (["pose", "jacobian", "--target", "cuda", "--out", "other"], "a package is C"),
        (["pose", "--controller", "tracking"], "--controller is for closed_loop"),
        (["pose", "--stop", "hold"], "--stop and --stop-time are for safe_stop"),
        (["pose", "--trajectory", "motion.csv"], "--trajectory is for trajectory and closed_loop"),
        (["trajectory", "--trajectory", "none.csv"], "none.csv"),
    ):
        assert main(["generate", "two_link", *wrong]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert why in line
    assert sorted(p.name for p in tmp_path.iterdir()) == ["motion.csv", "pkg", "plan"]
