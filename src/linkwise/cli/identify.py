"""``linkwise identify``."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from linkwise.cli.parts.closed_loop import (
    check_method,
    closed_loop_facts,
    closed_loop_identified,
    closed_loop_options,
    reference_layout,
    same_stamps,
    show_closed_loop,
)
from linkwise.cli.parts.identified import all_validations, show_identification
from linkwise.cli.parts.recorded import read_layout, read_source
from linkwise.cli.support import headings
from linkwise.cli.support.options import (
    NOT_NEGATIVE,
    POSITIVE,
    Number,
    OneOf,
    RowRange,
    WholeNumber,
    command_line,
    figures_option,
    json_option,
    load_robot,
    report_option,
    robot_argument,
)
from linkwise.cli.support.output import say, say_json, status
from linkwise.cli.support.written import check_targets
from linkwise.identify.estimation.estimators import ESTIMATORS
from linkwise.identify.estimation.friction import MODELS
from linkwise.identify.estimation.lag import WIDE as LARGEST_LAG
from linkwise.identify.estimation.significance import RULES
from linkwise.identify.recordings.derivatives import METHODS

if TYPE_CHECKING:
    from linkwise.identify import Identification, Layout, Log, Stages
    from linkwise.robot.robot import Robot


FAILED_STATUS = 3  # of a model that explains too little of the recordings to be of any use

_HEADINGS = {
    "Recordings": "layout rows validate validate-rows split drop-bad-rows topic",
    "Signals": "cutoff lag derivatives decimation",
    "Model": "friction network estimator significance strength feet",
    "Closed loop": "method reference controller frequency damping kp kd",
    "Output": "out code reduce force report figures open json",
}


@headings.command("identify", _HEADINGS)
@robot_argument
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--validate", multiple=True, metavar="LOG", help="Judge the model on this recording; may be repeated."
)
@click.option(
    "--split",
    type=Number(above=0, below=1),
    metavar="SHARE",
    help="Fit this share of the recording (0.7: the first 70 %), judge on the rest.",
)
@click.option(
    "--layout", metavar="FILE.toml", help="What the columns of the recordings mean: names, units, drives."
)
@click.option(
    "--rows", type=RowRange(), metavar="FIRST-LAST", help="Use these rows of the recordings only, from 1."
)
@click.option("--validate-rows", type=RowRange(), metavar="FIRST-LAST", help="The same for --validate.")
@click.option(
    "--drop-bad-rows",
    is_flag=True,
    help="Leave out and count rows that are cut off, hold no numbers, or have stamps that go back.",
)
@click.option(
    "--topic",
    metavar="NAME",
    help="Topic of a rosbag, or what the names of columns begin with, if several do.",
)
@click.option(
    "--cutoff", type=POSITIVE, metavar="HZ", help="Cut-off of the filters; default: chosen from the data."
)
@click.option(
    "--lag",
    type=Number(above=-LARGEST_LAG, below=LARGEST_LAG),
    metavar="SECONDS",
    help="Torques were recorded so much later than positions; default: estimated, and corrected if certain.",
)
@click.option(
    "--derivatives",
    type=OneOf(tuple(METHODS), "name"),
    default="butterworth",
    show_default=True,
    help=f"How velocities and accelerations are found: {', '.join(METHODS)}.",
)
@click.option(
    "--decimation",
    type=WholeNumber(1, 10**6),
    metavar="N",
    help="Use one smooth sample of N; default: as many as the cut-off needs.",
)
@click.option(
    "--friction",
    type=OneOf(("auto", *MODELS), "model"),
    default="auto",
    show_default=True,
    help=f"auto (chosen from the data), {', '.join(MODELS)}.",
)
@click.option(
    "--network",
    is_flag=True,
    help="Add a small network to joints where it predicts left-out motions better.",
)
@click.option(
    "--estimator",
    type=OneOf(tuple(ESTIMATORS), "name"),
    default="weighted",
    show_default=True,
    help=f"Of the base parameters: {', '.join(ESTIMATORS)}.",
)
@click.option(
    "--significance",
    type=OneOf(tuple(RULES), "rule"),
    default="contribution",
    show_default=True,
    help="What stays in the reduced model: contribution (1 % of a torque), statistics.",
)
@click.option(
    "--strength",
    type=NOT_NEGATIVE,
    metavar="GAMMA",
    help="How much the given inertias count; 1: like one sample of each link.",
)
@click.option(
    "--feet",
    metavar="FRAME …",
    help="Of a floating base: frames that may touch the ground, with points: 'FL_calf:0,0,-0.2 FR_calf:0,0,-0.2'.",
)
@closed_loop_options
@click.option("--out", metavar="ROBOT2", help="Write the identified robot: .urdf or .toml.")
@click.option(
    "--code",
    type=headings.C_FILE,
    metavar="FILE.c",
    help="Write C code of the identified robot's inverse dynamics.",
)
@click.option("--reduce", is_flag=True, help="--code is of the reduced model instead: shorter, less exact.")
@click.option("--force", is_flag=True, help="Write the robot and its code though the model fails.")
@report_option
@figures_option
@json_option
def command(robot, gravity, lock, base, mimic, logs, **options: Any) -> None:
    """Identify a robot from recordings of its motion.

    ROBOT gives the kinematics, and its inertias are where the search starts. LOG is a table (CSV, Excel, NPZ, MATLAB,
    HDF5, Parquet) of times, joint positions and torques or motor currents, with velocities where they were recorded,
    or a rosbag with joint states; columns are found by names such as t, q1, tau1, or named in a layout. A LOG that ends
    in .toml is a layout that names its files. With --base floating the LOG has the motion of the base as well
    (base_pos, base_quat, base_vel, imu_gyro, imu_acc) and, if recorded, contacts; foot forces are not needed.

    \b
    Example:
      linkwise identify arm.urdf run1.csv run2.csv --validate run3.csv --out arm2.urdf --code arm.c --report arm.html
      linkwise identify ur10e.urdf log.csv --layout ur.toml --rows 635-3510 --split 0.7 --friction coulomb
      linkwise identify go2.urdf walk.npz --base floating --split 0.7 --out go2b.urdf
      linkwise identify arm.urdf log.csv --method didim --reference 'qr{}' --controller gravity_pd --frequency 25

    The status is 3 where the model fails: it leaves more than 60 % of the torque of some recording, or signs, order,
    zeros, units or gravity of the recordings contradict the robot. Robot and code are then written only with --force.
    """
    loaded = load_robot(robot, gravity, lock, base, mimic, moving=True)
    _check_targets(options)
    check_method(options)
    with status(f"reading {logs[0]}") as now:
        train, tests = _recordings(loaded, logs, options)
        if options["method"] == "inverse":
            loop, identification = None, _by_inverse_dynamics(loaded, train, tests, options, now)
        else:
            now(f"simulating closed loops: {options['method']}")
            references = _references(loaded, logs, train, options)
            loop = closed_loop_identified(loaded, train, tests, references, options)
            identification = loop.identification
        now("writing")
        written = _write(identification, options)
    if options["as_json"]:
        facts = {} if loop is None else closed_loop_facts(loop)
        say_json(
            identification.summary()
            | {"validations": all_validations(identification), "written": written}
            | facts
        )
        _end(identification, options)
        return
    if loop is not None:
        show_closed_loop(loop)
    show_identification(identification)
    for what, path in written.items():
        say(f"{what} written to {path}")
    _end(identification, options)


def _by_inverse_dynamics(robot: Robot, train: list[Log], tests: list[Log], options, now) -> Identification:
    """Least squares along the recorded motion."""
    from linkwise import identify as library

    return library.identify(
        robot,
        train,
        validation=tests or None,
        cutoff=options["cutoff"],
        derivatives=options["derivatives"],
        decimation=options["decimation"],
        friction=options["friction"],
        estimator=options["estimator"],
        significance=options["significance"],
        lag=options["lag"],
        feet=options["feet"].split() if options["feet"] else None,
        network=options["network"],
        stages=_stages(now),
        **({} if options["strength"] is None else {"strength": options["strength"]}),
    )


def _end(found: Identification, options) -> None:
    """Leave with the status of a model that fails, after everything was shown."""
    if not found.failed:
        return
    kept = " and ".join(name for name in ("out", "code") if options[name])
    unsaved = f"; {kept} not written, --force writes them" if kept and not options["force"] else ""
    click.echo(f"this model fails: {found.failure}{unsaved}", err=True)
    raise click.exceptions.Exit(FAILED_STATUS)


def _check_targets(options) -> None:
    """Check output paths before starting."""
    check_targets(options["out"], options["code"], options["report"])
    if options["out"] and Path(options["out"]).suffix not in (".urdf", ".toml"):
        raise click.UsageError(f"--out: {options['out']}: a robot is saved as .urdf or .toml")
    if options["reduce"] and not options["code"]:
        raise click.UsageError("--reduce belongs to --code")


# -- recordings -------------------------------------------------------------------------------------------------------


def _recordings(robot: Robot, logs, options) -> tuple[list[Log], list[Log]]:
    """What is fitted, and what is judged on (nothing: the same)."""
    if options["split"] and options["validate"]:
        raise click.UsageError("--split and --validate do not go together")
    if options["validate_rows"] and not options["validate"]:
        raise click.UsageError("--validate-rows belongs to --validate")
    layout = read_layout(options["layout"])
    train = [_read(robot, log, layout, options["rows"], options) for log in logs]
    others = replace(layout, rows=None)  # rows of a layout are those of the recording that is fitted
    tests = [_read(robot, log, others, options["validate_rows"], options) for log in options["validate"]]
    if options["split"]:
        parts = [log.split(options["split"]) for log in train]
        train, tests = [first for first, _ in parts], [rest for _, rest in parts]
    return train, tests


def _references(robot: Robot, logs, train: list[Log], options) -> list | None:
    """What the controller was told to follow in every recording: columns beside the recorded positions."""
    if options["reference"] is None:
        return None
    layout = reference_layout(read_layout(options["layout"]), options["reference"])
    read = [_read(robot, log, layout, options["rows"], options) for log in logs]
    if options["split"]:
        read = [log.split(options["split"])[0] for log in read]
    return same_stamps(train, read)


def _read(robot: Robot, source: str, layout: Layout, rows, options) -> Log:
    return read_source(
        robot, source, layout, rows, drop_bad_rows=options["drop_bad_rows"], topic=options["topic"]
    )


def _stages(now) -> Stages:
    """The usual stages, each saying what it does."""
    from linkwise.identify import Stages

    usual = Stages()

    def condition(log, **options):
        now(f"filtering {log.name}")
        return usual.condition(log, **options)

    def choose_friction(*arguments, **options):
        now("choosing a friction model for every joint")
        return usual.choose_friction(*arguments, **options)

    def fit(*arguments, **options):
        now("fitting")
        return usual.fit(*arguments, **options)

    return replace(usual, condition=condition, choose_friction=choose_friction, fit=fit)


# -- results ----------------------------------------------------------------------------------------------------------


def _write(found: Identification, options) -> dict[str, str]:
    """Write the requested outputs; {what: path}."""
    written = {}
    keep = options["force"] or not found.failed
    if options["out"] and keep:
        found.save(options["out"])
        written["robot"] = options["out"]
    if options["code"] and keep:
        found.write_code(options["code"], reduced=options["reduce"])
        written["code"] = options["code"]
    if options["report"] or options["figures"]:
        from linkwise.report import identification_report

        page = identification_report(
            found, command=shlex.join(["linkwise", *command_line()]), written=written
        )
        if options["report"]:
            page.write(options["report"])
            written["report"] = options["report"]
        if options["figures"]:
            page.write_figures(options["figures"])
            written["figures"] = options["figures"]
    return written
