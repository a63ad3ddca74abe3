"""The two-rate runtime: a simulated PUMA 260 at 1 kHz, a background at 50 Hz, and safe stops when things go
wrong.
"""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from figures import panels

import linkwise as lw
from linkwise import motion
from linkwise.control import Gains
from linkwise.realtime import Fault, SimulatedPlant, TwoRateController

if not any(map(shutil.which, ("cc", "gcc", "clang"))):
    print("the runtime is built with a C compiler, and there is none here")
    raise SystemExit

model = lw.load("puma260")
arm = model.with_payload(0.3, com=(0.0, 0.0, 0.05))  # the controller does not know the load
move = motion.quintic(np.zeros(6), [0.8, 0.5, -0.5, 0.4, 0.6, 0.2], 0.8)
gains = Gains.from_frequency(20.0)
# a busy machine may hold the loop up for a while: here that only counts, it does not stop
tolerant = {"deadlines": 0, "oldest": 10.0, "patience": 10.0, "stop_time": 0.1}
controller = TwoRateController(model, gains, background=0.02, plant=SimulatedPlant(arm), **tolerant)

with tempfile.TemporaryDirectory() as folder:
    log = Path(folder) / "run.csv"
    report = controller.run(move, 1.0, log=log)
    print(report.summary())
    assert report.finished
    assert log.read_text().endswith("# finished\n")
assert report.missed["ours"] == 0
task = np.median(controller.time_synchronous(2000))
print(f"the synchronous task alone: {task * 1e9:.1f} ns")
assert task < 0.2e-6
error = report.q - move.at(report.cycles * report.period).q
print(f"largest tracking error {np.degrees(np.abs(error).max()):.3f}°, with a load that the model lacks")

limits = {"lower": -3, "upper": 3, "speed": 10, "effort": 40}
faults = ("nan", 0.0), ("lost", 0.0), ("hot", 0.0), ("jump", 2.0), ("freeze", 0.0)
for kind, value in faults:
    plant = SimulatedPlant(arm, fault=Fault(kind, 200, 1, value))
    stopped = TwoRateController(model, gains, plant=plant, limits=limits, stop="ramp", **tolerant).run(
        move, 0.5
    )
    print(f"  {kind:<6} -> {stopped.reason}")
    assert not stopped.finished
    assert np.abs(stopped.stop_tau).max() <= 40.0
    assert (stopped.stop_tau[-1] == 0.0).all()
assert (
    np.abs(report.stop_tau[-1] - model.gravity_torques(report.stop_q[-1])).max() < 1e-9
)  # held at the normal end

axes = panels(1, 2, "1 kHz loop, PUMA 260", (12, 4.5))
if axes is not None:
    axes[0].hist(report.late * 1e6, bins=50, log=True)
    axes[0].set(xlabel="begin of a cycle after its time [µs]", ylabel="cycles", title="jitter")
    axes[1].plot(report.time, np.degrees(error), label=[f"joint {k}" for k in range(1, 7)])
    axes[1].set(xlabel="t [s]", ylabel="tracking error [°]", title="error with an unknown load of 0.3 kg")
    axes[1].legend()
