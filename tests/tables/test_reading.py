"""One reader for every table: text in many forms, numbers that cannot be meant, files larger than they look."""

import gc
import io
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import motion
from linkwise.files import tables
from linkwise.files.tables import bounds, units
from linkwise.identify import LogError, read_log

VALUES = [[0.0, 0.5, -1.25], [1.0, 1500.0, 2.0], [2.0, 0.25, 1e-3]]
PLAIN = "t,q1,q2\n0,0.5,-1.25\n1,1.5e3,2\n2,0.25,1e-3\n"

FORMS = {
    "commas": PLAIN,
    "semicolons": PLAIN.replace(",", ";"),
    "tabs": PLAIN.replace(",", "\t"),
    "bars": PLAIN.replace(",", "|"),
    "blanks": PLAIN.replace(",", "  "),
    "commas and blanks": PLAIN.replace(",", " , "),
    "decimal commas and semicolons": PLAIN.replace(",", ";").replace(".", ","),
    "decimal commas and tabs": PLAIN.replace(",", "\t").replace(".", ","),
    "decimal commas and blanks": PLAIN.replace(",", " ").replace(".", ","),
    "line ends of Windows": PLAIN.replace("\n", "\r\n"),
    "line ends of old Macintoshes": PLAIN.replace("\n", "\r"),
    "no line end": PLAIN.rstrip("\n"),
    "byte order mark": "\ufeff" + PLAIN,
    "comments and blank lines": "# made by hand\n\n" + PLAIN.replace("1,1.5", "% in between\n\n1,1.5"),
    "quotes": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in PLAIN.splitlines()),
    "a separator at every end": PLAIN.replace("\n", ",\n"),
    "a separator at the end of rows": PLAIN.replace("\n", ",\n").replace("q2,", "q2"),
    "a spreadsheet's first line": "sep=;\n" + PLAIN.replace(",", ";"),
    "other names": PLAIN.replace("t,q1,q2", "Time,POS_1,pos_2"),
    "counted from zero": PLAIN.replace("q1,q2", "q0,q1"),
    "by joints": PLAIN.replace("q1,q2", "q.joint1,q.joint2"),
    "units in the header": PLAIN.replace("t,q1,q2", "t [s],q1 [rad],q2 (rad)"),
    "a row of units": PLAIN.replace("q2\n", "q2\n[s],[rad],rad\n"),
    "units in a row, decimal commas": PLAIN.replace("q2\n", "q2\ns,rad,rad\n")
    .replace(",", ";")
    .replace(".", ","),
    "no header": PLAIN.split("\n", 1)[1],
    "no header, decimal commas": PLAIN.split("\n", 1)[1].replace(",", ";").replace(".", ","),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_the_same_table_for_everyone(tmp_path, name, encoding):
    path = tmp_path / "table.csv"
    path.write_bytes(FORMS[name].encode(encoding))
    assert tables.read(path).values[:, :3].tolist() == VALUES
    t, found = tables.read_states(path, ["q"], ("joint1", "joint2"))
    assert t is not None
    assert np.column_stack([t, found["q"]]).tolist() == VALUES
    played = motion.read_csv(path, ("joint1", "joint2"))
    np.testing.assert_allclose(played.at([0.0, 1.0, 2.0]).q, np.array(VALUES)[:, 1:], atol=1e-9)


def test_degrees_in_the_header(tmp_path):
    text = PLAIN.replace("t,q1,q2", "t [ms],q1 [deg],q2 [°]")
    (tmp_path / "table.csv").write_text(text)
    t, found = tables.read_states(tmp_path / "table.csv", ["q"], ("joint1", "joint2"))
    assert t is not None
    np.testing.assert_allclose(t, [0.0, 1e-3, 2e-3])
    np.testing.assert_allclose(found["q"], np.radians(np.array(VALUES)[:, 1:]))
    (tmp_path / "table.csv").write_bytes(text.encode("latin-1"))
    np.testing.assert_array_equal(
        tables.read_states(tmp_path / "table.csv", ["q"], ("joint1", "joint2"))[1]["q"], found["q"]
    )
    (tmp_path / "table.csv").write_text(PLAIN.replace("q2", "q2 [Nm]"))
    with pytest.raises(
        tables.TableError, match=r"column 3 \(q2 \[Nm\]\): no unit 'Nm' of position; valid: rad"
    ):
        tables.read_states(tmp_path / "table.csv", ["q"], ("joint1", "joint2"))


