"""A controller with model errors, simulated and shown; the ghost is the reference."""

from __future__ import annotations

import numpy as np

from linkwise.control import CONTROLLERS, Controller, named
from linkwise.errors import LinkwiseError
from linkwise.geometry.visuals import Looks
from linkwise.report.svg import escape, short
from linkwise.robot.robot import Robot
from linkwise.simulate import simulate
from linkwise.view import motions
from linkwise.view.live import heaviest_load
from linkwise.view.player import Player, Recording
from linkwise.view.plotted import Plot
from linkwise.view.scene import RobotScene
from linkwise.view.tabs.dragged import DraggedTarget
from linkwise.view.tabs.tab import Tab

STEP = 1e-3  # [s]
ROWS = 10  # steps per recorded row
LONGEST = 12.0  # [s]
NOTHING = "nothing"


class ControlTab(Tab):
    """A closed loop, simulated by the fused kernels and played back."""

    title = "Control"

    def build(self) -> None:
        robot = self.page.robot
        one_tool = len(robot.leaf_names) == 1
        names = tuple(name for name, law in CONTROLLERS.items() if one_tool or not law.has_frame)
        self.controller = self.gui.add_dropdown("controller", names, initial_value=names[0])
        self.frequency = self.gui.add_slider(
            "bandwidth [rad/s]", min=1.0, max=60.0, step=1.0, initial_value=20.0
        )
        live = self.page.live
        most = heaviest_load(live) if live.carries else 0.0
        self.payload = self.gui.add_slider(
            "unknown load [kg]",
            min=0.0,
            max=max(most, 0.1),
            step=0.1,
            initial_value=round(most / 4, 1),
            hint="a ball at the tip that the controller does not know of",
            disabled=not live.carries,
        )
        self.wrong = self.gui.add_dropdown(
            "wrong model",
            (NOTHING, *_perturbable(robot)),
            initial_value=NOTHING,
            hint="what else the controller has wrong about the arm",
        )
        self.factor = self.gui.add_slider(
            "true value [%]",
            min=0.0,
            max=300.0,
            step=5.0,
            initial_value=130.0,
            hint="of the arm, in % of the model's value",
        )
        self.button = self.gui.add_button("Simulate and play")
        self.result = self.gui.add_html("")
        self.plot = Plot(self.gui)
        self.ghost: RobotScene | None = None
        self.recording: Recording | None = None
        if not self.page.robot.contact_parts:
            self.gui.add_markdown(
                "This robot has no contacts: it passes through the floor and through itself."
            )
        self.player = Player(self.show)
        self.button.on_click(lambda _event: self.toggle())
        self.dragged = DraggedTarget(self.page)

    def toggle(self) -> None:
        if self.player.playing:
            self.player.pause()
            self.hide_ghost()
            self.button.label = "Simulate and play"
            return
        self.result.content = _says("simulating …")
        try:
            self.recording = self.simulated()
        except (LinkwiseError, ValueError) as error:
            self.result.content = _says(escape(error))
            return
        self.load(self.recording)
        self.button.label = "Stop"
        self.player.play()

    def simulated(self) -> Recording:
        """The arm with its true parameters under a controller with those of the file."""
        page = self.page
        model = page.live.with_load()
        wrong = {} if self.wrong.value == NOTHING else {self.wrong.value: self.factor.value / 100.0}
        plant = perturbed(model, wrong)
        if self.payload.value > 0:
            moment = page.live.payload(self.payload.value)[4]
            plant = plant.with_payload(self.payload.value, (0, 0, 0), (moment,) * 3, frame=page.live.tip)
        motion = motions.to_and_fro(model, page.live.q, page.scene.shown)
        duration = round(min(motion.duration, LONGEST) / (STEP * ROWS)) * STEP * ROWS
        law = controller(self.controller.value, model, self.frequency.value)
        simulation = simulate(plant, law, motion, duration=duration, step=STEP, every=ROWS, warn=False)
        assert simulation.reference is not None
        wanted = np.broadcast_to(simulation.reference[0], simulation.q.shape)
        if simulation.divergence is not None:
            raise LinkwiseError(str(simulation.divergence))
        return Recording(simulation.t, simulation.q, simulation.tau, wanted)

    def load(self, recording: Recording) -> None:
        robot = self.page.robot
        assert recording.wanted is not None
        self.player.moment, self.player.duration = 0.0, recording.duration
        error = recording.q - recording.wanted
        turns = np.array([joint.revolute for joint in robot.coordinate_joints])
        shown = np.where(turns, np.degrees(error), 1000.0 * error)
        self.plot.draw(
            recording.t, shown, robot.joint_names, "error [°]" if turns.all() else "error [° or mm]"
        )
        rms, worst = np.sqrt((shown**2).mean(axis=0)), np.abs(shown).max(axis=0)
        k = int(np.argmax(worst))
        unit = "°" if turns[k] else " mm"
        self.result.content = _says(
            f"largest error {short(float(worst[k]), 3)}{unit} ({escape(robot.joint_names[k])}), "
            f"rms over all joints {short(float(np.sqrt((rms**2).mean())), 3)}"
        )

    def show(self, moment: float) -> None:
        if self.recording is None:
            return
        q, tau, wanted = self.recording.at(moment)
        with self.page.server.atomic():
            if self.ghost is None:
                self.ghost = RobotScene(self.page.server, self.page.robot, Looks(), "/ghost", ghost=True)
            self.ghost.show("skeleton", True)
            assert wanted is not None
            self.ghost.move(wanted)
            self.page.pose(q, tau)
            self.plot.at(moment)

    def hide_ghost(self) -> None:
        if self.ghost is not None:
            self.ghost.show("skeleton", False)

    def close(self) -> None:
        self.dragged.stop()
        self.player.close()


def controller(name: str, model: Robot, frequency: float) -> Controller:
    """A controller by its name, critically damped with this bandwidth [rad/s]."""
    return named(name, model, frequency=frequency if CONTROLLERS[name].feedback else None)


def perturbed(robot: Robot, factors: dict[str, float]) -> Robot:
    """A robot with some parameters multiplied. A link's mass brings its moments along, so that it stays possible."""
    values = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    changed = {}
    for label, factor in factors.items():
        owner, _, kind = label.rpartition(".")
        for other in (f"{owner}.{part}" for part in _TEN) if kind == "m" else (label,):
            changed[other] = factor * values[other]
    return robot.with_parameters(changed) if changed else robot


_TEN = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


def _perturbable(robot: Robot) -> list[str]:
    """Masses of links, then friction and rotor inertia of joints, where they are not zero."""
    values = dict(zip(robot.parameter_labels, robot.parameters.tolist(), strict=True))
    kinds = ("m", "viscous_friction", "coulomb_friction", "rotor_inertia")
    return [
        label for kind in kinds for label, value in values.items() if label.endswith(f".{kind}") and value
    ]


def _says(text: str) -> str:
    return f'<div class="lw-result" style="padding:.3em .8em;font-size:.85em">{text}</div>'
