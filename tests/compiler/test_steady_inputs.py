"""Inputs that are mostly the same for all states of a batch: the same bits however they are given."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.compiler.emit import blocks
from linkwise.compiler.ir.program import Program, trace
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.shapes import nest
from linkwise.scalar import cos, where

SIZES = {"q": 5, "gain": 3, "limit": 1}
OUTPUTS = {"tau": (4,), "sum": (1,)}
STATES = 21  # whole blocks and a rest, for every width


def law(q, gain, limit):
    tau = [gain[k % 3] * cos(q[k]) + q[k + 1] for k in range(4)]
    return {"tau": [where(t > limit[0], limit[0], t) for t in tau], "sum": [gain[0] * gain[2] - limit[0]]}


def program(precision: str, steady: tuple[str, ...]) -> Program:
    return trace(law, SIZES, OUTPUTS, name="law", dtype=precision, steady=steady)  # type: ignore[arg-type]


def kernel(*steady: str) -> Kernel:
    return Kernel("law", SIZES.items(), OUTPUTS.items(), "float64", lambda p: program(p, steady))


def with_gaps(rows: np.ndarray) -> np.ndarray:
    wide = np.full((rows.shape[0], rows.shape[1] + 2), np.nan, rows.dtype)
    wide[:, :-2] = rows
    return wide[:, :-2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bits_are_those_of_other_inputs(dtype):
    rng = np.random.default_rng(0)
    q, gain, limit = (rng.normal(size=(STATES, size)).astype(dtype) for size in SIZES.values())
    plain, some, both = kernel(), kernel("gain"), kernel("gain", "limit")
    for each in (gain, with_gaps(gain), gain[0], gain[:1]):
        for bound in (limit, with_gaps(limit), limit[3]):
            expected = plain(q, each, bound)
            for made in (some, both):
                for count in (STATES, 1, 7, 8):
                    parts = [x[:count] if x.ndim == 2 else x for x in (q, each, bound)]
                    for found, all_of_them in zip(made(*parts), expected, strict=True):
                        assert found.tobytes() == all_of_them[:count].tobytes()


def test_columns_that_are_not_read_keep_their_places():
    def late(q, gain):
        return {"y": [q[0] * gain[7] - gain[3], gain[7]]}

    def made(*steady: str) -> Kernel:
        sizes, outputs = {"q": 1, "gain": 9}, {"y": (2,)}
        build = lambda dtype: trace(late, sizes, outputs, name="late", dtype=dtype, steady=steady)  # noqa: E731
        return Kernel("late", sizes.items(), outputs.items(), "float64", build)

    rng = np.random.default_rng(2)
    q, gain = rng.normal(size=(STATES, 1)), rng.normal(size=(STATES, 9))
    for each in (gain, with_gaps(gain), gain[:1]):
        expected = np.concatenate([q * each[:, 7:8] - each[:, 3:4], 0.0 * q + each[:, 7:8]], axis=1)
        assert made("gain")(q, each).tobytes() == made()(q, each).tobytes()
        np.testing.assert_allclose(made("gain")(q, each), expected, rtol=0, atol=1e-15)


def test_every_thread_has_its_own_lanes():
    rng = np.random.default_rng(1)
    q, gain, limit = (rng.normal(size=(5000, size)) for size in SIZES.values())
    for given in ((q, gain, limit), (q, gain[0], limit[0])):
        for found, expected in zip(kernel("gain", "limit")(*given, threads=2), kernel()(*given), strict=True):
            assert found.tobytes() == expected.tobytes()


def test_rows_of_one_state_are_transposed_once():
    """The block itself has no shuffles of such an input: it reads lanes, as of constants."""
    for width in (2, 4, 8):
        text = blocks.module(nest(program("float64", ("gain", "limit"))), width)
        inside = text[text.index("\nsteady:") :]
        assert inside.count("shufflevector") < text.count("shufflevector")
        plain = blocks.module(nest(program("float64", ())), width)
        assert "lane_rows" not in plain
        block = plain[plain.index("\nblock:") :]
        assert inside.count("shufflevector") < block.count("shufflevector")


def test_settings_of_a_law_are_such_inputs():
    import linkwise as lw
    from linkwise.control import named

    law = named("hybrid_force_motion", lw.load("two_link"), frequency=10.0, force="input")
    made = law.kernel(1e-3, tunable=True).program()
    assert set(made.steady) == set(law.settings()) - set(law.signals)
    assert law.signals
    assert not law.kernel(1e-3).program().steady
