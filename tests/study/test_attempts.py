"""One bad point costs one point, and every number that leaves it out says so."""

import json

import numpy as np
import pytest
from stores import contents

import linkwise as lw
from linkwise.cli import main
from linkwise.study.engines.attempts import Attempts

BAD = (0, 1, 4, 8191, 8192, 9999)


class Fails:
    """Fails at some points, which it knows by their ``x``; counts its calls."""

    def __init__(self, bad):
        self.bad, self.calls = set(bad), 0
        self.__name__ = "fails"

    def __call__(self, x):
        self.calls += 1
        found = self.bad & {round(float(value)) for value in x}
        if found:
            raise ValueError(f"no solution at {min(found)}")
        x *= 2.0  # which must not reach the next attempt
        return x

    def __reduce__(self):
        return Fails, ((),)  # which points fail is no part of its identity, as with a lack of memory


def tables(bad, points=10_000, **more):
    return {
        "robot": "two_link",
        "chunk": 16_384,
        "vary": {"x": {"grid": [float(k) for k in range(points)]}, "y": {"value": 3.0}},
        "compute": {"double": Fails(bad), "next": "double + y", "other": "x * 3"},
        "keep": {
            "double": {"raw": True, "statistics": ["count", "mean", "max"], "quantiles": [0.5]},
            "next": {"statistics": ["mean"], "histogram": {"low": 0.0, "high": 20_003.0, "bins": 4}},
            "other": ["mean"],
        },
        "failures": {"large": "next > 10000", "many": "other > 10"},
        **more,
    }


@pytest.fixture
def results(tmp_path):
    return lw.study(tables(BAD)).run(tmp_path / "s", progress=False)


def test_one_bad_point_costs_one_point(results):
    data = results.dataset().load()
    expected = 2.0 * np.arange(10_000)
    expected[list(BAD)] = np.nan
    assert np.array_equal(data.double.values, expected, equal_nan=True)
    good = expected[np.isfinite(expected)]
    assert data.double_count == 10_000 - len(BAD)
    assert np.isclose(data.double_mean, good.mean())
    assert data.double_max == good.max()
    assert data.double_quantiles[0] == np.quantile(good, 0.5, method="inverted_cdf")
    assert np.isclose(data.next_mean, (good + 3.0).mean())
    assert data.next_histogram.sum() == len(good)
    assert np.isclose(data.other_mean, 3.0 * np.arange(10_000).mean())
    assert data.attrs["failures"] == {"large": int((good + 3 > 10_000).sum()), "many": 9996}


def test_index_inputs_message_and_traceback_are_kept(results):
    rows = results.table("errors").to_pylist()
    assert [row["point"] for row in rows] == list(BAD)
    assert [row["x"] for row in rows] == [float(k) for k in BAD]
    assert {(row["y"], row["step"]) for row in rows} == {(3.0, "double")}
    assert rows[2]["error"] == "ValueError: no solution at 4"
    for row in rows:
        assert row["traceback"].startswith("Traceback (most recent call last):\n  File")
        assert row["traceback"].count("Traceback") == 1
        assert "test_attempts.py" in row["traceback"].splitlines()[1]


def test_every_number_that_leaves_points_out_says_so(results):
    data = results.dataset()
    for name in ("double_count", "double_mean", "double_max", "double_max_point", "double_quantiles"):
        assert data[name].attrs["points_left_out"] == len(BAD)
    assert data.double_mean.attrs["long_name"] == "mean of double over 9994 of 10000 points"
    for name in ("next_mean", "next_histogram", "next_outside"):
        assert data[name].attrs["points_left_out"] == len(BAD)
    assert data.double_left_out == len(BAD)
    assert "points_left_out" not in data.other_mean.attrs
    assert data.other_mean.attrs["long_name"] == "mean of other over all points"
    assert data.attrs["points_failed"] == len(BAD)
    assert data.attrs["failures_left_out"] == {"large": len(BAD), "many": 0}
    (row,) = results.table("extremes").to_pylist()
    assert row["points_left_out"] == len(BAD)


