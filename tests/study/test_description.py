"""Bad input: one line each, before anything is computed."""

import pytest

import linkwise as lw
from linkwise.study.errors import StudyError
from linkwise.study.reduce.keep import Keep


def changed(tables, path, value):
    """The tables with one entry set (or removed: ``None``)."""
    *parents, last = path
    inner = tables
    for key in parents:
        inner = inner.setdefault(key, {})
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return tables


BAD = [
    (("sample",), 10, r"sample: unknown key; did you mean 'samples'"),
    (("robot",), "pandda", r"robot: .*pandda"),
    (("robot",), "nowhere/arm.urdf", r"robot: .*arm\.urdf"),
    (("robot",), 7, r"robot: expected the name"),
    (("robot",), {"load": "panda", "gravty": [0, 0, 0]}, r"robot\.gravty: unknown key; did you mean 'gravity'"),
    (("robot",), {"load": "panda", "lock": {"nobody": 0.0}}, r"robot: .*nobody"),
    (("seed",), 1.5, r"seed: expected a whole number, got 1\.5"),
    (("samples",), 0, r"samples: expected a whole number from 1 on, got 0"),
    (("samples",), None, r"samples: missing; vary\.q is drawn at random"),
    (("samples",), 10**17, r"points; the most is 2\^53"),
    (("design",), "sobbol", r"design: no 'sobbol'; did you mean 'sobol'"),
    (("chunk",), -1, r"chunk: expected a whole number from 1 on"),
    (("compression",), "zip", r"compression: no 'zip'"),
    (("vary",), None, r"vary: missing"),
    (("vary", "q"), {"unifrom": [0, 1]}, r"vary\.q: expected exactly one of"),
    (("vary", "q"), {"uniform": [0, 1], "normal": [0, 1]}, r"vary\.q: expected exactly one of .*; got"),
    (("vary", "q"), {"uniform": [0, 1], "unti": "rad"}, r"vary\.q\.unti: unknown key; did you mean 'unit'"),
    (("vary", "q"), {"uniform": [1, 0]}, r"vary\.q\.uniform: element 0: expected low < high"),
    (("vary", "q"), {"uniform": [1]}, r"vary\.q\.uniform: expected 2 entries"),
    (("vary", "q"), {"uniform": [[0, 0, 0], 1]}, r"vary\.q\.uniform: expected 1 or 2 numbers, got 3"),
    (("vary", "q"), {"uniform": ["a", "b"]}, r"vary\.q\.uniform, low: expected finite numbers"),
    (("vary", "q"), {"uniform": [float("nan"), 1]}, r"expected finite numbers"),
    (("vary", "q"), {"normal": "limits"}, r"limits"),
    (("vary", "qd"), {"normal": [0, -1]}, r"vary\.qd\.normal: element 0: expected a deviation"),
    (("vary", "q"), {"choice": []}, r"vary\.q\.choice: expected a list"),
    (("vary", "q"), {"uniform": [0, 1], "relative": True}, r"vary\.q\.relative: only parameters"),
    (("vary", "q.elbow"), 0.0, r"vary\.q\.elbow: two_link has no joint 'elbow'"),
    (("vary", "payload.mass"), {"grid": {"from": 0, "to": 1, "points": 0}}, r"grid\.points: expected a whole number"),
    (("vary", "payload.mass"), {"grid": {"from": 0, "to": 1, "steps": 3}}, r"grid\.points: missing"),
    (("vary", "unused"), {"uniform": [0, 1]}, r"vary\.unused: nothing uses it"),
    (("vary", "x"), {"labels": "*.nothing", "uniform": [0, 1]}, r"vary\.x\.labels: no parameter matches"),
    (("vary", "payload"), {"value": 0.0}, r"vary\.payload: give the ten numbers or"),
    (("compute", "tau"), {"function": "inverse_dynamic"}, r"tau\.function: no .*did you mean 'inverse_dynamics'"),
    (("compute", "tau"), {"function": "inverse_dynamics", "algorithm": "newton"}, r"tau: .*no algorithm 'newton'"),
    (("compute", "tau"), {"function": "inverse_dynamics"}, r"tau: needs qdd, which is neither varied nor"),
    (("compute", "tau"), {"funktion": "x"}, r"compute\.tau: expected exactly one of .*did you mean 'function'"),
    (("compute", "tau", "frame"), "hand", r"compute\.tau: .*no frame 'hand'"),
    (("compute", "load"), "max(abs(tua))", r"compute\.load: needs tua, .*did you mean 'tau'"),
    (("compute", "load"), "max(abs(tau)", r"compute\.load: .*not a formula"),
    (("compute", "load"), "tau[7]", r"compute\.load: .*no such element"),
    (("compute", "load"), "load + 1", r"compute\.load: depends on itself"),
    (("compute", "load"), 3, r"compute\.load: expected a table or a formula"),
    (("compute", "q"), "tau + 1", r"compute\.q: q is a variable already"),
    (("compute", "own"), {"call": "no.such.module:f"}, r"compute\.own\.call: cannot import"),
    (("compute", "own"), {"call": "math"}, r'compute\.own\.call: expected "package\.module:name"'),
    (("keep",), {"tua": ["mean"]}, r"keep\.tua: neither varied nor computed; did you mean 'tau'"),
    (("keep", "tau"), ["mena"], r"keep\.tau: no statistic 'mena'; did you mean 'mean'"),
    (("keep", "tau"), {"quantiles": [1.5]}, r"keep\.tau\.quantiles: expected numbers from 0 to 1"),
    (("keep", "tau"), {"histogram": {"low": 1, "high": 0, "bins": 3}}, r"tau\.histogram\.low: expected low < high"),
    (("keep", "tau"), {"histogram": {"low": 0, "high": 1}}, r"keep\.tau\.histogram\.bins: missing"),
    (("keep", "tau"), {}, r"keep\.tau: nothing is kept"),
    (("keep", "load"), {"quantiles": [0.5], "over": "sample"}, r"keep\.load\.quantiles: .*give chunk = 40000"),
    (("keep", "load"), {"statistics": ["max"], "over": "samples"}, r"load\.over: no 'samples'; did you mean 'sample'"),
    (("failures", "heavy"), "lod > 1", r"failures\.heavy: needs lod, .*did you mean 'load'"),
    (("failures", "heavy"), {"when": "load > 1", "keep": ["tua"]}, r"failures\.heavy\.keep: no 'tua'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value", "message"), BAD, ids=[f"{'.'.join(p)}={v}"[:50] for p, v, _ in BAD]
)
def test_one_line_before_anything_is_computed(small, path, value, message):
    with pytest.raises(StudyError, match=message) as caught:
        lw.study(changed(small, path, value))
    assert "\n" not in str(caught.value)


