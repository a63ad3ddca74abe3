"""Checksums of recordings are compared: a changed number is refused, wherever a format has a checksum for it."""

import importlib.util
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from linkwise.cli import main
from linkwise.files import tables
from linkwise.files.tables import TableError

_path = Path(__file__).parents[2] / "benchmarks" / "damaged_recordings.py"
_spec = importlib.util.spec_from_file_location("damaged_recordings", _path)
files = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = files
_spec.loader.exec_module(files)

VALUE = struct.pack("<d", files.COLUMNS["q1"][7])


def written(tmp_path, name):
    ending, write, _ = files.FORMATS[name]
    write(tmp_path / f"whole{ending}")
    return tmp_path / f"whole{ending}"


@pytest.mark.parametrize(
    "name", ["MCAP with checksums", "Parquet with page checksums", "HDF5 with fletcher32", "NPZ stored"]
)
def test_a_changed_number_is_refused(tmp_path, name):
    pytest.importorskip({"Parquet": "pyarrow", "HDF5": "h5py"}.get(name.split()[0], "numpy"))
    if name == "NPZ stored":
        path = tmp_path / "whole.npz"
        np.savez(path, **files.COLUMNS)
    elif name.startswith("Parquet"):
        import pyarrow
        from pyarrow import parquet

        path = tmp_path / "whole.parquet"
        how = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
        parquet.write_table(pyarrow.table(files.COLUMNS), path, **how)
    else:
        path = written(tmp_path, name)
    tables.read(path)
    data = path.read_bytes()
    place = data.index(VALUE)
    path.write_bytes(data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :])
    if name.startswith(("HDF5", "NPZ")):  # an array is left out, with the reason
        found = tables.read(path)
        assert "q1" in found.unusable
        assert "q1" not in found.names
    else:
        with pytest.raises(TableError, match=str(path)):
            tables.read(path)


def test_what_a_file_says_twice_is_compared_without_checksums(tmp_path):
    """A record of an MCAP file that is skipped, and a value outside the range that a Parquet file states."""
    path = written(tmp_path, "MCAP without checksums")
    data = path.read_bytes()
    place = data.index(struct.pack("<HIQQ", 1, 25, 25, 25))
    path.write_bytes(data[:place] + struct.pack("<H", 9) + data[place + 2 :])
    with pytest.raises(TableError, match="it has 40 messages, and its summary says 40"):
        tables.read(path)
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "values.parquet"
    table = {"t": files.T, "q1": np.linspace(0.0, 1.0, len(files.T))}
    parquet.write_table(
        pytest.importorskip("pyarrow").table(table), path, compression="none", use_dictionary=False
    )
    data, value = path.read_bytes(), struct.pack("<d", table["q1"][7])
    place = data.index(value)
    path.write_bytes(data[:place] + struct.pack("<d", 7.0) + data[place + 8 :])
    with pytest.raises(TableError, match="column 'q1' has values outside of the range"):
        tables.read(path)


@pytest.mark.parametrize("to", ["file", "standard output", "json"])
def test_numbers_that_are_not_finite_are_not_written(tmp_path, capsys, to):
    """The second row is far outside of what can be computed."""
    motion, out = tmp_path / "motion.csv", tmp_path / "out.csv"
    head = "t,q1,q2,qd1,qd2,{}1,{}2\n"
    for command, option, last in (("inverse", "--trajectory", "qdd"), ("forward", "--torques", "tau")):
        motion.write_text(head.format(last, last) + "0,0,0,0,0,0,0\n1,1e29,1e29,1e29,1e29,1,1\n")
        more = {"file": ["--out", str(out)], "json": ["--json"]}.get(to, [])
        assert main([command, "two_link", option, str(motion), *more]) == 2
        told = capsys.readouterr()
        assert not told.out
        assert "row 2" in told.err
        assert "not finite" in told.err
        assert not out.exists()


CHANGED_PARQUET = """
import sys
from pathlib import Path
from linkwise.files import tables
path, whole = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes()
size = int.from_bytes(whole[-8:-4], "little")
for place in range(len(whole) - 8 - size, len(whole) - 8):
    for value in (0, 34, 67):
        path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
        try:
            tables.read(path)
        except tables.TableError:
            pass
print("all were read or refused")
"""


def test_damaged_footers_of_parquet_do_not_end_the_process(tmp_path):
    """PyArrow's own objects of a footer do: an exception of C++ that nothing catches."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "x.parquet"
    table = pyarrow.table({"t": np.arange(9) / 10, "q1": np.arange(9) / 7})
    parquet.write_table(table, path, store_schema=False)
    command = [sys.executable, "-P", "-c", CHANGED_PARQUET, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "all were read or refused\n", done.stderr[-500:]


def test_ranges_and_names_of_parquet_are_compared(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "x.parquet"
    columns = {
        "t": np.arange(20) / 10,
        "q1": np.arange(20, dtype=np.int32),
        "large": np.arange(20, dtype=np.uint32) + np.uint32(2**31),
        "small": np.arange(20, dtype=np.int8) - np.int8(5),
        "single": np.arange(20, dtype=np.float32),
        "q": [[1.0, 2.0]] * 20,
        "missing": [None] * 10 + list(range(10)),
        "text": ["x"] * 20,
        "record": [{"a": 1.0}] * 20,
    }
    for options in ({}, {"row_group_size": 7}, {"data_page_version": "2.0"}, {"write_statistics": False}):
        parquet.write_table(pyarrow.table(columns), path, **options)
        names = tables.read(path).names
        assert names == ("t", "q1", "large", "small", "single", "q1", "q2", "missing")
    data = path.read_bytes()
    last = data.rindex(b"single")
    path.write_bytes(data[:last] + b"sinGle" + data[last + 6 :])
    with pytest.raises(tables.TableError, match=r"columns have two names|not a Parquet file"):
        tables.read(path)


def test_parts_of_hdf5_files_are_those_that_the_file_describes(tmp_path):
    """The library gives zeros for parts that it does not find, and takes parts whose checksum is switched off."""
    package = pytest.importorskip("h5py")
    path, values = tmp_path / "x.h5", np.arange(40) / 7
    with package.File(path, "w") as file:
        file["t"] = np.arange(40) / 100
        for checksums in (False, True):
            whole = file.create_dataset(f"whole{checksums}", (40,), float, chunks=(10,), fletcher32=checksums)
            part = file.create_dataset(f"part{checksums}", (40,), float, chunks=(10,), fletcher32=checksums)
            whole[:], part[:20] = values, values[:20]
        bare = file.create_dataset("bare", (40,), float, chunks=(40,), fletcher32=True)
        bare.id.write_direct_chunk((0,), values.tobytes(), filter_mask=1)
        file.create_dataset(
            "packed", data=values, chunks=(7,), compression="gzip", shuffle=True, fletcher32=True
        )
        odd = package.h5t.IEEE_F64LE.copy()
        odd.set_ebias(1000)  # as a changed bit in the description of the numbers
        package.h5d.create(file.id, b"odd", odd, package.h5s.create_simple((40,))).write(
            package.h5s.ALL, package.h5s.ALL, values
        )
    found = tables.read(path)
    assert sorted(found.names) == ["packed", "t", "wholeFalse", "wholeTrue"]
    reasons = {
        "partFalse": "2 of 4 parts", "partTrue": "2 of 4 parts", "bare": "size of a part", "odd": "usually is",
    }  # fmt: skip
    assert set(found.unusable) == set(reasons)
    for name, reason in reasons.items():
        assert reason in found.unusable[name], name
