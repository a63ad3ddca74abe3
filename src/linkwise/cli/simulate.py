"""``linkwise simulate``."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from linkwise.cli.parts import contact as touching
from linkwise.cli.parts.contact import JOINT_PD
from linkwise.cli.support import headings
from linkwise.cli.support.gains import NAMES as GAINS
from linkwise.cli.support.gains import check_gains, check_names, gain_options, given_gains, one_or_all
from linkwise.cli.support.given import refuse_given
from linkwise.cli.support.options import (
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    Number,
    Numbers,
    OneOf,
    WholeNumber,
    command_line,
    figures_option,
    json_option,
    load_robot,
    report_option,
    robot_argument,
    table_option,
)
from linkwise.cli.support.output import Table, number, say, say_json, show
from linkwise.cli.support.written import check_targets, write_table
from linkwise.control import CALLED, CONTROLLERS
from linkwise.embedded import Options
from linkwise.embedded.entries import controller_of, gain_names
from linkwise.files.tables import bounds, finite, numbered
from linkwise.model.coordinates import velocity_coordinates
from linkwise.simulate.integrators import INTEGRATORS

if TYPE_CHECKING:
    from linkwise.robot.robot import Robot
    from linkwise.simulate import Result


DURATION = 2.0  # simulated time of a move [s]

_HEADINGS = {
    "Motion": "trajectory from to degrees move duration",
    "Controller": f"controller {GAINS} frame control-period delay",
    "Simulated robot": "model-error payload noise resolution seed",
    "Contact": "contact page",
    "Integration": "integrator step every",
}


@headings.command("simulate", _HEADINGS)
@robot_argument
@click.option(
    "--controller",
    type=OneOf((*CONTROLLERS, *CALLED, JOINT_PD), "name"),
    default="computed_torque",
    show_default=True,
    help=", ".join((*CONTROLLERS, *CALLED)) + "; joint_pd holds a robot with --contact.",
)
@click.option(
    "--from", "start", type=Numbers(), metavar="Q1,Q2,…", help="Where the robot starts; default: zeros."
)
@click.option(
    "--to",
    "end",
    type=Numbers(),
    metavar="Q1,Q2,…",
    help="Where a quintic move ends; default: where it starts.",
)
@click.option(
    "--trajectory", metavar="FILE", help="A table of t, q1 …, instead of --to: see linkwise inverse."
)
@click.option("--degrees", is_flag=True, help="--from and --to are in degrees where a joint turns.")
@click.option(
    "--move", type=POSITIVE, default=1.0, show_default=True, help="Duration of the quintic move [s]."
)
@click.option(
    "--duration", type=POSITIVE, help="Simulated time [s].  [default: that of --trajectory, else 2]"
)
@gain_options
@click.option("--frame", metavar="NAME", help="The tool of task-space controllers; default: the only leaf.")
@click.option(
    "--model-error",
    type=Number(least=-100, most=1e6),
    default=0.0,
    help="The controller's masses and inertias are off by this [%].",
)
@click.option(
    "--payload",
    type=NOT_NEGATIVE,
    default=0.0,
    help="A point mass at the tip that is not in the controller's model [kg].",
)
@click.option(
    "--noise", type=NOT_NEGATIVE, default=0.0, help="Standard deviation of measured positions [rad or m]."
)
@click.option("--resolution", type=NOT_NEGATIVE, default=0.0, help="Position of an encoder count [rad or m].")
@click.option(
    "--delay", type=WholeNumber(0, 1000), default=0, help="Control periods from measurement to torque."
)
@click.option(
    "--contact",
    is_flag=True,
    help="Contacts as the file says (MJCF), or of every collision shape with the ground (URDF). A robot with a free "
    "base is held by joint_pd at --from, default: its neutral position on the ground.",
)
@click.option(
    "--page", metavar="FILE", help="Write a page (.html) that plays the simulation, with arrows of contacts."
)
@click.option(
    "--integrator",
    type=OneOf(tuple(INTEGRATORS), "name"),
    default="rk4",
    show_default=True,
    help="rk4 or semi_implicit_euler.",
)
@click.option("--step", type=POSITIVE, default=1e-3, show_default=True, help="Step of the integrator [s].")
@click.option(
    "--control-period", type=POSITIVE, help="Sample period of the controller [s]; default: the step."
)
@click.option(
    "--every",
    type=WholeNumber(1, 10**9),
    default=10,
    show_default=True,
    help="Control periods from one written row to the next.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the noise.")
@table_option
@report_option
@figures_option
@json_option
def command(
    robot,
    gravity,
    lock,
    base,
    mimic,
    controller,
    start,
    end,
    trajectory,
    degrees,
    move,
    duration,
    out,
    report,
    figures,
    as_json,
    contact,
    page,
    **options,
):
    """Simulate a controlled arm: a closed loop of sensors, controller, drives, friction and dynamics.

    The arm follows a quintic move from --from to --to, or a file. Rows have columns t, q1 … qn, qd1 … qdn,
    tau1 … taun and the reference qr1 … qrn. Units: s, rad, m, N·m, N.

    \b
    Example:
      linkwise simulate puma560 --to 30,-20,10,0,20,0 --degrees --out motion.csv
      linkwise simulate puma560 --controller tracking --to 1,0.5,0,0,0,0 --model-error 10
      linkwise simulate scene.xml --contact --duration 1 --page motion.html
    """
    loaded = load_robot(robot, gravity, lock, base, mimic, moving=True, contact=contact)
    check_targets(out, report, page)
    if contact and loaded.nq != loaded.dof:
        refuse_given(("end", "trajectory", "degrees", "move"), "does not go with --contact and a free base")
        reference: Any = touching.position(loaded, start, "--from")
        first = reference
        controller = JOINT_PD if controller == "computed_torque" else controller
    else:
        reference, first = _reference(loaded, start, end, trajectory, degrees, move)
    if controller == JOINT_PD and not contact:
        raise click.UsageError("--controller joint_pd: only with --contact")
    if duration is None:
        duration = DURATION if trajectory is None else reference.end - reference.begin
    periods = duration / (options["control_period"] or options["step"])
    bounds.check(f"--duration: {periods:.6g} control periods", periods * (1 + 6 * loaded.dof))
    result = _simulated(loaded, controller, reference, first, duration, options)
    table = _table(result, contact)
    if out is not None:
        write_table(out, table)
    if report is not None or figures is not None:
        _write_report(report, figures, loaded, controller, result)
    if page is not None:
        _write_page(page, loaded, result)
    if as_json:
        say_json(
            {
                "robot": loaded.name,
                "controller": controller,
                "joints": loaded.joint_names,
                "out": out,
                "diverged": None if result.divergence is None else asdict(result.divergence),
                "left_range": [asdict(excursion) for excursion in result.left_range],
                "columns": table,
            }
        )
        return
    _say_what_was_written(
        loaded, controller, result, table, {"rows": out, "report": report, "figures": figures, "page": page}
    )


def _table(found: Result, contact: bool) -> dict[str, np.ndarray]:
    """A column for each number over time."""
    assert found.reference is not None
    table = {"t": found.t} | numbered("q", found.q) | numbered("qd", found.qd) | numbered("tau", found.tau)
    table |= numbered("qr", np.broadcast_to(found.reference[0], found.q.shape))
    if contact:
        table |= touching.columns(found)
    if found.divergence is not None:
        return _until_divergence(table)
    finite(table)
    return table


def _say_what_was_written(
    robot: Robot, controller: str, found: Result, table: dict[str, np.ndarray], paths: dict[str, str | None]
) -> None:
    if not any(paths.values()):
        write_table(None, table)
        return
    _summary(robot, controller, found)
    if found.robot.contact_names:
        touching.summary(found)
    for what, path in paths.items():
        if path is not None:
            count = f"{len(table['t'])} " if what == "rows" else ""
            say(f"{count}{what} written to {path}")


def _until_divergence(table):
    """The rows before the first number that is not finite; the warning says when that was."""
    numbers = np.column_stack(list(table.values()))
    broken = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    rows = int(broken[0]) if len(broken) else len(numbers)
    return {name: column[:rows] for name, column in table.items()}


def _reference(loaded, start, end, trajectory, degrees, move):
    """(what to follow, where it begins): a file, which says itself where, or a quintic move."""
    from linkwise import motion

    if trajectory is not None:
        refuse_given(("start", "end", "degrees", "move"), "does not go with --trajectory")
    first = _position(loaded, "--from", (0.0,) * loaded.dof if start is None else start, degrees)
    if trajectory is None:
        last = first if end is None else _position(loaded, "--to", end, degrees)
        return motion.quintic(first, last, move), first
    return motion.read_csv(trajectory, loaded.joint_names), None


def _write_report(
    path: str | None, figures: str | None, robot: Robot, controller: str, found: Result
) -> None:
    from linkwise.report import Report, sections

    page = Report(f"{robot.name} under {controller}", f"{found.duration:g} s in closed loop")
    page.add(sections.tracking(robot, found.t, {controller: found.error}))
    page.add(sections.torques(robot, found.t, found.tau))
    page.add(sections.motion(robot, found.t, found.q, found.qd))
    if found.robot.contact_names:
        names = found.robot.contact_names
        page.add(
            sections.contacts(
                found.t, names, found.contact_forces, found.slip, found.contact_gaps, found.residual
            )
        )
    page.add(sections.robot(robot, found.q[-1], ghosts=[found.q[0]], caption="at the end, start pose faded"))
    page.add(sections.facts({"command": shlex.join(["linkwise", *command_line()])}))
    if path is not None:
        page.write(path)
    if figures is not None:
        page.write_figures(figures)


def _write_page(path: str, robot: Robot, found: Result) -> None:
    from linkwise.cli.support.written import write
    from linkwise.view.offline import page_file

    write(path, page_file(robot, result=found, q=found.q[0]))


def _simulated(robot: Robot, name: str, reference, q, duration: float, options: dict) -> Result:
    from linkwise.simulate import Plant, Sensors, simulate

    sensors = Sensors(
        position_noise=options["noise"],
        resolution=options["resolution"],
        velocity="difference" if options["noise"] or options["resolution"] else "measured",
        cutoff=200.0,
    )
    loaded = robot.with_payload(options["payload"]) if options["payload"] else robot
    return simulate(
        Plant(loaded, sensors=sensors),
        _controller(robot, name, options, q),
        reference,
        duration=duration,
        step=options["step"],
        control_period=options["control_period"],
        integrator=options["integrator"],
        every=options["every"],
        delay=options["delay"],
        seed=options["seed"],
        q=q,
    )


def _controller(robot: Robot, name: str, options: dict, q: np.ndarray | None = None) -> Any:
    from linkwise import control

    check_gains(options)
    frequency, gains = one_or_all(options["frequency"], 10.0), given_gains(options)
    damping = 1.0 if options["damping"] is None else options["damping"]
    if name == JOINT_PD:
        at = robot.neutral if q is None else q
        period = options["control_period"] or options["step"]
        if gains or isinstance(frequency, list):
            raise click.UsageError("joint_pd takes one --frequency and --damping, not gains")
        return touching.joint_pd(robot, at, frequency, damping, period)

    model = robot
    if options["model_error"]:
        factor = 1 + options["model_error"] / 100
        values = dict(zip(robot.parameter_labels, robot.parameters, strict=True))
        model = robot.with_parameters(
            {label: factor * v for label, v in values.items() if "friction" not in label}
        )
    if name not in CONTROLLERS:
        if gains:
            raise click.UsageError(f"{name} takes --frequency, not gains")
        return control.named(name, model, frequency=frequency, damping=damping)
    chosen = Options(frequency=frequency, damping=damping, gains=gains, frame=options.get("frame"))
    law = controller_of(model, name, chosen)
    check_names(gains, {name: gain_names(law, gains)})
    return law


def _position(robot: Robot, option: str, values, degrees: bool) -> np.ndarray:
    if len(values) != robot.dof:
        names = ", ".join(robot.joint_names)
        raise click.UsageError(f"{option}: expected {robot.dof} numbers for {names}; got {len(values)}")
    turns = np.array([joint.revolute for joint in robot.coordinate_joints])
    return np.where(turns & degrees, np.radians(values), values)


def _summary(robot: Robot, controller: str, found: Result) -> None:
    error, last = np.abs(found.error).max(axis=0), np.abs(found.error[-1])
    rows = [
        [joint.name, number(e), number(f), number(t), "rad, N·m" if joint.revolute else "m, N"]
        for joint, e, f, t in zip(
            velocity_coordinates(robot), error, last, np.abs(found.tau).max(axis=0), strict=True
        )
    ]
    title = f"{robot.name} under {controller} for {found.duration:g} s"
    show(Table(title, ["joint", ">largest error", ">last error", ">largest torque", "units"], rows))
