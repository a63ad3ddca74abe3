"""MATLAB, HDF5, Excel and NPZ files: as people have them, and as nobody should."""

import datetime
import random
import sys
import zipfile

import numpy as np
import pytest

import linkwise as lw
from linkwise.files import tables
from linkwise.files.tables import bounds
from linkwise.identify import LogError, read_log

T = np.arange(50) / 100.0
Q = np.column_stack([np.sin(T), np.cos(2 * T)])
QD = np.column_stack([np.cos(T), -2 * np.sin(2 * T)])
TAU = np.column_stack([3 * Q[:, 0], -Q[:, 1]])
ARRAYS = {"t": T, "q": Q, "qd": QD, "tau": TAU}
TURNED = {"time": T[None, :], "q": Q.T, "dq": QD.T, "tau_J": TAU.T}
ALONE = np.column_stack([T, Q, QD, TAU])


@pytest.fixture(scope="module")
def arm():
    return lw.load("two_link")


def same(log):
    np.testing.assert_allclose(log.t, T, atol=1e-12)
    for found, true in ((log.q, Q), (log.qd, QD), (log.tau, TAU)):
        np.testing.assert_allclose(found, true, atol=1e-12)


def npz(path, arrays):
    np.savez(path, **{name.replace("/", "."): array for name, array in arrays.items()})


def mat(path, arrays):
    save = pytest.importorskip("scipy.io").savemat
    nested: dict = {}
    for name, array in arrays.items():
        group, _, last = name.rpartition("/")
        (nested.setdefault(group, {}) if group else nested)[last] = array
    save(path, nested | {"comment": "text"}, do_compression=True, oned_as="column")


def hdf5(path, arrays):
    package = pytest.importorskip("h5py")
    with package.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip")
        file["comment"] = "text"


def mat73(path, arrays):
    """As MATLAB writes it: HDF5 after a header of 512 bytes, arrays turned over."""
    package = pytest.importorskip("h5py")
    with package.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = np.atleast_2d(array).T if array.ndim == 2 else array[None, :]
    data = bytearray(path.read_bytes())
    data[:128] = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    path.write_bytes(data)


WRITERS = {"run.npz": npz, "run.mat": mat, "run.h5": hdf5, "run73.mat": mat73}
CONTENTS = {
    "an array per quantity": ARRAYS,
    "turned over": TURNED,
    "in a group": {f"data/{name}": array for name, array in ARRAYS.items()} | {"rate": np.array([100.0])},
    "all in one": {"data": ALONE},
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("file", WRITERS)
def test_arrays(tmp_path, arm, file, content):
    WRITERS[file](tmp_path / file, CONTENTS[content])
    same(read_log(tmp_path / file, arm))


def test_constants_of_motors_are_no_times(tmp_path, arm):
    for constants in ([0.1, 0.2], [0.2, 0.1], np.linspace(0.1, 0.7, 6)):
        npz(tmp_path / "run.npz", {"k_T": np.array(constants)} | ARRAYS)
        same(read_log(tmp_path / "run.npz", arm))


def test_records_in_hdf5(tmp_path, arm):
    package = pytest.importorskip("h5py")
    kinds = [(name, float) for name in ("t", "q1", "q2", "qd1", "qd2", "tau1", "tau2")]
    with package.File(tmp_path / "run.h5", "w") as file:
        file["log/table"] = np.array([tuple(row) for row in ALONE], dtype=kinds)
    same(read_log(tmp_path / "run.h5", arm))


@pytest.mark.parametrize("file", WRITERS)
def test_a_sensor_with_times_of_its_own(tmp_path, arm, file):
    """The samples are those of the joints, whether the other sensor has more, fewer, or stamps without data."""
    for count in (20, 49, 51, 400):
        stamps = np.arange(count) / count
        beside = {"ft/t": stamps, "ft/wrench": np.ones((count, 6))}
        joints = {f"joints/{name}": array for name, array in ARRAYS.items()}
        for arrays in (beside | joints, joints | beside, {"imu/time": stamps} | joints):
            WRITERS[file](tmp_path / file, arrays)
            same(read_log(tmp_path / file, arm))


def test_records_with_arrays_in_them(tmp_path, arm):
    kinds = [(name, float, array.shape[1:]) for name, array in ARRAYS.items()]
    records = np.zeros(len(T), dtype=kinds)
    for name, array in ARRAYS.items():
        records[name] = array
    np.savez(tmp_path / "run.npz", log=records)
    same(read_log(tmp_path / "run.npz", arm))
    package = pytest.importorskip("h5py")
    with package.File(tmp_path / "run.h5", "w") as file:
        file["log"] = records
    same(read_log(tmp_path / "run.h5", arm))


def test_stamps_that_are_dates(tmp_path, arm):
    dates = np.datetime64("2026-03-01T12:00:00") + (T * 1e9).round().astype("timedelta64[ns]")
    np.savez(tmp_path / "run.npz", **ARRAYS | {"t": dates})
    found = read_log(tmp_path / "run.npz", arm)
    np.testing.assert_allclose(found.t, T, atol=1e-6)
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: list(array) for name, array in ARRAYS.items() if name != "t"}
    for unit in ("ms", "us", "ns"):
        stamps = {"stamp": pa.array(dates.astype(f"datetime64[{unit}]"))}
        parquet.write_table(pa.table(stamps | columns), tmp_path / "run.parquet")
        np.testing.assert_allclose(read_log(tmp_path / "run.parquet", arm).t, T, atol=1e-6)
    stamps = {"stamp": pa.array([None, *dates[1:]], type=pa.timestamp("ns"))}
    parquet.write_table(pa.table(stamps | columns), tmp_path / "run.parquet")
    with pytest.raises(LogError, match="row 1: column 1"):
        read_log(tmp_path / "run.parquet", arm)


