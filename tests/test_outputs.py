"""Outputs go where they were sent, and nowhere else: files, links, devices, pipes, protected files, signals."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import linkwise as lw
from linkwise.files import outputs

SOURCES = str(Path(lw.__file__).parent.parent)
LINKWISE = [sys.executable, "-m", "linkwise"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCES}
QUINTIC = ["--trajectory", "quintic", "--to", "1,1", "--points", "3"]


@pytest.fixture(params=["unnamed", "named"])
def way(request, monkeypatch):
    """Both ways to write aside: with unnamed files, and on file systems that have none."""
    if request.param == "named":
        usual = os.open

        def without_unnamed_files(path, flags, *rest, **options):
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "Operation not supported")
            return usual(path, flags, *rest, **options)

        monkeypatch.setattr(os, "open", without_unnamed_files)
    return request.param


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# -- regular files -----------------------------------------------------------------------------------------------------


def test_new_files_and_old_ones(tmp_path, way):
    target = tmp_path / "out.txt"
    assert outputs.write(target, "é") == 2
    assert target.read_bytes() == "é".encode()
    mask = os.umask(0o027)
    try:
        outputs.write(tmp_path / "masked", b"x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "masked").stat().st_mode) == 0o640
    target.chmod(0o640)
    outputs.write(target, b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert names(tmp_path) == ["masked", "out.txt"]


def test_links_are_followed_and_stay(tmp_path, way):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to("there/link")
    (tmp_path / "there" / "link").symlink_to("file")
    outputs.write(tmp_path / "here", "new")  # a link that leads nowhere yet
    outputs.write(tmp_path / "here", "newer")
    assert (tmp_path / "here").is_symlink()
    assert (tmp_path / "there" / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "newer"
    assert not (tmp_path / "there" / "file").is_symlink()
    assert names(tmp_path / "there") == ["file", "link"]


def test_a_link_to_a_folder_and_back(tmp_path):
    (tmp_path / "there" / "deep").mkdir(parents=True)
    (tmp_path / "short").symlink_to("there/deep")
    (tmp_path / "there" / "deep" / "up").symlink_to("../file")
    outputs.write(tmp_path / "short" / "up", "x")
    assert (tmp_path / "there" / "file").read_text() == "x"
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(outputs.OutputError, match="round: cannot be written: Too many levels"):
        outputs.write(tmp_path / "round", "x")


@pytest.mark.parametrize("mode", [0o444, 0o400, 0o000])
def test_a_file_without_write_permission_is_refused(tmp_path, mode, way):
    """For root as well, who could."""
    target = tmp_path / "kept.toml"
    target.write_text("old")
    target.chmod(mode)
    (tmp_path / "link.toml").symlink_to(target)
    for path in (target, tmp_path / "link.toml"):
        with pytest.raises(
            outputs.OutputError, match=r"\.toml: cannot be written: no permission to write it"
        ):
            outputs.write(path, "new")
        with pytest.raises(lw.ModelError, match="no permission"):
            lw.save(lw.load("two_link"), path)
        with pytest.raises(outputs.OutputError):
            outputs.check(path)
    target.chmod(0o600)
    assert target.read_text() == "old"
    assert names(tmp_path) == ["kept.toml", "link.toml"]


def test_owner_and_group_are_kept(tmp_path, way):
    if os.geteuid():
        pytest.skip("only root can give files away")
    target = tmp_path / "theirs"
    target.write_text("old")
    os.chown(target, 1234, 1235)
    target.chmod(0o644)
    outputs.write(target, "new")
    status = target.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 1235, 0o644)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, way, monkeypatch):
    target = tmp_path / "kept"
    target.write_text("old")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("write", "fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(outputs.OutputError, match="kept: cannot be written: No space left") as caught:
                outputs.write(target, "new")
        assert caught.value.errno == errno.ENOSPC
        assert isinstance(caught.value, lw.LinkwiseError)
        assert target.read_text() == "old"
        assert names(tmp_path) == ["kept"]
    half = outputs.Output(target)
    half.write(b"half")
    half.drop()
    half.drop()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["kept"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "an empty path"),
        ("no/file", "no such folder as"),
        ("no/../../file/x", "no such folder as"),
        (".", "a folder"),
        ("new/", "a folder"),
        ("a\0b", "null"),
        ("x" * 300, "File name too long"),
    ],
)
def test_paths_that_cannot_be_written(tmp_path, monkeypatch, path, reason):
    monkeypatch.chdir(tmp_path)
    for act in (lambda: outputs.write(path, "x"), lambda: outputs.check(path)):
        with pytest.raises(outputs.OutputError, match=reason):
            act()
    assert names(tmp_path) == []


def test_no_descriptor_stays_open(tmp_path, way):
    outputs.write(tmp_path / "first", "x")
    before = len(os.listdir("/proc/self/fd"))
    for k in range(5):
        outputs.write(tmp_path / f"{k}", "x")
        outputs.Output(tmp_path / f"{k}").drop()
        with pytest.raises(outputs.OutputError):
            outputs.write(tmp_path / "no" / "file", "x")
    outputs.write("/dev/null", "x")
    assert len(os.listdir("/proc/self/fd")) == before


# -- devices and pipes -------------------------------------------------------------------------------------------------


def null_device(folder: Path) -> Path:
    """A null device of our own, so that a failure does no harm."""
    path = folder / "null.urdf"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        path.write_bytes(b"")
    except OSError:
        pytest.skip("no device can be made here")
    return path


def test_a_character_device_stays_one(tmp_path):
    device = null_device(tmp_path)
    link = tmp_path / "link.urdf"
    link.symlink_to(device)
    for path in (device, link):
        assert outputs.write(path, "x") == 1
        lw.save(lw.load("two_link"), path)
    table = tmp_path / "table.csv"
    table.symlink_to(device)
    run = subprocess.run([*LINKWISE, "inverse", "two_link", *QUINTIC, "--out", table], env=ENVIRONMENT)
    assert run.returncode == 0
    assert stat.S_ISCHR(device.lstat().st_mode)
    assert link.is_symlink()
    assert table.is_symlink()
    assert names(tmp_path) == ["link.urdf", "null.urdf", "table.csv"]


def test_a_full_device_is_an_error():
    if not Path("/dev/full").is_char_device():
        pytest.skip("no /dev/full")
    with pytest.raises(outputs.OutputError, match="/dev/full: cannot be written: No space left"):
        outputs.write("/dev/full", "x")


def test_a_block_device_is_refused(tmp_path):
    path = tmp_path / "disk"
    try:
        os.mknod(path, 0o666 | stat.S_IFBLK, os.makedev(7, 250))
    except OSError:
        pytest.skip("no device can be made here")
    with pytest.raises(outputs.OutputError, match="disk: cannot be written: a block device"):
        outputs.write(path, "x")


def test_a_fifo_gets_the_bytes(tmp_path):
    fifo = tmp_path / "pipe.toml"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    lw.save(lw.load("two_link"), fifo)
    reader.join(timeout=120)
    lw.save(lw.load("two_link"), tmp_path / "file.toml")
    assert got == [(tmp_path / "file.toml").read_bytes()]
    assert fifo.is_fifo()


def command(line: str, **options) -> subprocess.CompletedProcess:
    """A command line as a person types it into bash."""
    program = " ".join(LINKWISE)
    return subprocess.run(
        ["bash", "-c", line.replace("linkwise", program)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


INVERSE = "linkwise inverse two_link --trajectory quintic --to 1,1 --points 3"


@pytest.mark.parametrize("where", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"])
def test_standard_output_has_the_table_and_nothing_else(tmp_path, where):
    table = command(INVERSE).stdout
    piped = command(f"{INVERSE} --out {where} | cat")
    assert piped.stdout == table
    assert "Torques of" in piped.stderr
    redirected = command(
        f"echo before > all; {INVERSE} --out {where} >> all; echo after >> all", cwd=tmp_path
    )
    assert redirected.returncode == 0
    assert (tmp_path / "all").read_text() == f"before\n{table}after\n"
    assert names(tmp_path) == ["all"]


def test_process_substitution_and_other_descriptors(tmp_path):
    table = command(INVERSE).stdout
    run = command(
        f"{INVERSE} --out >(cat > copy; echo done > flag); while [ ! -e flag ]; do sleep 0.05; done",
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "copy").read_text() == table
    command(f"{INVERSE} --out /dev/fd/7 7> seven", cwd=tmp_path)
    assert (tmp_path / "seven").read_text() == table
    assert "not open for writing" in command(f"{INVERSE} --out /dev/fd/7 7< seven", cwd=tmp_path).stderr
    page = command(f"{INVERSE} --report /dev/stdout | head -c 15")
    assert page.stdout == "<!DOCTYPE html>"
    both = command(f"{INVERSE} --out - --json")
    assert both.returncode == 2
    assert "standard output" in both.stderr


def test_every_output_is_checked_before_the_work(tmp_path):
    for line in (
        f"{INVERSE} --report no/page.html",
        "linkwise simulate two_link --to 1,1 --out no/table.csv",
        "linkwise excite two_link --out no/table.csv",
        "linkwise generate two_link pose --out no/code.c",
        "linkwise identify two_link missing.csv --code no/code.c",
    ):
        run = command(line, cwd=tmp_path)
        assert (run.returncode, run.stdout) == (2, "")
        assert "no such folder as" in run.stderr
        assert run.stderr.count("\n") == 1


# -- signals -----------------------------------------------------------------------------------------------------------

WRITER = """
import errno, os, sys, time
from linkwise.files import outputs
if sys.argv[2] == "named":
    usual = os.open
    def without(path, flags, *rest, **options):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return usual(path, flags, *rest, **options)
    os.open = without
