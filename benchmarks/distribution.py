"""Build the wheel, install it into a new environment, use it, and say what it costs.

    python benchmarks/distribution.py [--extra view] [--json]
    python benchmarks/distribution.py --wheel-only      build it and look at what is in it

Prints the size of the wheel, the size of what pip installs with it, and the time of ``import linkwise`` beside that of
``import numpy`` alone (the fastest of several new processes). Fails if a command of the installed package does.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPEATS = 9
NEEDED = (
    "linkwise/py.typed",
    "linkwise/report/style.css",
    "linkwise/report/script.js",
    "linkwise/model/robots/panda.toml",
    "linkwise/formats/mjcf/schema.txt",
    "linkwise/study/sampling/joe_kuo.txt",
)
LICENCES = ("LICENSE", "NOTICE")  # in the folder of licences of the wheel


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--extra", action="append", default=[], help="install this extra too; may be repeated"
    )
    parser.add_argument("--wheel-only", action="store_true", help="install nothing")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        wheel = checked(build(Path(name)))
        facts = {"wheel [MB]": round(wheel.stat().st_size / 1e6, 2)}
        if not given.wheel_only:
            facts |= measured(Path(name), wheel, given.extra)
    if given.json:
        print(json.dumps(facts, indent=2))
    else:
        for key, value in facts.items():
            print(f"{key:<34} {value}")
    return 0


def checked(wheel: Path) -> Path:
    """The wheel, if it has everything that the package needs when it runs, and the licences."""
    files = contents(wheel)
    missing = set(NEEDED) - set(files)
    missing |= {
        name for name in LICENCES if not any(file.endswith(f".dist-info/licenses/{name}") for file in files)
    }
    assert not missing, f"the wheel lacks {missing}"
    return wheel


def measured(folder: Path, wheel: Path, extras: list[str]) -> dict[str, object]:
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / "bin" / "python"
    before = megabytes(packages(python))
    wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted)
    listed = run(python.with_name("linkwise"), "robots", "--json")
    assert "puma560" in listed
    return {
        "installed with dependencies [MB]": round(megabytes(packages(python)) - before),
        "of that linkwise [MB]": round(megabytes(packages(python) / "linkwise"), 1),
        "numpy": run(python, "-c", "import numpy; print(numpy.__version__)").strip(),
        "import linkwise [s]": seconds(python, "import linkwise"),
        "of that numpy [s]": seconds(python, "import numpy"),
        "linkwise robots": f"{len(json.loads(listed))} robots",
    }


def build(folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def contents(wheel: Path) -> list[str]:
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def seconds(python: Path, statement: str) -> float:
    """The time a new process needs for a statement, less that of an empty one."""
    code = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    return round(min(float(run(python, "-c", code)) for _ in range(REPEATS)), 3)


def packages(python: Path) -> Path:
    return Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def run(*command: str | Path) -> str:
    ran = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd=tempfile.gettempdir()
    )
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {ran.stderr.strip() or ran.stdout.strip()}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
