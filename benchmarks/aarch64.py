"""The test suite on Linux for AArch64, under QEMU: an interpreter from Debian's packages, wheels for that processor.

    python benchmarks/aarch64.py [--cpu cortex-a72] [--jobs 2] [--root build/aarch64] [--dry-run] [TESTS ...]
    python benchmarks/aarch64.py --summary

Needs ``qemu-aarch64``, Debian's ``gcc`` and ``g++`` for AArch64 and a Debian system (``apt-get``, ``dpkg-deb``);
nothing is installed there. Programs that tests compile and start need the kernel to know QEMU (Debian's
``qemu-user-binfmt``).

QEMU is about fifteen times slower than the machine itself, so the suite takes hours. Each file of tests is a process
of its own whose output is kept under ``ROOT/results-CPU``; a file that passed is not run again (delete its output to
do so), so a run that was stopped goes on where it was. Files whose tests run machine code come first. ``--cpu
max,sve256=on,sve512=off`` tests SVE registers of 256 bits.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEBIAN = (
    *(
        "python3.11-minimal",
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        "libc6",
        "libgcc-s1",
        "libstdc++6",
    ),
    *("zlib1g", "libexpat1", "libssl3", "libffi8", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1"),
    *("libgomp1", "media-types"),
)
WHEELS = (
    *(
        "numpy",
        "llvmlite",
        "defusedxml",
        "click",
        "rich",
        "scipy",
        "clarabel",
        "sympy",
        "matplotlib",
        "viser",
    ),
    *("pytest", "hypothesis", "threadpoolctl", "mpmath", "cryptography", "selenium", "pin", "mujoco", "fmpy"),
    *("h5py", "lz4", "zstandard", "openpyxl", "rosbags", "dask", "distributed", "zarr", "xarray", "pyarrow"),
)
PLATFORMS = (
    "manylinux_2_28_aarch64",
    "manylinux_2_27_aarch64",
    "manylinux_2_17_aarch64",
    "manylinux2014_aarch64",
)

# What depends on the processor, first; then the other arithmetic; the rest in the order of its names.
FIRST = ("compiler", "embedded", "test_system", "test_checked_calls", "test_sweeps", "test_moving_sweeps")
SECOND = (
    "algorithms",
    "control",
    "simulate",
    "realtime",
    "motion",
    "collision",
    "geometry",
    "gpu",
    "model",
    "test_",
)
LAST = ("test_docs", "test_examples", "test_benchmarks", "test_readme", "study", "view", "cli", "report")
# Other programs of their own: packages of x86 alone, or a browser.
NOT_HERE = ("frameworks",)

STARTER = """#!/bin/sh
# The interpreter under QEMU as one program, so that tests can start it by the name in sys.executable.
exec qemu-aarch64 -cpu {cpu} -L {system} {python} "$@"
"""
SITE = """import os, sys
sys.executable = sys._base_executable = os.environ["LINKWISE_AARCH64_PYTHON"]
sys.path.append(os.path.join(os.path.dirname(__file__), "cmeel.prefix", "lib", "python3.11", "site-packages"))
"""
COMPILERS = {
    "gcc": "aarch64-linux-gnu-gcc",
    "cc": "aarch64-linux-gnu-gcc",
    "g++": "aarch64-linux-gnu-g++",
    "clang": "/usr/bin/clang --target=aarch64-linux-gnu",
}
# Cross compilers do not know the processor on which their programs will run.
COMPILER = """#!/bin/sh
for argument; do
    shift
    [ "$argument" = -march=native ] && argument=-march=armv8-a
    set -- "$@" "$argument"
