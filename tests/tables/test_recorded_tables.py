"""Tables in text and arrays, units and names of columns, beside what is recorded."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import linkwise as lw
from linkwise.files import tables
from linkwise.files.tables import columns, naming, text, units, writer
from linkwise.identify import read_log
from recorded import Scenarios, everything, told

scenarios = Scenarios("tables")
PLAIN = (
    "t,q1,q2,tau1,tau2\n0,0.5,-0.25,3,4\n0.01,0.52,0.2,3.5,4.1\n0.02,0.55,0.1,3.2,4.3\n0.03,0.57,0,3.1,4.4\n"
)
FORMS = {
    "plain": PLAIN,
    "semicolons": PLAIN.replace(",", ";").replace(".", ","),
    "blanks": PLAIN.replace(",", "  "),
    "comments": "# made by hand\n\n" + PLAIN.replace("0.01,", "% between\n\n0.01,"),
    "quotes": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in PLAIN.splitlines()),
    "ends": PLAIN.replace("\n", ",\n"),
    "first line": "sep=;\n" + PLAIN.replace(",", ";"),
    "no header": PLAIN.split("\n", 1)[1],
    "commented header": "# " + PLAIN,
    "units": PLAIN.replace("t,q1,q2", "t [ms],q1 [deg],q2 (deg)"),
    "row of units": PLAIN.replace("tau2\n", "tau2\ns,rad,rad,Nm,Nm\n"),
    "names": PLAIN.replace("t,q1,q2,tau1,tau2", "Time,POS_1,pos_2,effort_1,effort_2"),
    "joints": PLAIN.replace("q1,q2", "q.joint1,q.joint2"),
    "lists": 't,position,effort\n0,"[0.1, 0.2]","[1, 2]"\n1,"[0.3, 0.4]","[3, 4]"\n',
    "moments": "time,q1,q2\n2024-01-02T03:04:05.5,1,2\n2024-01-02T03:04:06.5,3,4\n",
    "words": PLAIN.replace("0.52", "abc"),
    "missing": PLAIN.replace("0.52", ""),
    "short row": PLAIN.replace("0.02,0.55,0.1,3.2,4.3", "0.02,0.55"),
    "nan": PLAIN.replace("0.52", "nan"),
    "empty": "",
    "header only": "t,q1\n",
    "twice": PLAIN.replace("q2", "q1"),
    "binary": "t,q1\n\x00\x01,3\n",
}


def of(table: Any) -> dict[str, Any]:
    return {
        "values": table.values,
        "names": "none" if table.names is None else " ".join(table.names),
        "units": "none" if table.units is None else " ".join(table.units),
        "lines": "none" if table.lines is None else table.lines,
        "faults": " | ".join(f"{place} {why}" for place, why in sorted(table.faults.items(), key=str)),
        "texts": str(sorted(table.texts.items())),
        "commented": str(table.commented),
        "notes": " | ".join(table.notes),
        "said": " | ".join(
            [table.listed(), *(table.column(k) for k in range(min(2, table.values.shape[1])))]
        ),
    }


@scenarios
def texts():
    found: dict[str, Any] = {}
    for name, form in FORMS.items():
        for tolerant in (False, True):
            said = told(text.read, io.StringIO(form), "table.csv", tolerant=tolerant)
            if said == "no error":
                said = of(text.read(io.StringIO(form), "table.csv", tolerant=tolerant))
            found[f"{name} {tolerant}"] = said
    return found


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        yield


@scenarios
def recordings():
    """Logs of a robot from each form of a table, with layouts."""
    robot, found = lw.load("two_link"), {}
    with folder():
        for name, form in FORMS.items():
            Path("log.csv").write_text(form, encoding="utf-8")
            for label, options in {
                "": {},
                "rows": {"rows": (2, 4)},
                "drop": {"drop_bad_rows": True},
                "layout": {
                    "layout": {"units": {"position": "deg", "time": "ms"}, "recording": {"rate": 50.0}}
                },
            }.items():
                said = told(read_log, "log.csv", robot, **options)
                if said == "no error":
                    log = read_log("log.csv", robot, **options)
                    said = {
                        "t": log.t,
                        "q": log.q,
                        "tau": log.tau,
                        "name": log.name,
                    }
                found[f"{name} {label}"] = said
    return found


@scenarios
def arrays():
    found: dict[str, Any] = {}
    rng = np.random.default_rng(3)
    t, q = 0.01 * np.arange(5), rng.normal(size=(5, 2))
    with folder():
        for name, content in {
            "plain": {"t": t, "q": q, "tau": 2.0 * q},
            "turned": {"time": t, "position": q.T, "effort": q.T},
            "table": {"data": np.column_stack([t, q, q])},
            "odd": {"t": t, "q": q, "note": np.array(["a", "b"]), "cube": np.zeros((5, 2, 3))},
            "sizes": {"t": t, "q": q[:3]},
            "empty": {"t": t[:0], "q": q[:0]},
        }.items():
            np.savez("table.npz", **content)
            said = told(tables.read, "table.npz")
            if said == "no error":
                table = tables.read("table.npz")
                said = of(table) | {"groups": str(table.groups), "unusable": str(dict(table.unusable))}
            found[name] = said
        Path("table.npz").write_bytes(b"PK\x03\x04 damaged")
        found["missing"] = told(tables.read, "nothing.csv")
        Path("table.xyz").write_text(PLAIN, encoding="utf-8")
        found["ending"] = told(tables.read, "table.xyz")
    return found


@scenarios
def units_and_names():
    names = (
        "q1 [deg]",
        "q1_deg",
        "v1_deg_s",
        "tau (Nm)",
        "tau_1",
        "time_ms",
        "x [foo]",
        "acc [rad/s^2]",
        "[s]",
        "a_b_c",
    )
    spelled = ("[rad/s^2]", "(deg)", "s2", "Nm", "N.m", "mm", "°", "us", "rad", "foo", " A ")
    table = text.read(io.StringIO(PLAIN), "table.csv")
    other = text.read(io.StringIO(FORMS["names"]), "table.csv")
    return {
        "split": [" | ".join(units.split(name)) for name in names],
        "spelled": [units.spelled(each) for each in spelled],
        "known": [units.is_unit(each) for each in spelled],
        "plain": [naming.plain(each) for each in ("Pos_1", "joint1/position", "Time [s]", "q.1")],
        "counted": [float(columns.counted_joints(each)) for each in (table, other)],
        "found": [told(naming.find, each, "position", ["joint1", "joint2"]) for each in (table, other)],
        "time": [str(naming.find_time(each, stamps=True)) for each in (table, other)],
        "planned": [naming.is_planned(each) for each in ("desired", "target_q", "q", "ref")],
    }


@scenarios
def written():
    numbers = {"t": np.array([0.0, 0.1]), **writer.numbered("q", np.array([[0.1, 0.2], [1e-9, -3e8]]))}
    return {
        "text": writer.render(numbers),
        "finite": told(writer.finite, {"x": np.array([1.0, np.nan])}),
        "log": everything(read_log_of(PLAIN)),
    }


def read_log_of(content: str) -> dict[str, np.ndarray]:
    with folder():
        Path("log.csv").write_text(content, encoding="utf-8")
        log = read_log("log.csv", lw.load("two_link"))
    return {"t": log.t, "q": log.q, "tau": log.tau}


test_results_are_those_recorded = scenarios.test()
test_every_record_has_its_scenario = scenarios.test_of_records()