def test_nothing_kept(small):
    small["keep"] = {}
    small["failures"] = {}
    with pytest.raises(StudyError, match="keep: nothing is kept"):
        lw.study(small)


def test_a_histogram_has_a_bin_at_least():
    keep = {"q": {"histogram": {"low": 0.0, "high": 1.0, "bins": 0}}}
    with pytest.raises(StudyError, match="bins"):
        lw.study(robot="two_link", samples=3, vary={"q": {"uniform": [0, 1]}}, keep=keep)


def test_names_of_the_arrays_of_a_quantity():
    keep = Keep("a", raw=True, statistics=("mean", "min", "max"))
    assert keep.arrays() == ["a", "a_mean", "a_min", "a_max", "a_min_point", "a_max_point", "a_left_out"]
    assert Keep("a", raw=True).arrays() == ["a"]
    more = Keep("a", quantiles=(0.5,), histogram=(0.0, 1.0, 10)).arrays()
    assert more == [
        f"a_{name}" for name in ("quantiles", "quantile_level", "histogram", "outside", "bin", "left_out")
    ]


def test_too_many_dimensions():
    with pytest.raises(StudyError, match="256 dimensions here, the study needs 300"):
        lw.study(
            robot="two_link",
            samples=8,
            design="sobol",
            vary={"x": {"uniform": [0, 1], "size": 300}},
            keep={"x": "raw"},
        )


def test_files(tmp_path):
    with pytest.raises(StudyError, match="no such file"):
        lw.study(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("robot = ")
    with pytest.raises(StudyError, match=r"bad\.toml: "):
        lw.study(tmp_path / "bad.toml")


def test_a_robot_beside_the_file(tmp_path, monkeypatch):
    lw.save(lw.load("two_link"), tmp_path / "arm.toml")
    lines = (
        'robot = "arm.toml"',
        "vary = { q = [0.1, 0.2] }",
        'compute = { g = { function = "gravity_torques" } }',
        'keep = { g = "raw" }',
    )
    (tmp_path / "study.toml").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path.parent)
    assert lw.study(tmp_path / "study.toml").points == 1


def test_named_arguments_replace_those_of_the_file(small):
    assert lw.study(small, samples=10).points == 20