def workbook(path, rows):
    package = pytest.importorskip("openpyxl")
    book = package.Workbook()
    book.create_sheet("notes", 0)["B2"] = "nothing"
    for row in rows:
        book.worksheets[1].append(row)
    book.save(path)


HEADER = ["t [s]", "q1", "q2", "qd1", "qd2", "tau1", "tau2", "remark"]


def test_excel(tmp_path, arm):
    rows = [[*row, "fine, so far"] for row in ALONE.tolist()]
    workbook(tmp_path / "run.xlsx", [HEADER, *rows])
    same(read_log(tmp_path / "run.xlsx", arm))
    rows[7][2] = None
    workbook(tmp_path / "gap.xlsx", [HEADER, *rows])
    with pytest.raises(LogError, match=r"gap\.xlsx, line 9: column 3: expected a number, got an empty cell"):
        read_log(tmp_path / "gap.xlsx", arm)
    assert len(read_log(tmp_path / "gap.xlsx", arm, drop_bad_rows=True)) == 49


def test_dates_in_excel(tmp_path, arm):
    start = datetime.datetime(2024, 5, 6, 10, 59, 59)
    rows = [[start + datetime.timedelta(seconds=float(t)), *row] for t, *row in ALONE.tolist()]
    workbook(tmp_path / "run.xlsx", [HEADER[:-1], *rows])
    log = read_log(tmp_path / "run.xlsx", arm, {"units": {"time": "s"}})
    np.testing.assert_allclose(log.t - log.t[0], T, atol=2e-3)  # openpyxl writes milliseconds


def test_data_frames_in_hdf5(tmp_path, arm):
    """As pandas writes them, without which they are read."""
    package = pytest.importorskip("h5py")
    with package.File(tmp_path / "run.h5", "w") as file:
        file["log/axis0"] = file["log/block0_items"] = np.array(HEADER[:-1], dtype="S")
        file["log/axis1"] = np.arange(50)
        file["log/block0_values"] = ALONE
    same(read_log(tmp_path / "run.h5", arm))


def test_kinds_are_told_by_their_first_bytes(tmp_path, arm):
    for name, write in {"mat": mat, "h5": hdf5, "npz": npz}.items():
        source = tmp_path / f"run.{name}"
        write(source, ARRAYS)
        source.rename(tmp_path / f"{name}.csv")
        same(read_log(tmp_path / f"{name}.csv", arm))
    for ending, said in {
        "mat": "not a MATLAB file, or damaged",
        "h5": "not an HDF5 file, or damaged",
        "xlsx": "not an Excel file, or damaged",
        "bag": "not a rosbag",
        "db3": "not a rosbag",
        "mcap": "not a rosbag",
    }.items():
        (tmp_path / f"text.{ending}").write_text("t,q1,q2,tau1,tau2\n0,1,2,3,4\n")
        with pytest.raises(LogError, match=said):
            read_log(tmp_path / f"text.{ending}", arm)
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(
        LogError, match=r"an Excel file of the old format \(\.xls\); save it as \.xlsx or CSV"
    ):
        read_log(tmp_path / "old.xls", arm)


@pytest.mark.parametrize(
    ("module", "write", "extra"), [("h5py", hdf5, "logs"), ("scipy.io", mat, "identify")]
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, arm, monkeypatch, module, write, extra):
    write(tmp_path / "run.bin", ARRAYS)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(lw.LinkwiseError, match=rf"pip install 'linkwise\[{extra}\]'"):
        read_log(tmp_path / "run.bin", arm)