def test_a_recording_in_degrees_by_its_header(tmp_path):
    t = np.arange(50) / 100
    q, tau = np.column_stack([np.sin(t), np.cos(t)]), np.ones((50, 2))
    rows = np.column_stack([t, np.degrees(q), tau])
    header = "t [s],q1 [deg],q2 [deg],tau1 [Nm],tau2 [Nm]"
    np.savetxt(tmp_path / "run.csv", rows, delimiter=",", header=header, comments="", fmt="%.17g")
    np.testing.assert_allclose(read_log(tmp_path / "run.csv", lw.load("two_link")).q, q, rtol=1e-14)


def test_units_as_the_last_word_of_names(tmp_path):
    """Degrees, milliseconds and newton millimetres; a joint that the file lacks is named, with what to type."""
    t = np.arange(50) / 100
    q, tau = np.column_stack([np.sin(t), np.cos(t)]), np.ones((50, 2))
    rows = np.column_stack([1e3 * t, np.degrees(q), np.degrees(np.gradient(q, t, axis=0)), 1e3 * tau])
    joints = ("joint1", "joint2")
    for torque in ("trq_{}_Nmm", "trq_{}_mNm", "trq_{} [mNm]", "trq_{} (mN·m)"):
        words = ("pos_{}_deg", "vel_{}_deg_per_s", torque)
        header = ",".join(["stamp_ms", *(word.format(joint) for word in words for joint in joints)])
        np.savetxt(tmp_path / "run.csv", rows, delimiter=",", header=header, comments="", fmt="%.17g")
        log = read_log(tmp_path / "run.csv", lw.load("two_link"))
        np.testing.assert_allclose(log.tau, tau)
    np.testing.assert_allclose(log.q, q, rtol=1e-14)
    np.testing.assert_allclose(log.tau, tau)
    assert log.t[-1] - log.t[0] == pytest.approx(0.49)
    assert log.qd is not None
    np.testing.assert_allclose(log.qd, np.gradient(q, t, axis=0), atol=1e-9)
    assert units.split("tau_m") == ("tau_m", "")  # one letter: of a motor
    (tmp_path / "less.csv").write_text("t,pos_joint1,tau_joint1\n0,0,0\n1,1,1\n")
    with pytest.raises(
        lw.LinkwiseError, match=r"no columns of positions for joint2 \(--lock joint2=POSITION"
    ):
        read_log(tmp_path / "less.csv", lw.load("two_link"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no numbers in it"),
        ("# nothing\n\n", "no numbers in it"),
        ("t,q1,q2\n", "a header and no rows under it"),
        ("0,1\n1,2\n2\n", r"line 3: expected 2 columns, got 1 \(the file ends"),
        ("0,1\n1,2,3\n2,3\n", "line 2: expected 2 columns, got 3$"),
        ("0,1\n\n# x\n1,\n", "line 4: column 2: expected a number, got an empty cell"),
        ("0,1\n1,two\n", "line 2: column 2: expected a number, got 'two'"),
        ("0,1\n1,1_0\n", "line 2: column 2: expected a number, got '1_0'"),
        ("0;1,5\n1;2.5\n", "line 2: decimal commas and decimal points"),
        ("0;1\n1;1,000.5\n", "decimal commas and decimal points"),
        ("0,1\n1,\x002\n", "not a text file"),
        ("x" * ((1 << 20) + 5), "line 1: longer than"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "wrong.csv"
    path.write_text(text)
    with pytest.raises(tables.TableError, match=message) as caught:
        tables.read(path)
    assert str(caught.value).startswith(f"{path}")
    assert "\n" not in str(caught.value)


def test_a_wrong_line_far_into_a_file(tmp_path):
    lines = ["t,q1"] + [f"{k},1.5" for k in range(50_000)]
    lines[41_234] = "41233,oops"
    (tmp_path / "long.csv").write_text("\n".join(lines))
    with pytest.raises(
        tables.TableError, match=r"long\.csv, line 41235: column 2: expected a number, got 'oops'"
    ):
        tables.read(tmp_path / "long.csv")


@pytest.mark.filterwarnings("error")
def test_files_are_closed(tmp_path):
    """Also by Python's own rules: a file that is left open is a warning."""
    (tmp_path / "table.csv").write_text(PLAIN)
    tables.read(tmp_path / "table.csv")
    (tmp_path / "table.csv").write_text("nothing")
    with pytest.raises(tables.TableError):
        tables.read(tmp_path / "table.csv")
    gc.collect()


def test_files_that_are_packed(tmp_path):
    import gzip

    (tmp_path / "run.csv.gz").write_bytes(gzip.compress(PLAIN.encode()))
    with pytest.raises(tables.TableError, match=r"run\.csv\.gz: a gzip file; expected text"):
        tables.read(tmp_path / "run.csv.gz")


def test_standard_input_and_pipes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(PLAIN))
    assert tables.read("-").values.tolist() == VALUES
    code = "from linkwise.files import tables; import sys; print(tables.read(sys.argv[1]).values.tolist())"
    environment = {**os.environ, "PYTHONPATH": str(Path(lw.__file__).parent.parent)}
    for source in ("-", "/dev/stdin"):
        run = subprocess.run(
            [sys.executable, "-c", code, source], input=PLAIN, env=environment, capture_output=True, text=True
        )
        assert run.stdout == f"{VALUES}\n", run.stderr


# -- numbers that cannot be meant -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["nan", "NaN", "inf", "-inf", "Infinity", "1e400", "-1e400", "1e308", "1e31"]
)
@pytest.mark.parametrize("column", ["t", "q2", "qd1", "qdd2", "tau1"])
def test_numbers_that_are_not_finite_are_refused_by_everyone(tmp_path, value, column):
    names = ["t", "q1", "q2", "qd1", "qd2", "qdd1", "qdd2", "tau1", "tau2"]
    rows = np.column_stack([np.arange(30) / 100, np.random.default_rng(0).normal(size=(30, 8))])
    cells = [[repr(v) for v in row] for row in rows.tolist()]
    cells[17][names.index(column)] = value
    path = tmp_path / "run.csv"
    path.write_text("\n".join([",".join(names), *(",".join(row) for row in cells)]))
    arm = lw.load("two_link")
    place = rf"run\.csv, line 19: column {names.index(column) + 1} \({column}\) is "
    readers = {
        "inverse": (lambda: tables.read_states(path, ["q", "qd", "qdd"], arm.joint_names), "t q2 qd1 qdd2"),
        "forward": (lambda: tables.read_states(path, ["q", "qd", "tau"], arm.joint_names), "t q2 qd1 tau1"),
        "motion": (lambda: motion.read_csv(path), "t q2 qd1 qdd2"),
        "log": (lambda: read_log(path, arm), "t q2 qd1 tau1"),
    }
    for read, used in readers.values():
        if column in used.split():
            with pytest.raises(tables.TableError, match=place):
                read()
        else:
            read()
    if column in ("q2", "qd1", "tau1"):
        assert len(read_log(path, arm, drop_bad_rows=True)) == 29


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_numbers_that_are_not_finite_in_other_files(tmp_path, kind):
    t, q = np.arange(5.0), np.ones((5, 2))
    q[3, 1] = np.inf
    path = tmp_path / f"run.{kind}"
    if kind == "npz":
        np.savez(path, t=t, q=q)
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        parquet.write_table(pyarrow.table({"t": t, "q1": q[:, 0], "q2": q[:, 1]}), path)
    with pytest.raises(tables.TableError, match=rf"run\.{kind}, row 4: column 3 \(q2\) is inf, not a finite"):
        motion.read_csv(path)
    q[3, 1] = 0.5
    np.savez(tmp_path / "good.npz", t=t, q=q)
    assert motion.read_csv(tmp_path / "good.npz").dof == 2


# -- files larger than they look --------------------------------------------------------------------------------------


def npz_bomb(path: Path, size: int) -> None:
    """An archive that unpacks to ``size`` bytes of zeros in a column."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (size // 8,)}
    )
    block = bytes(1 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("q.npy", "w") as member:
        member.write(header.getvalue())
        for _ in range(size >> 20):
            member.write(block)


def peak(code: str, *arguments: object) -> tuple[str, int]:
    """What a process prints, and the most memory it used beyond what importing takes [MiB]."""
    frame = (
        "import resource, sys\nimport numpy as np\nfrom linkwise.files import tables; from linkwise import motion\n"
        "try:\n    import pyarrow.parquet\nexcept ImportError:\n    pass\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\ntry:\n    " + code + "\n"
        "except tables.TableError as error:\n    print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(lw.__file__).parent.parent)}
    run = subprocess.run(
        [sys.executable, "-c", frame, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)),
    )
    assert run.returncode == 0, run.stderr
    *said, used = run.stdout.splitlines()
    return "\n".join(said), int(used)


def test_an_npz_that_unpacks_to_more_than_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setenv(bounds.VARIABLE, "150")
    npz_bomb(tmp_path / "bomb.npz", 180 << 20)
    assert (tmp_path / "bomb.npz").stat().st_size < 1 << 20
    said, used = peak("tables.read(sys.argv[1])", tmp_path / "bomb.npz")
    assert "bomb.npz: unpacked: 180 MiB of numbers, more than the 150 MiB that are allowed" in said
    assert bounds.VARIABLE in said
    assert used < 50


def test_small_integers_count_as_what_they_become(tmp_path, monkeypatch):
    monkeypatch.setenv(bounds.VARIABLE, "1")
    np.savez_compressed(tmp_path / "small.npz", q=np.zeros(200_000, np.int8))
    with pytest.raises(tables.TableError, match=r"1\.526 MiB of numbers, more than the 1 MiB"):
        tables.read(tmp_path / "small.npz")
    monkeypatch.setenv(bounds.VARIABLE, "2")
    assert tables.read(tmp_path / "small.npz").values.shape == (200_000, 1)


def test_an_array_whose_header_promises_more(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    )
    with zipfile.ZipFile(tmp_path / "lie.npz", "w") as archive:
        archive.writestr("q.npy", header.getvalue() + bytes(80))
    with pytest.raises(tables.TableError, match=r"lie\.npz: no arrays of numbers"):
        tables.read(tmp_path / "lie.npz")


def test_a_parquet_that_unpacks_to_more_than_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setenv(bounds.VARIABLE, "150")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    chunk = pyarrow.table({f"q{k}": np.zeros(1 << 17) for k in range(1, 9)})
    with parquet.ParquetWriter(tmp_path / "bomb.parquet", chunk.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(chunk)
    assert (tmp_path / "bomb.parquet").stat().st_size < 1 << 20
    said, used = peak("tables.read(sys.argv[1])", tmp_path / "bomb.parquet")
    assert "bomb.parquet: unpacked: 160 MiB of numbers, more than the 150 MiB" in said
    assert used < 50


def test_long_lists_in_a_parquet(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv(bounds.VARIABLE, "1")
    lists = pyarrow.array([[0.0] * 100_000] * 3)
    text = pyarrow.array(["x" * 1_000_000] * 3)
    parquet.write_table(pyarrow.table({"q": lists, "note": text}), tmp_path / "lists.parquet")
    with pytest.raises(tables.TableError, match=r"2\.289 MiB of numbers"):
        tables.read(tmp_path / "lists.parquet")
    parquet.write_table(pyarrow.table({"q": [1.0, 2.0, 3.0], "note": text}), tmp_path / "text.parquet")
    assert tables.read(tmp_path / "text.parquet").names == ("q",)


def test_text_is_bounded_too(tmp_path, monkeypatch):
    (tmp_path / "long.csv").write_text("0 0 0 0\n" * 100_000)
    monkeypatch.setenv(bounds.VARIABLE, "1")
    with pytest.raises(tables.TableError, match=r"long\.csv: .* of numbers, more than the 1 MiB"):
        tables.read(tmp_path / "long.csv")
    for wrong in ("0", "-1", "nan", "inf", "much"):
        monkeypatch.setenv(bounds.VARIABLE, wrong)
        with pytest.raises(tables.TableError, match=bounds.VARIABLE):
            tables.read(tmp_path / "long.csv")


def test_endless_streams_are_bounded():
    said, used = peak("tables.read('/dev/zero')")
    assert "/dev/zero, line 1: longer than" in said
    assert used < 50


def test_computed_tables_are_bounded():
    move = motion.quintic([0.0, 0.0], [1.0, 1.0], 2.0)
    for ask in (
        lambda: move.sampled(1e12),
        lambda: move.sampled(points=10**12),
        lambda: motion.write_csv("/dev/null", move, rate=1e15),
        lambda: motion.quintic_spline(np.arange(40_000.0), np.zeros((40_000, 1))),
        lambda: motion.cubic_spline(np.arange(40_000.0), np.zeros((40_000, 1))),
    ):
        with pytest.raises(lw.LinkwiseError, match="more than the 1 GiB that are allowed"):
            ask()


def test_errors_of_recordings_keep_their_class(tmp_path):
    with pytest.raises(LogError, match="no such file"):
        read_log(tmp_path / "none.csv", lw.load("two_link"))
    with pytest.raises(lw.LinkwiseError, match="no such file"):
        motion.read_csv(tmp_path / "none.csv")


def test_a_rate_that_time_stamps_contradict_is_refused(tmp_path):
    """Stamps in milliseconds were read as seconds where a rate was given, too."""
    file = tmp_path / "run.csv"
    rows = [f"{10 * k},{0.01 * k},{0.02 * k},3,4" for k in range(20)]
    file.write_text("t,q1,q2,tau1,tau2\n" + "\n".join(rows), encoding="utf-8")
    robot = lw.load("two_link")
    with pytest.raises(LogError, match=r"recording.rate is 100 per second, but .* a sample every 10 s"):
        read_log(file, robot, {"recording": {"rate": 100.0}})
    named = {"recording": {"rate": 100.0}, "units": {"time": "ms"}}
    np.testing.assert_allclose(read_log(file, robot, named).t[:3], [0.0, 0.01, 0.02])
