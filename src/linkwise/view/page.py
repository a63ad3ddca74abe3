"""The 3-D page: server, scene, panel with tabs; ``Page.refresh`` updates everything visible."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.arguments.flags import flag
from linkwise.errors import ShapeError, needed
from linkwise.geometry import solids
from linkwise.geometry.posture import up_of
from linkwise.geometry.visuals import Looks, read_looks
from linkwise.model.coordinates import velocity_coordinates
from linkwise.view.access import LOOPBACK, Access, guarded_server
from linkwise.view.addresses import free_port
from linkwise.view.bars import bars
from linkwise.view.beside import beside
from linkwise.view.live import Live
from linkwise.view.placing import camera_of, floor_of
from linkwise.view.player import Player
from linkwise.view.scene import RobotScene, quaternion
from linkwise.view.stance import natural
from linkwise.view.surroundings import add_surroundings

if TYPE_CHECKING:
    import viser

    from linkwise.collision import Clearance
    from linkwise.motion import Trajectory
    from linkwise.robot.robot import Robot
    from linkwise.simulate import Result

PORT = 8080
SKY, GROUND = (255, 255, 255), (190, 195, 205)  # light where no environment is reflected
LEAVES = (
    0.5  # distance from the middle of the picture at which the camera follows, as a fraction of the reach
)
FLOOR_COLOURS = {
    False: ((225, 228, 232), (200, 205, 212)),
    True: ((44, 48, 54), (62, 68, 76)),
}  # of a light and a dark page: lines of cells and of sections
NARROW = 0.8  # width of a window by its height below which the panel covers the lower part, as on phones
MOMENTS = 24  # of a motion that the camera must see
FIELD = np.radians(40.0)  # of view, from the top to the bottom of the window
_CORNER = np.array([0.66, -0.68, 0.32])  # initial direction of view


class Page:
    """A robot on a web page; created by ``serve``, stopped by ``close``.

    Args:
        looks: visuals of the links.
        robot, motion, frame, host, port, dark, shadows, framed, clearance, others: as for ``serve``.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        looks: Looks | None = None,
        motion: Trajectory | None = None,
        frame: str | None = None,
        host: str = LOOPBACK,
        port: int = PORT,
        dark: bool = False,
        shadows: bool = True,
        framed: bool = False,
        clearance: Clearance | None = None,
        others: Sequence[Robot] = (),
    ):
        dark, shadows, framed = flag("dark", dark), flag("shadows", shadows), flag("framed", framed)
        self.live = Live(robot, frame)
        self.live.q = natural(robot, self.live.q)
        self.robot, self.motion = robot, motion
        self.looks = looks or Looks()
        self.access = Access(host, framed, robot.name)
        self.server: viser.ViserServer = _server(self.access, host, port, robot.name)
        self.host = host
        self.lock = threading.RLock()
        self._floor: Any = None
        self.followers: list[Any] = []  # called with the position after every change
        self.handles: list[tuple[Any, Any]] = []  # (checkbox of a handle in the scene, what it calls)
        self.up = up_of(robot)
        self._prepare(dark)
        self.shade(shadows)
        self.scene = RobotScene(self.server, robot, self.looks)
        self.others = beside(self, others)
        self.clearance = clearance
        if clearance is not None:
            add_surroundings(self.scene, clearance)
        self._put_camera()
        from linkwise.view.tabs import build

        self._replayed: Player | None = None
        self.tabs = build(self)
        self.refresh()

    @property
    def port(self) -> int:
        return self.server.get_port()

    @property
    def url(self) -> str:
        """Address of the page for this machine, with the token that it requires."""
        return self._address(LOOPBACK if self.access.any_address else self.host)

    @property
    def network_url(self) -> str | None:
        """Address for other machines; None if the page is bound to one address, which ``url`` names."""
        return self._address(socket.gethostname()) if self.access.any_address else None

    def _address(self, host: str) -> str:
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{self.port}/?token={self.access.token}"

    def __repr__(self) -> str:
        return f"<Page: {self.robot.name} at {self.url}; .close() stops it>"

    def close(self) -> None:
        if self._replayed is not None:
            self._replayed.close()
        for tab in self.tabs:
            tab.close()
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()

    # -- changes ------------------------------------------------------------------------------------------------

    def pose(self, q: Sequence[float] | np.ndarray, torques: np.ndarray | None = None) -> None:
        """Show the robot at q.

        Args:
            q: positions [rad or m], shape (nq,).
            torques: [N·m or N], shape (n,); None: gravity torques at q.
        """
        wanted = np.asarray(q, dtype=float)
        if wanted.shape != (self.robot.nq,):
            raise ShapeError(f"q: expected shape ({self.robot.nq},), got {wanted.shape}")
        with self.lock:
            self.live.q = wanted
            self.refresh(torques)

    def play(self) -> None:
        """Play the given motion, from its start, again and again."""
        from linkwise.view.tabs.motion import MotionTab

        if self.motion is not None:
            for tab in self.tabs:
                if isinstance(tab, MotionTab):
                    tab.toggle()

    def replay(self, result: Result, moment: float | None = None) -> None:
        """Show a simulation, with arrows for the forces of contacts: at one moment, or played again and again.

        Args:
            result: the simulation of one robot, that of this page.
            moment: [s]; None: it is played.
        """
        if result.q.ndim != 2 or result.q.shape[-1] != self.robot.nq:
            raise ShapeError(f"result: expected q of shape (rows, {self.robot.nq}), got {result.q.shape}")
        touches = bool(result.robot.contact_names)
        if self._replayed is not None:
            self._replayed.close()
            self._replayed = None

        def shown(now: float) -> None:
            row = int(np.clip(np.searchsorted(result.t - result.t[0], now), 0, len(result.t) - 1))
            self.pose(result.q[row], result.tau[row])
            if touches:
                self.scene.arrows(result.contact_points[row], result.contact_arrows[row])

        shown(0.0 if moment is None else moment)
        if moment is None:
            self._replayed = Player(shown)
            self._replayed.duration = float(result.t[-1] - result.t[0])
            self._replayed.play()

    def carry(self, mass: float) -> None:
        """Attach a load [kg] to the tip."""
        with self.lock:
            self.live.load = float(mass)
            self.scene.carry(self.live.load, self.live.tip)
            self.refresh()

    def shade(self, shadows: bool) -> None:
        """Switch shadows and reflections. Without a graphics card they take most of the time: the first picture of
        the environment that is reflected alone takes several seconds."""
        self.shadows = flag("shadows", shadows)
        scene = self.server.scene
        scene.configure_default_lights(cast_shadow=shadows)
        scene.configure_environment_map("warehouse" if shadows else None)
        scene.add_light_hemisphere(
            "/sky", sky_color=SKY, ground_color=GROUND, intensity=2.0, visible=not shadows
        )

    def only_handle(self, shown: Any) -> None:
        """Remove the handles of all other checkboxes: handles at the same place could not be told apart."""
        for switch, changed in self.handles:
            if switch is not shown and switch.value:
                switch.value = False
                changed()

    def refresh(self, torques: np.ndarray | None = None) -> None:
        """Update scene, bars and controls to the present state."""
        if not self.robot.dof:
            return
        with self.lock, self.server.atomic():
            q = self.live.q
            caption = "torques of the motion"
            if torques is None:
                torques = self.live.holding()
                caption = (
                    "gravity torques" if self.live.pushed is None else "torques against gravity and the force"
                )
            if self.others:
                caption = f"{self.robot.name}: {caption}"
            self.scene.move(q)
            self.scene.colour(torques / self.live.scale)
            self.bars.content = bars(velocity_coordinates(self.robot), torques, self.live.scale, caption)
            for other in self.others:
                other.follow(q)
            self._keep_in_view()
            for follow in self.followers:
                follow(q)

    # -- once ---------------------------------------------------------------------------------------------------

    def darken(self, dark: bool) -> None:
        """Switch between a light and a dark page."""
        self.dark = flag("dark", dark)
        self.server.gui.configure_theme(
            control_width="large", dark_mode=dark, show_logo=False, show_share_button=False
        )
        if self._floor is not None:
            self._floor.cell_color, self._floor.section_color = FLOOR_COLOURS[dark]

    def _prepare(self, dark: bool) -> None:
        gui, scene = self.server.gui, self.server.scene
        self.darken(dark)
        gui.main_panel.dock_right()
        gui.set_panel_label(f"{self.robot.name} · {len(self.robot.joint_names)} joints")
        scene.set_up_direction(self.up)
        self.torques = gui.add_folder("Torques")
        with self.torques:
            self.bars = gui.add_html(bars((), np.zeros(0), np.zeros(0)))

    def centre(self) -> None:
        """Turn the cameras of all visitors to the middle of the robot; their distance and direction stay."""
        low, high = self._box()
        middle = (low + high) / 2
        for client in self.server.get_clients().values():
            move = middle - np.array(client.camera.look_at)
            place = np.array(client.camera.position) + move
            client.camera.position, client.camera.look_at = place, middle
        self._watched = middle

    def _fit_phone(self, client: Any) -> None:
        """In a narrow window, show the robot in the upper part, over the panel, from farther away."""
        aspect = float(client.camera.aspect)
        if not 0.0 < aspect < NARROW:
            return
        away = self._away / aspect
        down = 0.55 * np.tan(FIELD / 2) * np.linalg.norm(away) * self.up
        client.camera.position = self._watched + away - down
        client.camera.look_at = self._watched - down

    def _keep_in_view(self) -> None:
        """Let the camera follow a floating base that has left the middle of the picture."""
        if any(joint.type == "floating" for joint in self.robot.coordinate_joints):
            low, high = self._box()
            if np.linalg.norm((low + high) / 2 - self._watched) > LEAVES * self.scene.bones.reach:
                self.centre()

    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        """Around all robots, at their positions."""
        low, high = self.scene.box(self.live.q)
        for other in self.others:
            corners = other.scene.box(other.live.q)
            low, high = np.minimum(low, corners[0]), np.maximum(high, corners[1])
        return low, high

    def _put_camera(self) -> None:
        """Point the camera at the middle of the robot, or of its motion, and add a floor below it."""
        reach = self.scene.bones.reach
        low, high = self._box()
        if self.clearance is not None and self.motion is not None:
            times = np.linspace(self.motion.begin, self.motion.end, MOMENTS)
            corners = [self.scene.box(q) for q in self.motion.at(times).q]
            low, high = np.min([c[0] for c in corners], axis=0), np.max([c[1] for c in corners], axis=0)
        middle, distance = camera_of(low, high, reach)
        self._watched = middle
        up = solids.from_z_to(self.up)
        camera = self.server.initial_camera
        camera.look_at = middle
        self._away = distance * up.rotation @ _CORNER
        camera.position = middle + self._away
        camera.fov = FIELD
        self.server.on_client_connect(self._fit_phone)
        lowest = floor_of(low, high, self.up, reach)
        if self.clearance is not None and self.clearance.room.floor is not None:
            lowest = self.clearance.room.floor
        cells, sections = FLOOR_COLOURS[self.dark]
        self._floor = self.server.scene.add_grid(
            "/floor",
            width=6 * reach,
            height=6 * reach,
            cell_size=reach / 8,
            section_size=reach / 2,
            cell_color=cells,
            section_color=sections,
            fade_distance=8 * reach,
            shadow_opacity=0.2,
            position=lowest * self.up,
            wxyz=quaternion(up.rotation),
        )


