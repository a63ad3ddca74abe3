"""A real Dask cluster: a scheduler and workers as processes of their own, which can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import linkwise

STARTING_SECONDS = 90.0


class Cluster:
    """A scheduler and some workers with one thread each."""

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        protocol: str = "tcp",
        environment: Mapping[str, str] | None = None,
    ):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.protocol = protocol
        # the package under test, wherever it was imported from, and the functions of the tests
        paths = (Path(linkwise.__file__).parents[1], Path(__file__).parent)
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
        self.environment |= environment or {}
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--scheduler-file", self.file)
        self.workers: list[subprocess.Popen] = []
        try:
            end = time.monotonic() + STARTING_SECONDS
            while not self.file.exists():
                assert self.scheduler.poll() is None, "the scheduler did not start"
                assert time.monotonic() < end, "the scheduler takes too long"
                time.sleep(0.05)
            time.sleep(0.05)
            self.address = json.loads(self.file.read_text())["address"]
            for _ in range(workers):
                self.add_worker()
            self.wait(workers)
        except BaseException:
            self.close()
            raise

    def _start(self, what: str, *arguments: object) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.{what}", "--host", "127.0.0.1", "--no-dashboard"]
        command += ["--protocol", self.protocol]
        log = (self.folder / f"{what}.log").open("ab")
        return subprocess.Popen(
            [*command, *map(str, arguments)], cwd=self.folder, env=self.environment, stdout=log, stderr=log
        )

    def add_worker(self, **environment: str) -> None:
        options = ("--nthreads", 1, "--no-nanny", "--memory-limit", 0, "--local-directory", self.folder)
        before, self.environment = self.environment, {**self.environment, **environment}
        self.workers.append(self._start("dask_worker", "--scheduler-file", self.file, *options))
        self.environment = before

    def wait(self, workers: int) -> None:
        """Until so many workers are there."""
        import distributed

        with distributed.Client(self.address, set_as_default=False, timeout=STARTING_SECONDS) as client:
            client.wait_for_workers(workers, timeout=STARTING_SECONDS)

    def kill_worker(self, k: int = 0) -> None:
        """kill -9."""
        worker = self.workers.pop(k)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.workers.clear()