def test_at_each_grid_point(tmp_path):
    more = {
        "samples": 50,
        "vary": {"x": {"choice": [1.0, 2.0, 3.0, 4.0]}, "y": {"grid": [1.0, 2.0, 3.0]}},
        "keep": {
            "double": {"statistics": ["mean", "count"], "quantiles": [0.5], "over": "sample"},
            "next": {"quantiles": [0.1], "over": "sample"},
        },
        "failures": {},
    }
    study = lw.study(tables([4], **more))
    data = study.run(tmp_path / "s", progress=False).dataset().load()
    bad = study.at(np.arange(150), ["x"])["x"].reshape(3, 50) == 4.0
    assert 0 < bad[0].sum() < 50
    assert np.array_equal(data.double_count, 50 - bad.sum(axis=1))
    assert np.array_equal(data.double_left_out, bad.sum(axis=1))
    assert np.array_equal(data.next_left_out, bad.sum(axis=1))
    assert data.double_mean.attrs["points_left_out"] == bad.sum(axis=1).max()
    assert data.next_quantiles.attrs["long_name"].endswith(f"over {50 - bad[0].sum()} of 50 samples")


def test_failed_points_are_tried_again(results):
    expected = lw.study(tables(())).run(results.path.with_name("whole"), progress=False)
    assert not results.complete
    before = contents(results.path)
    assert not lw.study(tables(BAD)).run(results.path, resume=True, progress=False).complete
    assert contents(results.path) == before
    assert lw.study(tables(())).run(results.path, resume=True, progress=False).complete
    assert contents(results.path) == contents(expected.path)


def test_the_block_is_halved(tmp_path):
    study = lw.study(tables([5000], retries=0))
    step = study.plan.later[0]
    step.function.calls = 0
    study.run(tmp_path / "s", progress=False, threads=1)
    assert step.function.calls <= 2 + 2 * 13


def test_what_fails_at_every_point_is_refused():
    with pytest.raises(lw.LinkwiseError, match=r"compute\.double: ValueError: no solution at 0"):
        lw.study(tables(range(10_000)))


@pytest.mark.parametrize("as_json", [False, True])
def test_what_the_command_says(tmp_path, monkeypatch, capsys, as_json):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text(
        'robot = "two_link"\nsamples = 100\n[vary]\nx = { uniform = [0, 1] }\n'
        '[compute]\nroot = { call = "own_functions:root" }\n[keep]\nroot = ["mean"]\n[failures]\nhigh = "root > 0.9"\n'
    )
    assert main(["study", "bad.toml", *(["--json"] if as_json else [])]) == 1
    said = capsys.readouterr().out
    if as_json:
        facts = json.loads(said)
        failed = facts["points_failed"]
        assert 0 < failed < 100
        assert facts["left_out"] == {"root": {"points": failed, "of": 100}}
        assert facts["failures_left_out"] == {"high": failed}
        assert facts["statistics"]["root"]["left_out"] == [failed]
    else:
        failed = lw.open_study("bad.study").dataset().attrs["points_failed"]
        assert "left out" in said
        assert f"root: what is kept leaves out up to {failed} of 100 points (failed or NaN)" in said
        assert f"of {100 - failed} points ({failed} more left out: they failed)" in said
        assert f"{failed} points failed: see the table errors; --resume tries them again" in said


def test_nan_is_left_out_and_said(tmp_path):
    """Nothing failed, but some numbers are none."""
    more = {"compute": {"root": "sqrt(x - y - 2)"}, "keep": {"root": ["mean"]}, "failures": {}}
    results = lw.study(tables((), points=20, **more)).run(tmp_path / "s", progress=False)
    assert results.complete
    assert results.dataset().root_mean.attrs["points_left_out"] == 5


def test_a_full_disk_is_no_matter_of_a_point(tmp_path):
    class Step:
        name, takes = "s", ("x",)

        def computed(self, given, first):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        Attempts().results(Step(), {"x": np.zeros(4)}, 0, 4, {"s": ()})  # type: ignore[arg-type]