done
exec {command} "$@"
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", nargs="*", help="files or folders of tests; all without it")
    parser.add_argument("--cpu", default="cortex-a72", help="the processor that QEMU emulates")
    parser.add_argument("--jobs", type=int, default=1, help="how many files are run at a time")
    parser.add_argument("--root", type=Path, default=ROOT / "build" / "aarch64", help="where it is unpacked")
    parser.add_argument("--summary", action="store_true", help="only print what the runs so far gave")
    parser.add_argument("--dry-run", action="store_true", help="only print which files would be run")
    given = parser.parse_args()
    root = given.root.resolve()
    results = root / f"results-{given.cpu}"
    files = chosen(given.tests)
    if given.summary:
        return summary(files, results)
    if given.dry_run:
        print("\n".join(name for name in files if not passed(results, name)))
        return 0
    if shutil.which("qemu-aarch64") is None:
        raise SystemExit("qemu-aarch64 is not here: apt-get install qemu-user")
    if not (root / "site").exists():
        unpack_system(root)
        unpack_wheels(root)
    environment = prepared(root, given.cpu)
    results.mkdir(exist_ok=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        left = [name for name in files if not passed(results, name)]
        for name, line in zip(
            left, pool.map(lambda name: run(name, results, environment), left), strict=True
        ):
            print(f"{name}: {line}", flush=True)
    return summary(files, results)


def chosen(tests: list[str]) -> list[str]:
    """The files of tests in the order in which they are run."""
    asked = [ROOT / name for name in tests] or [ROOT / "tests"]
    found = {path for name in asked for path in ([name] if name.is_file() else name.rglob("test_*.py"))}
    names = [str(path.relative_to(ROOT)) for path in found]
    names = [name for name in names if not any(f"tests/{part}" in name for part in NOT_HERE)]

    def order(name: str) -> tuple[int, str]:
        groups = (FIRST, LAST, SECOND)
        for group, place in zip(groups, (0, 3, 1), strict=True):
            if any(name.startswith(f"tests/{part}") for part in group):
                return place, name
        return 2, name

    return sorted(names, key=order)


def run(name: str, results: Path, environment: dict[str, str]) -> str:
    """One file of tests; its last line. The output gets its name when it is complete."""
    command = [
        environment["LINKWISE_AARCH64_PYTHON"],
        "-m",
        "pytest",
        "-q",
        "-rfEs",
        "-p",
        "no:cacheprovider",
        name,
    ]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    output = results / (name.replace("/", "-") + ".txt")
    unfinished = output.with_suffix(".part")
    with unfinished.open("w") as file:
        file.write(f"commit {commit.stdout.strip()}\n")
        file.flush()
        subprocess.run(command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, check=False)
    unfinished.replace(output)
    return output.read_text(errors="replace").rstrip().rsplit("\n", 1)[-1]


def counted(results: Path, name: str) -> Counter[str]:
    """Numbers of tests of a file by outcome; empty where it was not run to its end."""
    output = results / (name.replace("/", "-") + ".txt")
    if not output.exists():
        return Counter()
    last = output.read_text(errors="replace").rstrip().rsplit("\n", 1)[-1]
    counts = Counter(
        {
            word.rstrip("s"): int(number)
            for number, word in re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", last)
        }
    )
    return counts or Counter({"error": 1})


def passed(results: Path, name: str) -> bool:
    counts = counted(results, name)
    return bool(counts) and not counts["failed"] and not counts["error"]


def summary(files: list[str], results: Path) -> int:
    """What is known: files and tests by outcome, and which failed."""
    total: Counter[str] = Counter()
    unknown = []
    for name in files:
        counts = counted(results, name)
        total += counts
        if not counts:
            unknown.append(name)
        elif not passed(results, name):
            print(f"{name}: {counts['failed']} failed, {counts['error']} errors")
    outcomes = ", ".join(f"{total[word]} {word}" for word in ("passed", "failed", "error", "skipped"))
    print(f"{len(files) - len(unknown)} of {len(files)} files run: {outcomes}")
    return 1 if total["failed"] or total["error"] or unknown else 0


def prepared(root: Path, cpu: str) -> dict[str, str]:
    """Starter, compilers for this processor, and the environment of the tests."""
    system, programs = root / "system", root / "bin"
    programs.mkdir(exist_ok=True)
    starter = root / f"python-{cpu}"
    scripts = {starter: STARTER.format(cpu=cpu, system=system, python=system / "usr" / "bin" / "python3.11")}
    scripts |= {programs / name: COMPILER.format(command=command) for name, command in COMPILERS.items()}
    for path, text in scripts.items():
        path.write_text(text)
        path.chmod(0o755)
    (root / "site" / "sitecustomize.py").write_text(SITE)
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{root / 'site'}",
        "LINKWISE_AARCH64_PYTHON": str(starter),
        "LINKWISE_CACHE": str(root / f"cache-{cpu}"),
        "QEMU_LD_PREFIX": str(system),
        "QEMU_CPU": cpu,
    }


def unpack_system(root: Path) -> None:
    """Debian's packages, by lists of their own, so that the system's remain as they are."""
    for folder in ("state/lists/partial", "archives/partial", "packages"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "state" / "status").touch()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures::": "arm64",
        "Dir::State": root / "state",
        "Dir::State::status": root / "state" / "status",
        "Dir::Cache": root,
    }
    apt = ["apt-get", "-qq", *(part for key, value in settings.items() for part in ("-o", f"{key}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *DEBIAN], cwd=root / "packages", check=True)
    for package in sorted((root / "packages").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, root / "system"], check=True)


def unpack_wheels(root: Path) -> None:
    """The packages that the tests need, compiled to bytecode here because that is slow under QEMU."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--only-binary=:all:",
        "--python-version",
        "3.11",
    ]
    command += [part for name in PLATFORMS for part in ("--platform", name)]
    subprocess.run([*command, "--dest", root / "wheels", "-c", ROOT / "constraints.txt", *WHEELS], check=True)
    for wheel in (root / "wheels").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(root / "unpacked")
    if sys.version_info[:2] == (3, 11):
        folders = [root / "unpacked", root / "system" / "usr" / "lib" / "python3.11"]
        subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], check=False, capture_output=True)
    (root / "unpacked").rename(root / "site")


if __name__ == "__main__":
    sys.exit(main())
