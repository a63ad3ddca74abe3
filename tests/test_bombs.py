"""Small files that stand for much: each is read in a process with little memory and time, and refused in words."""

import bz2
import contextlib
import io
import json
import os
import sqlite3
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import LinkwiseError
from linkwise.files import tables
from linkwise.files.settings import MOST_PARTS, parse_toml

MEMORY = 400  # MiB that reading one file may take
SECONDS = 20  # of processor time

DRIVER = """
import json, os, resource, sys, warnings
from pathlib import Path
import numpy
import linkwise as lw
from linkwise.files import tables
from linkwise.errors import LinkwiseError
from linkwise.geometry.meshes import read_mesh
import scipy.io, h5py, pyarrow.parquet, trimesh, zstandard, lz4.frame

warnings.simplefilter("ignore")
memory, seconds = int(sys.argv[2]) << 20, int(sys.argv[3])

def attack(path):
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + memory,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    kind = path.suffix
    try:
        if path.parent.name == "meshes":
            read_mesh(path.read_bytes(), kind, str(path))
        elif path.parent.name == "robots":
            lw.load(path)
        else:
            tables.read(path)
    except LinkwiseError as error:
        return ["refused", str(error)]
    except BaseException as error:
        return [type(error).__name__, str(error)]
    return ["read", ""]

for path in sorted(Path(sys.argv[1]).rglob("*.*")):
    if not path.is_file():
        continue
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, json.dumps(attack(path))[:60000].encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as answer:
        said = answer.read()
    status = os.waitpid(child, 0)[1]
    print(json.dumps([path.name, *(json.loads(said) if said else ["died", str(status)])]), flush=True)
"""


