"""The test suite on Linux for AArch64, under QEMU: an interpreter from Debian's packages, wheels for that processor.

    python benchmarks/aarch64.py [--cpu cortex-a72] [--root build/aarch64] [--dry-run] [TESTS ...]

Needs ``qemu-aarch64`` and a Debian system (``apt-get``, ``dpkg-deb``); nothing is installed there. QEMU is many
times slower than the machine itself, so the suite takes hours; name single tests to be quicker. ``--cpu
max,sve256=on,sve512=off`` tests SVE registers of 256 bits.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
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
)
WHEELS = (
    *("numpy", "llvmlite", "defusedxml", "click", "rich", "scipy"),
    *("pytest", "hypothesis", "threadpoolctl", "mpmath"),
)
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", nargs="*", default=["tests"], help="what pytest is given")
    parser.add_argument("--cpu", default="cortex-a72", help="the processor that QEMU emulates")
    parser.add_argument("--root", type=Path, default=ROOT / "build" / "aarch64", help="where it is unpacked")
    parser.add_argument("--dry-run", action="store_true", help="only print the command of the tests")
    given, options = parser.parse_known_args()
    root = given.root.resolve()
    python = root / "system" / "usr" / "bin" / "python3.11"
    command = ["qemu-aarch64", "-cpu", given.cpu, "-L", root / "system", python, "-m", "pytest", "-q"]
    command += ["-p", "no:cacheprovider", *options, *given.tests]
    if given.dry_run:
        print(" ".join(map(str, command)))
        return 0
    if shutil.which("qemu-aarch64") is None:
        raise SystemExit("qemu-aarch64 is not here: apt-get install qemu-user")
    if not python.exists():
        unpack_system(root)
        unpack_wheels(root)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{root / 'site'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LINKWISE_CACHE": str(root / f"cache-{given.cpu}"),
    }
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


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
            archive.extractall(root / "site")


if __name__ == "__main__":
    sys.exit(main())