# -- files that could do harm -----------------------------------------------------------------------------------------


def test_numbers_of_other_files_are_not_read(tmp_path, arm):
    package = pytest.importorskip("h5py")
    hdf5(tmp_path / "other.h5", ARRAYS)
    (tmp_path / "raw.bin").write_bytes(Q.tobytes())
    with package.File(tmp_path / "links.h5", "w") as file:
        file["t"], file["tau"] = T, TAU
        file["q"] = package.ExternalLink(str(tmp_path / "other.h5"), "q")
    with pytest.raises(LogError, match=r"links\.h5: no columns of positions"):
        read_log(tmp_path / "links.h5", arm)
    with package.File(tmp_path / "raw.h5", "w") as file:
        file["t"], file["tau"] = T, TAU
        file.create_dataset(
            "q", shape=Q.shape, dtype="f8", external=[(str(tmp_path / "raw.bin"), 0, Q.nbytes)]
        )
    with pytest.raises(LogError, match=r"raw\.h5: q: its numbers are in other files, which are not read"):
        read_log(tmp_path / "raw.h5", arm)


def test_files_that_claim_or_unpack_to_more_than_is_allowed(tmp_path, monkeypatch):
    package = pytest.importorskip("h5py")
    with package.File(tmp_path / "claims.h5", "w") as file:
        file.create_dataset("q", shape=(1 << 40,), dtype="f8", chunks=(1 << 16,), compression="gzip")
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", "<worksheet>" + " " * (4 << 20))
    mat(tmp_path / "bomb.mat", {"data/q": np.zeros(500_000)})
    monkeypatch.setenv(bounds.VARIABLE, "3")
    for name in ("claims.h5", "bomb.xlsx", "bomb.mat"):
        assert (tmp_path / name).stat().st_size < 1 << 20
        with pytest.raises(
            tables.TableError, match=rf"{name}: unpacked: .* more than the 3 MiB that are allowed"
        ):
            tables.read(tmp_path / name)


def test_rows_of_one_cell_far_to_the_right(tmp_path, monkeypatch):
    rows = "".join(f'<row r="{k}"><c r="XFD{k}"><v>1</v></c></row>' for k in range(1, 400))
    with zipfile.ZipFile(tmp_path / "wide.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet>{rows}</worksheet>")
    monkeypatch.setenv(bounds.VARIABLE, "3")
    with pytest.raises(tables.TableError, match=r"as text: .* more than the 3 MiB that are allowed"):
        tables.read(tmp_path / "wide.xlsx")


def test_long_lines_of_blanks(tmp_path):
    (tmp_path / "run.csv").write_text("t" + " " * 900_000 + "q1\n0 1\n1 (2\n")
    with pytest.raises(tables.TableError, match=r"run\.csv, line 3: column 2: expected a number"):
        tables.read(tmp_path / "run.csv")


def test_entities_of_xml_are_not_expanded(tmp_path):
    lines = "".join(f'<!ENTITY e{k} "&e{k - 1};&e{k - 1};">' for k in range(1, 40))
    head = f'<?xml version="1.0"?><!DOCTYPE w [<!ENTITY e0 "1">{lines}]>'
    with zipfile.ZipFile(tmp_path / "run.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        row = '<row r="1"><c r="A1"><v>&e39;</v></c></row>'
        archive.writestr("xl/worksheets/sheet1.xml", f"{head}<worksheet>{row}</worksheet>")
    with pytest.raises(tables.TableError, match=r"run\.xlsx: not an Excel file, or damaged"):
        tables.read(tmp_path / "run.xlsx")


def spreadsheet(path, arrays):
    workbook(path, [HEADER, *ALONE.tolist()])


@pytest.mark.parametrize(("name", "write"), [*WRITERS.items(), ("run.xlsx", spreadsheet)])
def test_damaged_files_are_refused_in_one_line_or_read(tmp_path, arm, name, write):
    write(tmp_path / name, ARRAYS)
    whole, draw = (tmp_path / name).read_bytes(), random.Random(2)
    for number in range(30):
        data = bytearray(whole)
        if number % 3 == 0:
            data = data[: draw.randrange(1, len(data))]
        for _ in range(draw.randrange(1, 12)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        target = tmp_path / f"damaged{number}.{name.rpartition('.')[2]}"
        target.write_bytes(data)
        try:
            read_log(target, arm, drop_bad_rows=True)
        except LogError as error:
            assert str(target) in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
