"""Generated C: compiles without a warning and returns the interpreter's bits."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from random_programs import EVERY_OUTPUT, INPUTS, every_program, random_function, same_bits, states

from linkwise.compiler.emit import c
from linkwise.compiler.emit.clike import SpellingError
from linkwise.compiler.ir import interpret
from linkwise.compiler.ir.program import trace, unfused
from linkwise.compiler.ir.verify import SIGNATURES
from linkwise.scalar import cos, sin, while_loop

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
COMPILERS = [
    pytest.param(
        name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")
    )
    for name in ("gcc", "clang")
]


def built(tmp_path, compiler, text, *options):
    (tmp_path / "program.c").write_text(text)
    command = [compiler, *options, str(tmp_path / "program.c"), "-o", str(tmp_path / "program"), "-lm"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return tmp_path / "program"


def outputs(executable, rows) -> np.ndarray:
    """What the generated main prints for these states."""
    given = " ".join(float(number).hex() for row in rows for part in row for number in part)
    printed = subprocess.run([executable], input=given, capture_output=True, text=True, check=True).stdout
    return np.array([[_number(word) for word in line.split()] for line in printed.splitlines()])


def _number(word: str) -> float:
    return np.nan if "nan" in word else float(word)


def rounded(rows, dtype):
    with np.errstate(over="ignore"):
        return [tuple(part.astype(dtype) for part in row) for row in rows]


def expect_bits(program, executable, rows):
    rows = rounded(rows, program.dtype)
    for row, got in zip(rows, outputs(executable, rows), strict=True):
        wanted = np.concatenate([part.ravel() for part in interpret.run(program, *row)])
        got = got.astype(wanted.dtype)  # nine digits name a float, not a double
        assert same_bits(got, wanted), f"{row}: {got} instead of {wanted}"


@pytest.mark.parametrize("options", [["-O0"], ["-O2"], ["-O3", "-march=native"]], ids=" ".join)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_operation(tmp_path, compiler, dtype, options):
    program = every_program(dtype)
    executable = built(tmp_path, compiler, c.source(program, main=True), *STRICT, *options)
    expect_bits(program, executable, states(60, 1))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_without_a_standard_option(tmp_path, compiler):
    """GNU dialects fuse across statements unless they are told not to."""
    program = trace(
        lambda x, y: [x[0] * x[1] * x[2] / y[0], (x[0] * x[1]) / y[1] + x[2]], INPUTS, {"out": (2,)}
    )
    text = c.source(unfused(every_program("float64")), main=True)
    executable = built(tmp_path, compiler, text, "-O3", "-march=native", "-Wall", "-Wextra", "-Werror")
    expect_bits(unfused(every_program("float64")), executable, states(30, 2))
    executable = built(tmp_path, compiler, c.source(program, main=True), "-O3", "-march=native")
    expect_bits(program, executable, states(30, 2))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_programs(tmp_path, dtype):
    """Many programs in one executable, so that the compiler starts once."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    programs = [
        trace(random_function(seed, 40), INPUTS, {"out": (6,)}, name=f"f{seed}", dtype=dtype)
        for seed in range(20)
    ]
    real = "double" if dtype == "float64" else "float"
    calls = "\n".join(f"        {p.name}(x, y, out + {6 * k});" for k, p in enumerate(programs))
    main = f"""
int main(void)
{{
    {real} x[3], y[2], out[{6 * len(programs)}];
    while (scanf("%{"l" if real == "double" else ""}f", &x[0]) == 1) {{
        for (int k = 1; k < 5; ++k)
            if (scanf("%{"l" if real == "double" else ""}f", k < 3 ? &x[k] : &y[k - 3]) != 1)
                return 1;
{calls}
        for (int k = 0; k < {6 * len(programs)}; ++k)
            printf("%.17g ", (double)out[k]);
        printf("\\n");
    }}
    return 0;
}}
"""
    text = "#include <stdio.h>\n" + "\n".join(c.source(p) for p in programs) + main
    executable = built(tmp_path, "gcc", text, *STRICT, "-O3", "-march=native")
    rows = rounded(states(25, 4), dtype)
    for row, got in zip(rows, outputs(executable, rows), strict=True):
        for k, program in enumerate(programs):
            wanted = interpret.run(program, *row)[0]
            assert same_bits(got[6 * k : 6 * k + 6], wanted), f"{program.name} at {row}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_without_fused_operations(tmp_path, compiler, dtype):
    program = every_program(dtype)
    text = c.source(program, main=True, fma=False)
    assert "fma(" not in text
    assert "fmaf(" not in text
    assert "differ in the last bits" in text
    executable = built(tmp_path, compiler, text, *STRICT, "-O3", "-march=native")
    expect_bits(unfused(program), executable, states(40, 5))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_fast_math_is_refused(tmp_path, compiler):
    (tmp_path / "program.c").write_text(c.source(every_program("float64")))
    result = subprocess.run(
        [compiler, "-ffast-math", "-c", "program.c"], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode != 0
    assert "-ffast-math" in result.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("language", ["c", "c++"])
def test_header(tmp_path, compiler, language):
    program = every_program("float64")
    (tmp_path / "every.h").write_text(c.source(program, header=True, description="for the header"))
    use = "void (*used)(const double *, const double *, double *) = every;\n"
    (tmp_path / "use.c").write_text('#include "every.h"\n' * 2 + use)
    strict = STRICT if language == "c" else STRICT[1:]
    command = [compiler, "-x", language, *strict, "-c", "use.c", "-o", "use.o"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_comment_tells_what_it_is():
    def function(q):
        return {"tau": [sin(q[0]) * 2.0, cos(q[1])], "M": [[q[0], q[1]], [q[1], 1.0]]}

    program = trace(function, {"q": 2}, {"tau": (2,), "M": (2, 2)}, name="robot")
    text = c.source(program, function_name="arm", description="an arm */ with /* marks")
    comment = text[: text.index("*/")]
    assert "arm: an arm * / with / * marks" in comment
    assert "1 multiplication, 0 additions, 2 sin/cos" in comment
    assert re.search(r"q +in +2\n", comment)
    assert re.search(r"M +out +2 x 2\n", comment)
    assert "void arm(const double q[restrict 2], double tau[restrict 2], double M[restrict 4])" in text


@pytest.mark.parametrize("compiler", COMPILERS)
def test_awkward_names_and_sizes(tmp_path, compiler):
    """C's own words, the names of locals, unused and empty arguments, an output that is a constant, no inputs
    at all.
    """
    names = {"float": 1, "v1": 1, "fma": 1, "q̇": 1, "unused": 2, "nothing": 0}
    program = trace(
        lambda **x: [x["float"][0] * x["v1"][0] + x["fma"][0] - x["q̇"][0]], names, {"int": (1,)}, name="odd"
    )
    executable = built(tmp_path, compiler, c.source(program, main=True), *STRICT, "-O2")
    assert outputs(executable, [([3.0], [5.0], [7.0], [11.0], [0.0, 0.0], [])]).tolist() == [[11.0]]
    # an input that is not used, though its name ends that of an output
    ending = trace(lambda q, qd: [q[0] + 1.0], {"q": 1, "qd": 1}, {"by_qd": (1,)}, name="ending")
    executable = built(tmp_path, compiler, c.source(ending, main=True), *STRICT, "-O2")
    assert outputs(executable, [([3.0], [5.0])]).tolist() == [[4.0]]
    constant = trace(lambda: [0.1, 2.0], {}, {"out": (2,)}, name="constant")
    executable = built(tmp_path, compiler, c.source(constant, main=True), *STRICT, "-O2")
    assert outputs(executable, []).tolist() == [[0.1, 2.0]]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_output_may_be_called_like_an_input(tmp_path, compiler):
    program = trace(lambda x: {"x": [x[1], 2.0 * x[0]]}, {"x": 2}, {"x": (2,)}, name="turned")
    executable = built(tmp_path, compiler, c.source(program, main=True), *STRICT, "-O2")
    assert outputs(executable, [([3.0, 5.0],)]).tolist() == [[5.0, 6.0]]


def test_carried_values_change_at_once(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")

    def turn(x):
        # without the selection that freezes a lane, so that the next values are carried values themselves
        a, b, _ = while_loop(lambda a, b, n: n > 0.0, lambda a, b, n: (b, -a, n - 1.0), (x[0], x[1], x[2]))
        return [a, b]

    program = trace(turn, {"x": 3}, {"out": (2,)}, name="turn")
    (region,) = program.body
    region.loop.following[:2] = [region.loop.phi[1], region.loop.phi[1].graph.neg(region.loop.phi[0])]
    region.body = [node for node in region.body if node.op != "select" or node is region.loop.following[2]]
    executable = built(tmp_path, "gcc", c.source(program, main=True), *STRICT, "-O2")
    assert outputs(executable, [([1.0, 2.0, 3.0],)]).tolist() == [[-2.0, 1.0]]


@pytest.mark.parametrize("name", ["two words", "3d", "double", "main", ""])
def test_a_function_needs_a_name_that_c_allows(name):
    program = trace(lambda x: [x[0] + 1.0], {"x": 1}, {"out": (1,)}, name="no name")
    with pytest.raises(SpellingError, match="name of a function"):
        c.source(program, function_name=name)


@pytest.mark.parametrize(
    ("own", "spelt"),
    [
        ("two words-é", "two_words"),
        ("3d", "f_3d"),
        ("double", "double_"),
        ("<lambda>", "lambda"),
        ("关节", "function"),
    ],
)
def test_a_programs_own_name_is_spelt_as_c_allows(own, spelt):
    program = trace(lambda x: [x[0] + 1.0], {"x": 1}, {"out": (1,)}, name=own)
    assert f"void {spelt}(" in c.source(program)


def test_constants_are_read_back_exactly(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    rng = np.random.default_rng(3)
    numbers = [
        *(rng.normal(size=200) * 10.0 ** rng.uniform(-300, 300, 200)),
        5e-324,
        1.7976931348623157e308,
        1e22,
        0.1,
    ]
    for dtype in ("float64", "float32"):
        program = trace(lambda: numbers, {}, {"out": (len(numbers),)}, name="numbers", dtype=dtype)
        text = c.source(program, main=True)
        executable = built(tmp_path, "gcc", text, *STRICT)
        with np.errstate(all="ignore"):
            assert same_bits(outputs(executable, [])[0].astype(dtype), np.array(numbers).astype(dtype))


def test_enough_outputs():
    assert len(every_program("float64").values[0]) == EVERY_OUTPUT
    assert set(SIGNATURES) == {node.op for node in every_program("float64").nodes()}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_negated_fused_zero_keeps_its_sign(tmp_path, compiler, dtype):
    """gcc 12 computes -(a*b + c) as -a*b - c, which is +0 where a*b + c is +0."""

    def function(x):
        total = x[0] * x[1] + x[2]
        return [-total - x[3] * x[4]]

    program = trace(function, {"x": 5}, {"y": (1,)}, name="negated", dtype=dtype)
    text = c.source(program, main=True)
    assert re.search(r"-\w+_rounded\(v\d+\)", text)
    executable = built(tmp_path, compiler, text, *STRICT, "-O2", "-march=native")
    expect_bits(program, executable, [(np.array([1.0, 1.0, -1.0, 0.0, 1.0]),)])


def test_a_status_that_main_does_not_use_is_thrown_away_by_name():
    """``(void)`` stands before calls of functions that return a status, and before no other."""
    from linkwise.compiler.kernel import traced_kernel

    shapes = {"tau": (1,), "fault": (1,)}
    checked = traced_kernel("law", lambda q: {"tau": q, "fault": q}, {"q": 1}, shapes, "float64", None)
    plain = traced_kernel("law", lambda q: {"tau": q}, {"q": 1}, {"tau": (1,)}, "float64", None)
    assert "        (void)law(" in checked.source("c", main=True)
    assert "        law(" in plain.source("c", main=True)