def npy(shape, content: bytes) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def zipped(method: int, names: list[str], size: int) -> bytes:
    """An NPZ file of arrays of zeros, ``size`` numbers each."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(npy((size,), b""))
                for _ in range(size // 2**20):
                    file.write(bytes(8 * 2**20))
    return stream.getvalue()


def field(name: bytes, value: bytes) -> bytes:
    return struct.pack("<I", len(name) + 1 + len(value)) + name + b"=" + value


def record(kind: bytes, data: bytes, **more: bytes) -> bytes:
    head = field(b"op", kind) + b"".join(field(name.encode(), value) for name, value in more.items())
    return struct.pack("<I", len(head)) + head + struct.pack("<I", len(data)) + data


def bag(levels: int) -> bytes:
    """A rosbag of version 1 with a chunk of zeros in a chunk in a chunk."""
    data = bz2.compress(bytes(100 << 20)) if levels == 1 else bytes(0)
    if levels > 1:
        inside = b"".join(record(b"\x03", bytes(1 << 20)) for _ in range(20))
        for _ in range(levels):
            inside = record(b"\x05", bz2.compress(inside), compression=b"bz2") * 20
        return b"#ROSBAG V2.0\n" + inside
    return b"#ROSBAG V2.0\n" + record(b"\x05", data, compression=b"bz2")


def mcap(method: str, packed: bytes, declared: int) -> bytes:
    chunk = struct.pack("<QQQI", 0, 0, declared, 0) + struct.pack("<I", len(method)) + method.encode()
    chunk += struct.pack("<Q", len(packed)) + packed
    return b"\x89MCAP0\r\n" + b"\x06" + struct.pack("<Q", len(chunk)) + chunk


def replicated(depth: int, count: int) -> str:
    opened, closed = f'<replicate count="{count}">' * depth, "</replicate>" * depth
    return f'<mujoco><worldbody>{opened}<body><joint/><geom size="1"/></body>{closed}</worldbody></mujoco>'


def mat_cell(count: int) -> bytes:
    """A MATLAB file with a cell array that says it has many cells."""
    flags = struct.pack("<IIII", 6, 8, 1, 0)
    shape = struct.pack("<IIii", 5, 8, 1, count)
    name = struct.pack("<HH4s", 1, 1, b"c\0\0\0")
    body = flags + shape + name
    head = b"MATLAB 5.0".ljust(124, b" ") + struct.pack("<H2s", 0x0100, b"IM")
    return head + struct.pack("<II", 14, len(body)) + body


def files(folder: Path) -> None:
    """All attacks; a file in ``robots`` is loaded, one in ``meshes`` drawn, others are tables."""
    import h5py
    import pyarrow as pa
    import pyarrow.parquet as parquet
    import zstandard

    for name in ("robots", "meshes", "tables"):
        (folder / name).mkdir()
    robots, meshes, logs = folder / "robots", folder / "meshes", folder / "tables"
    robots.joinpath("replicate.xml").write_text(replicated(5, 1000))
    robots.joinpath("replicate_wide.xml").write_text(replicated(2, 9000))
    robots.joinpath("dotted.toml").write_text(".".join("a" * 200_000) + " = 1\n")
    robots.joinpath("dotted_table.toml").write_text("[" + ".".join("a" * 200_000) + "]\n")
    robots.joinpath("dotted_inline.toml").write_text("x = { " + ".".join("a" * 200_000) + " = 1 }\n")
    robots.joinpath("nested.toml").write_text("x = " + "[" * 100_000)
    robots.joinpath("deep.urdf").write_text("<robot>" + "<link>" * 100_000)
    size = " ".join(["1"] * 200_000)
    classes = "".join(f'<default class="c{k}"><geom size="1"/></default>' for k in range(3000))
    robots.joinpath("classes.xml").write_text(
        f'<mujoco><default><geom size="{size}"/>{classes}</default><worldbody/></mujoco>'
    )
    deep = "<body>" * 240
    for k in range(90):
        more = f'<include file="i{k + 1}"/>' if k < 89 else ""
        text = f"<mujocoinclude>{deep}{more}{'</body>' * 240}</mujocoinclude>"
        robots.joinpath(f"i{k}").write_text(text)  # without an ending: it is no file to be read by itself
    robots.joinpath("includes.xml").write_text('<mujoco><worldbody><include file="i0"/></worldbody></mujoco>')

    stl = b"\0" * 80 + struct.pack("<I", 0xFFFFFFFF)
    meshes.joinpath("count.stl").write_bytes(stl)
    ply = "ply\nformat {}\nelement vertex 4000000000\nproperty float x\nproperty float y\nproperty float z\n"
    ply += "element face 4000000000\nproperty list uchar int vertex_indices\nend_header\n"
    meshes.joinpath("ascii.ply").write_text(ply.format("ascii 1.0"))
    meshes.joinpath("binary.ply").write_text(ply.format("binary_little_endian 1.0"))
    scene = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"componentType": 5126, "count": 2_000_000_000, "type": "VEC3"},
            {"componentType": 5125, "count": 2_000_000_000, "type": "SCALAR"},
        ],
        "bufferViews": [],
        "buffers": [],
    }
    text = json.dumps(scene).encode()
    text += b" " * (-len(text) % 4)
    glb = struct.pack("<4sII", b"glTF", 2, 20 + len(text)) + struct.pack("<I4s", len(text), b"JSON") + text
    meshes.joinpath("accessor.glb").write_bytes(glb)
    geometry = (
        '<geometry id="g"><mesh><source id="s"><float_array>0 0 0 1 0 0 0 1 0</float_array></source>'
        '<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>{}</mesh></geometry>'
    )
    polygons = '<polylist><input semantic="VERTEX" source="#v" offset="0"/><vcount>{}</vcount><p>0 1 2</p></polylist>'
    collada = "<COLLADA><library_geometries>{}</library_geometries>{}</COLLADA>"
    meshes.joinpath("vcount.dae").write_text(collada.format(geometry.format(polygons.format(2**40)), ""))
    many = (
        '<triangles><input semantic="VERTEX" source="#v" offset="0"/><p>'
        + "0 1 2 " * 20_000
        + "</p></triangles>"
    )
    nodes = '<node><instance_geometry url="#g"/></node>' * 9000
    visual = f'<library_visual_scenes><visual_scene id="z">{nodes}</visual_scene></library_visual_scenes>'
    visual += '<scene><instance_visual_scene url="#z"/></scene>'
    meshes.joinpath("instances.dae").write_text(collada.format(geometry.format(many), visual))

    logs.joinpath("deflated.npz").write_bytes(zipped(zipfile.ZIP_DEFLATED, ["q"], 12 << 20))
    logs.joinpath("many.npz").write_bytes(zipped(zipfile.ZIP_DEFLATED, [f"q{k}" for k in range(12)], 1 << 20))
    logs.joinpath("packed.bag").write_bytes(bag(1))
    logs.joinpath("nested.bag").write_bytes(bag(3))
    logs.joinpath("declared.bag").write_bytes(b"#ROSBAG V2.0\n" + struct.pack("<I", 1 << 29))
    zeros = bytes(100 << 20)
    logs.joinpath("zstd.mcap").write_bytes(
        mcap("zstd", zstandard.ZstdCompressor().compress(zeros), len(zeros))
    )
    logs.joinpath("declared.mcap").write_bytes(b"\x89MCAP0\r\n\x03" + struct.pack("<Q", 1 << 29))
    parquet.write_table(pa.table({"q": np.zeros(12 << 20)}), logs / "constant.parquet", compression="zstd")
    with h5py.File(logs / "unwritten.h5", "w") as file:
        file.create_dataset("q", (60 << 20,), "f8", chunks=(1 << 20,))
    logs.joinpath("cells.mat").write_bytes(mat_cell(2**31 - 1))
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("xl/worksheets/s1.xml", "w") as sheet,
    ):
        for _ in range(80):
            sheet.write(b" " * (1 << 20))
    logs.joinpath("blank.xlsx").write_bytes(stream.getvalue())
    more_tables(logs)
    joint = "<joint name='j' type='fixed'><parent link='a'/><child link='b'/><origin xyz='{}'/></joint>"
    robots.joinpath("numbers.urdf").write_text(
        f"<robot name='x'><link name='a'/><link name='b'/>{joint.format('1 ' * 300_000)}</robot>"
    )
    links = "".join(f"<link name='l{k}'/>" for k in range(10_000))
    robots.joinpath("roots.urdf").write_text(f"<robot name='x'>{links}</robot>")


def element(kind: int, data: bytes) -> bytes:
    """An element of a MATLAB file."""
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(kind: int, shape: tuple[int, ...], name: bytes, content: bytes) -> bytes:
    """An array of a MATLAB file: 1 are cells, 2 structs."""
    head = element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack(f"<{len(shape)}i", *shape))
    return element(14, head + element(1, name) + content)


def more_tables(logs: Path) -> None:
    """Sizes inside of what was looked at first: cells in structs, chunks, shared texts, computed columns."""
    import h5py

    head = b"MATLAB 5.0".ljust(124, b" ") + struct.pack("<H2s", 0x0100, b"IM")
    cells = matrix(1, (1, 2**31 - 1), b"", b"")
    field = element(5, struct.pack("<i", 8)) + element(1, b"f".ljust(8, b"\0"))
    logs.joinpath("struct.mat").write_bytes(head + matrix(2, (1, 1), b"s", field + cells))
    balanced = matrix(1, (1, -(2**31)), b"", b"") + cells
    logs.joinpath("balanced.mat").write_bytes(head + matrix(1, (1, 2), b"c", balanced))
    packed = zlib.compress(matrix(1, (1, 1), b"c", cells))
    logs.joinpath("packed.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    deep = b""
    for _ in range(200):
        deep = matrix(1, (1, 1), b"c", deep)
    logs.joinpath("deep.mat").write_bytes(head + deep)
    with h5py.File(logs / "chunk.h5", "w") as file:
        file.create_dataset("q", (1,), "f8", maxshape=(None,), chunks=(1 << 26,), compression="gzip")[0] = 1.0
    cell = '<row><c t="s"><v>0</v></c></row>'
    last = '<row><c r="XFD1"><v>0</v></c></row>'
    for name, rows in {"shared.xlsx": 100 * cell, "wide.xlsx": 5000 * last}.items():
        with zipfile.ZipFile(logs / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/sharedStrings.xml", f"<sst><si><t>{'a' * 1_000_000}</t></si></sst>")
            archive.writestr(
                "xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{rows}</sheetData></worksheet>"
            )
    columns = "id INTEGER PRIMARY KEY, topic_id, timestamp"
    count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3000) SELECT x, 1, x FROM c"
    for name, data in {"computed.db3": "data AS (zeroblob(60000000))", "index.db3": "data"}.items():
        with contextlib.closing(sqlite3.connect(logs / name)) as base:
            base.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name, type)")
            base.execute("INSERT INTO topics VALUES (1, '/j', 'sensor_msgs/msg/JointState')")
            base.execute(f"CREATE TABLE messages({columns}, {data})")
            base.execute(f"INSERT INTO messages(id, topic_id, timestamp) {count}")
            if name == "index.db3":
                base.execute("CREATE INDEX i ON messages(length(data))")
                slow = "CREATE INDEX i ON messages(length(hex(zeroblob(30000000)) || data))"
                base.execute("PRAGMA writable_schema=ON")
                base.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'i'", (slow,))
            base.commit()


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, list[str]]:
    """What came of every file."""
    folder = tmp_path_factory.mktemp("bombs")
    files(folder)
    assert max(path.stat().st_size for path in folder.rglob("*.*")) < 3 << 20
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER, str(folder), str(MEMORY), str(SECONDS)],
        capture_output=True,
        text=True,
        env={name: text for name, text in os.environ.items() if name != "LINKWISE_TABLE_LIMIT"},
    )
    assert done.returncode == 0, done.stderr
    return {
        row[0]: row[1:] for row in map(json.loads, done.stdout.splitlines()) if not row[0].endswith(".mjcf")
    }


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_bombs_are_refused_before_memory_is_taken(answers):
    assert len(answers) > 25
    for name, (outcome, message) in answers.items():
        assert outcome == "refused", (name, outcome, message)
        assert name in message or "line" in message, message
        assert "memory" not in message, (name, message)
        assert len(message) < 5000, name


def test_limits_say_how_to_raise_them(answers):
    for name in ("deflated.npz", "packed.bag", "zstd.mcap", "constant.parquet", "unwritten.h5", "blank.xlsx"):
        assert "LINKWISE_TABLE_LIMIT" in answers[name][1]
    assert "100000 are read" in answers["replicate.xml"][1]


def test_the_variable_raises_the_limit(tmp_path, monkeypatch):
    """A file of few numbers that packs well is read; so is a larger one once the limit is set."""
    path = tmp_path / "x.npz"
    np.savez_compressed(path, t=np.arange(1 << 16) / 1000, q1=np.zeros(1 << 16))
    assert len(tables.read(path).values) == 1 << 16
    path.write_bytes(zipped(zipfile.ZIP_DEFLATED, ["q1"], 9 << 20))
    with pytest.raises(LinkwiseError, match="LINKWISE_TABLE_LIMIT"):
        tables.read(path)
    monkeypatch.setenv("LINKWISE_TABLE_LIMIT", "200")
    assert len(tables.read(path).values) == 9 << 20


def test_names_of_columns_come_from_the_file_itself(tmp_path):
    """Names of a data frame beside its values: not those that are in another file, and not gigabytes."""
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret").write_bytes(b"rootpassword")
    path = tmp_path / "frame.h5"
    for options in (
        {"data": np.array([b"t", b"q1"])},
        {"shape": (2,), "dtype": "S6", "external": [(str(tmp_path / "secret"), 0, 12)]},
        {"shape": (2,), "dtype": "S2000000000", "chunks": (1,), "compression": "gzip"},
    ):
        with h5py.File(path, "w") as file:
            file.create_dataset("block0_items", **options)
            file.create_dataset("block0_values", data=np.ones((3, 2)))
        names = str(tables.read(path).names)
        assert "root" not in names
        assert ("q1" in names) == ("data" in options)


def test_parts_of_keys_are_counted_outside_of_strings():
    words = ".".join("a" * 50)
    fine = f'x = "{words}"\ny = \'{words}\'\n# {words}\nz = """\n{words}\n"""\nw = [1.5, {"0.25, " * 50}]\n'
    fine += f"{'.'.join('b' * MOST_PARTS)} = 1.5\n"
    assert parse_toml(fine.encode(), "x", LinkwiseError)["y"] == words
    for key in (words, words.replace(".", " . "), '"q".' * 50 + "b", "'q'." * 50 + "b"):
        for text in (
            f"{key} = 1",
            f"[{key}]",
            f"[[{key}]]",
            f"x = {{ {key} = 1 }}",
            f'n = """x"""\n{key} = 1',
        ):
            with pytest.raises(LinkwiseError, match=f"more than {MOST_PARTS} parts"):
                parse_toml(text.encode(), "x", LinkwiseError)


def test_copies_up_to_the_limit_are_read(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(replicated(2, 6).replace("<geom", '<geom mass="1"'))
    assert lw.load(path).dof == 36