def serve(
    robot: Robot,
    source: str | os.PathLike[str] | None = None,
    *,
    meshes: Iterable[str | os.PathLike[str]] = (),
    motion: Trajectory | None = None,
    frame: str | None = None,
    host: str = LOOPBACK,
    port: int = PORT,
    dark: bool = False,
    shadows: bool = True,
    framed: bool = False,
    clearance: Clearance | None = None,
    others: Sequence[Robot] = (),
) -> Page:
    """Serve a page that shows a robot; it stays until ``close`` is called or the process ends.

    ``Page.url`` contains a token, new for each page, without which the server refuses every request; it also refuses
    requests under other host names and from pages of other origins.

    Args:
        robot: the robot.
        source: the file that the robot came from, by default the one that it was loaded from: visuals of a URDF or
            MJCF file are shown, with meshes that lie inside its own folder tree or inside ``meshes``.
        meshes: further folders with meshes.
        motion: a motion to play.
        frame: the frame that carries the load and can be dragged.
        host: address to bind; "0.0.0.0" serves the page to the network.
        port: port of the page; the next free one if it is busy, see ``Page.port``.
        dark: a dark page.
        shadows: False draws without shadows and reflections, several times as fast on machines without a graphics card.
        framed: whether pages of other servers on this machine, such as notebooks, may show the page in a frame.
        clearance: floor, boxes and capsules of links to be shown, see ``linkwise.collision.Clearance``.
        others: robots that are shown beside it, such as the same one before and after identification; those with as
            many coordinates follow its sliders, and their torques are shown below its own.
    """
    needed("viser", "view")
    known = robot.source if source is None else (source,)
    looks = read_looks(known[0], (*meshes, *known[1:])) if known else Looks()
    return Page(
        robot,
        looks=looks,
        motion=motion,
        frame=frame,
        host=host,
        port=port,
        dark=dark,
        shadows=shadows,
        framed=framed,
        clearance=clearance,
        others=others,
    )


def _server(access: Access, host: str, port: int, label: str) -> viser.ViserServer:
    port = free_port(host, port)
    return guarded_server(access, host=host, port=port, label=label, verbose=False)