output = outputs.Output(sys.argv[1])
print("begun", flush=True)
end = time.monotonic() + 60  # nothing is written for ever where signals are ignored
try:
    while time.monotonic() < end:
        output.write(bytes(1000))
except KeyboardInterrupt:
    output.drop()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("kind", ["unnamed", "named"])
def test_a_signal_leaves_nothing_behind(tmp_path, number, kind):
    target = tmp_path / "out"
    target.write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, target, kind],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(number)
    process.communicate(timeout=30)
    if number is not signal.SIGINT:
        assert process.returncode == -number  # it ended as a process without our handlers does
    if (
        kind == "unnamed" or number is not signal.SIGINT
    ):  # Python's own handler of SIGINT unwinds nothing here
        assert names(tmp_path) == ["out"]
    assert target.read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_ends_through_its_finally_blocks(tmp_path, number):
    code = """
import sys, tempfile, time, click
from linkwise.cli import app
@click.command()
def wait():
    with tempfile.TemporaryDirectory(dir=sys.argv[1]):
        print("begun", flush=True)
        time.sleep(60)
app.linkwise = wait
sys.exit(app.run([]))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (128 + number, b"")
    assert names(tmp_path) == []


def test_a_study_says_how_to_go_on(tmp_path):
    (tmp_path / "study.toml").write_text(
        'robot = "two_link"\nsamples = 50_000_000\n[vary]\nq = { uniform = [-1.0, 1.0] }\n'
        '[compute]\ng = { function = "gravity_torques" }\n[keep]\ng = ["mean"]\n'
    )
    pytest.importorskip("zarr")
    process = subprocess.Popen(
        [*LINKWISE, "study", "study.toml", "--out", "store"],
        env=ENVIRONMENT,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    sizes: set[int] = set()  # of the journal, which grows with every chunk
    while process.poll() is None and len(sizes) < 4:
        sizes.update(path.stat().st_size for path in tmp_path.glob("store/journal*"))
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert said.splitlines()[-1].startswith("linkwise: terminated; nothing that was done is lost")
    assert names(tmp_path) == ["store", "study.toml"]


def test_a_command_in_compiled_code_ends_soon():
    code = """
import ctypes, sys, click
from linkwise.cli import app
from linkwise.cli.support import ending
ending.GRACE = 0.2
@click.command()
def wait():
    libc = ctypes.CDLL(None)
    lock = (ctypes.c_char * 64)()
    libc.pthread_mutex_lock(lock)
    print("begun", flush=True)
    libc.pthread_mutex_lock(lock)  # waits for ever, and signals do not interrupt it
app.linkwise = wait
sys.exit(app.run([]))
"""
    process = subprocess.Popen([sys.executable, "-c", code], env=ENVIRONMENT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


# -- closed and full standard streams ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("linkwise info two_link >&-", "Bad file descriptor"),
        ("linkwise info two_link --json >&-", "Bad file descriptor"),
        ("linkwise --help >&-", "Bad file descriptor"),
        ("linkwise robots > /dev/full", "No space left on device"),
        (INVERSE + " > /dev/full", "No space left on device"),
    ],
)
def test_standard_output_that_takes_nothing(line, reason):
    run = command(line)
    assert run.returncode == 2
    assert run.stderr == f"linkwise: standard output: {reason}\n"


def test_closed_streams_are_not_taken_by_files(tmp_path):
    run = command(f"{INVERSE} --out table.csv <&- 2>&-; cat table.csv", cwd=tmp_path)
    assert run.stdout.count("\n") > 4
    assert (tmp_path / "table.csv").read_text() == command(INVERSE).stdout
    assert command("linkwise inverse two_link --trajectory - <&-").returncode == 2
