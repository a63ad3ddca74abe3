"""One policy step over scalars: control, physics, sensors, observation, reward, termination and reset in one program.

A state is one row of numbers: q, q̇, impulses of the contacts, the words of the episode, its number and its step, what
it has drawn, its memory, late observations, its return, and how many of its episodes ended because a number was not
finite. The program is a function of that row, the action, the run-time inputs and the words of the environment, and of
nothing else, so any step can be computed alone, again and anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.algorithms import coupling
from linkwise.algorithms.constrained import constraints
from linkwise.algorithms.contact import effort, law
from linkwise.compiler.ir.program import trace
from linkwise.core.once import once
from linkwise.environments.draws import STREAM, Draw, episode_stream
from linkwise.environments.tasks import Drives, Scalars, State, Task
from linkwise.errors import TraceError
from linkwise.functions.parameters import PAYLOAD, with_symbols
from linkwise.functions.table import mechanism_of
from linkwise.model.contacts import candidate_count, ground_of
from linkwise.model.mechanism import Mechanism
from linkwise.scalar import Scalar, where, while_loop
from linkwise.simulate.integrators import INTEGRATORS, space_of
from linkwise.simulate.moving import Motion
from linkwise.spatial import Vector

ENDS = ("terminated", "truncated", "broken", "return", "length")
"""Columns of the output about ends of episodes; return and length of the episode up to this step."""
DIVERGED = 1e6
"""A state whose numbers sum to more, or to no number, is broken: its episode ends."""
CHANNELS, SENSOR_CHANNELS, PUSH_CHANNELS = 0, 1000, 1900
"""First channels of what is drawn at one step: for updates and resets, sensors, pushes."""
PAYLOAD_RADIUS = 0.05
"""Of the sphere whose inertia a payload has [m]."""


@dataclass(frozen=True)
class Part:
    """Where a quantity is in the row of a state."""

    name: str
    first: int
    size: int


class Program:
    """The step of a task as a function of scalars, and its sizes.

    Args:
        task: the task.
        dtype: "float32" or "float64": what tolerances of solvers depend on.
    """

    def __init__(self, task: Task, dtype: str):
        self.task, self.dtype = task, dtype
        self.robot = task.robot
        self.drives = Drives.of(task.robot, task.control)
        self.candidates = candidate_count(task.robot)
        self.input_sizes = {name: len(np.ravel(value)) for name, value in self.default_inputs().items()}

    # -- sizes --------------------------------------------------------------------------------------------------------

    def default_inputs(self) -> dict[str, np.ndarray]:
        """The run-time inputs with their defaults."""
        found = {"episode_length": np.array([float(self.task.episode_length)])}
        found |= {name: np.array(ends, dtype=float) for name, ends in self.task.randomise.items()}
        if self.task.push is not None:
            found["push"] = np.array([self.task.push.velocity, self.task.push.period])
        for name, value in self.task.inputs.items():
            if name in found:
                raise TraceError(f"{self.task.name}: inputs: {name} is there already")
            found[name] = np.ravel(np.asarray(value, dtype=float))
        return found

    @once
    def parts(self) -> dict[str, Part]:
        """The row of a state."""
        task, found, at = self.task, dict[str, Part](), 0
        late = task.delay[1] * self.observation_size + (1 if task.delay[1] else 0)
        sizes = {"q": self.robot.nq, "qd": self.robot.dof, "touch": 3 * self.candidates, "episode": STREAM}
        sizes |= {
            "number": 1,
            "step": 1,
            "return": 1,
            "broken": 1,
            "drawn": len(task.randomise),
            "late": late,
        }
        sizes |= {f"memory.{name}": size for name, size in task.memory.items()}
        for name, size in sizes.items():
            found[name] = Part(name, at, size)
            at += size
        return found

    @once
    def state_size(self) -> int:
        last = list(self.parts.values())[-1]
        return last.first + last.size

    @once
    def observation_size(self) -> int:
        return self._sizes[0]

    @once
    def terms(self) -> tuple[str, ...]:
        """Names of the terms of the reward."""
        return self._sizes[1]

    @once
    def _sizes(self) -> tuple[int, tuple[str, ...]]:
        """Observation and terms of the reward, found by a trace without physics."""
        found: dict[str, Any] = {}

        def once(**values: Any) -> list[Scalar]:
            inputs = self._named_inputs(values["inputs"])
            links = mechanism_of(self.robot, base_parameters=True)
            draw = Draw(values["episode"], values["step"][0], CHANNELS)
            state = self._fresh(inputs, draw, links, {name: 1.0 for name in self.task.randomise})
            found["observation"] = len(self._observed(state, values["episode"], values["step"][0]))
            found["terms"] = tuple(self._rewards(state))
            return [0.0]

        sizes = {"inputs": sum(self.input_sizes.values()), "episode": STREAM, "step": 1}
        trace(once, sizes, {"none": (1,)}, name=self.task.name)
        return found["observation"], found["terms"]

    @property
    def action_size(self) -> int:
        return self.drives.count

    def inputs(self) -> dict[str, int]:
        """Arguments of the kernel of a step."""
        return {
            "state": self.state_size,
            "action": self.action_size,
            "inputs": sum(self.input_sizes.values()),
            "stream": STREAM,
        }

    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Results of the kernel of a step."""
        return {
            "next_state": (self.state_size,),
            "observation": (self.observation_size,),
            "reward": (),
            "ends": (len(ENDS),),
            "final_observation": (self.observation_size,),
            "terms": (len(self.terms),),
        }

    # -- the step -----------------------------------------------------------------------------------------------------

    def step(
        self,
        state: Sequence[Scalar],
        action: Sequence[Scalar],
        inputs: Sequence[Scalar],
        stream: Sequence[Scalar],
    ) -> dict[str, Any]:
        """The outputs of a step by name."""
        task, held, named = self.task, self._split(state), self._named_inputs(inputs)
        drawn = dict(zip(task.randomise, held["drawn"], strict=True))
        (number,), count = held["number"], held["step"][0] + 1.0
        after = self._after(held, action, named, drawn, count)
        ended = after.terminated = where(task.terminate(after), 1.0, 0.0)
        terms = self._rewards(after)
        broken = self._broken([*after.q, *after.qd, *action, *terms.values()])
        terms = {name: where(broken > 0.5, 0.0, value) for name, value in terms.items()}
        reward: Scalar = 0.0
        for value in terms.values():
            reward = reward + value
        if task.least_reward > -math.inf:
            reward = where(reward < task.least_reward, task.least_reward, reward)
        ended = where(broken > 0.5, 1.0, ended)
        truncated = where(ended > 0.5, 0.0, where(count >= named["episode_length"][0], 1.0, 0.0))
        over = ended + truncated > 0.5
        total = held["return"][0] + reward

        # an episode that ends needs random numbers of the next one, the others those of their step: never both
        episode = episode_stream(stream, number + 1.0)
        words = [where(over, new, old) for new, old in zip(episode, held["episode"], strict=True)]
        step = where(over, 0.0, count)
        after.memory |= self._updated(after, words, step)
        observation, late = self._delayed(self._observed(after, words, step), held["late"])
        begun, first = self._begun(named, episode, number + 1.0, words, step)
        gone = {
            "q": after.q, "qd": self._pushed(after, named, words, step), "touch": after.touch,
            "episode": held["episode"], "number": [number], "step": [count], "return": [total],
            "broken": held["broken"], "drawn": held["drawn"], "late": late,
            **{f"memory.{name}": after.memory[name] for name in task.memory},
        }  # fmt: skip
        begun["broken"] = [held["broken"][0] + broken]
        row = [
            where(over, new, old)
            for name in self.parts
            for new, old in zip(begun[name], gone[name], strict=True)
        ]
        return {
            "next_state": row,
            "observation": [where(over, new, old) for new, old in zip(first, observation, strict=True)],
            "reward": reward,
            "ends": [ended, truncated, broken, total, count],
            "final_observation": [
                where(broken > 0.5, new, old) for new, old in zip(first, observation, strict=True)
            ],
            "terms": list(terms.values()),
        }

    def begin(
        self, inputs: Sequence[Scalar], stream: Sequence[Scalar], number: Sequence[Scalar]
    ) -> dict[str, Any]:
        """The first state and observation of an episode."""
        episode = episode_stream(stream, number[0])
        parts, first = self._begun(self._named_inputs(inputs), episode, number[0], episode, 0.0)
        return {"state": [x for name in self.parts for x in parts[name]], "observation": first}

    # -- parts of the step --------------------------------------------------------------------------------------------

    def _split(self, state: Sequence[Scalar]) -> dict[str, Scalars]:
        return {name: list(state[p.first : p.first + p.size]) for name, p in self.parts.items()}

    def _named_inputs(self, inputs: Sequence[Scalar]) -> dict[str, Scalars]:
        found, at = dict[str, Scalars](), 0
        for name, size in self.input_sizes.items():
            found[name] = list(inputs[at : at + size])
            at += size
        return found

    def _memory(self, held: Mapping[str, Scalars]) -> dict[str, Scalars]:
        return {name: held[f"memory.{name}"] for name in self.task.memory}

    def _links(self, drawn: Mapping[str, Scalar]) -> Mechanism:
        """The robot with the masses that an episode has drawn."""
        symbols: dict[str, Scalars] = {}
        for name, value in drawn.items():
            if name == PAYLOAD:
                symbols[name] = _payload(value, self.task.payload_place)
            elif name in self.robot.parameter_labels:
                symbols[name] = [value]
        if not symbols:
            return mechanism_of(self.robot, base_parameters=True)
        frame = self.task.payload_frame
        return with_symbols(mechanism_of(self.robot), self.robot, frame, symbols, base_parameters=True)

    def _after(
        self,
        held: Mapping[str, Scalars],
        action: Sequence[Scalar],
        named: Mapping[str, Scalars],
        drawn: Mapping[str, Scalar],
        count: Scalar,
    ) -> State:
        """What functions of the task see after the physics steps."""
        links = self._links(drawn)
        q, qd, touch, torque, slip = self._moved(links, held["q"], held["qd"], held["touch"], action, drawn)
        rate = 1.0 / self.task.step
        forces = [[x * rate for x in touch[3 * k : 3 * k + 3]] for k in range(self.candidates)]
        return State(
            self.robot, links, q, qd, list(action), torque, self._memory(held), named, drawn,
            count * self.task.period, forces, slip, touch=touch,
        )  # fmt: skip

    def _moved(
        self,
        links: Mechanism,
        q: Scalars,
        qd: Scalars,
        touch: Scalars,
        action: Sequence[Scalar],
        drawn: Mapping[str, Scalar],
    ) -> tuple[Scalars, Scalars, Scalars, Scalars, list[Scalars]]:
        """(q, q̇, impulses, torques, velocities of contacts) after the physics steps."""
        nq, n, c, a = self.robot.nq, self.robot.dof, 3 * self.candidates, self.action_size
        targets = self.drives.targets(action)
        once = self._contact_step(links, drawn) if c else self._free_step(links)

        def body(turn: Scalar, *values: Scalar) -> tuple[Scalar, ...]:
            q, qd, touch = list(values[:nq]), list(values[nq : nq + n]), list(values[nq + n : nq + n + c])
            torques = self.drives.torques(targets, q, qd, drawn)
            tau = self.drives.applied(torques, qd, n)
            q, qd, touch, slip = once(q, qd, touch, tau)
            return (turn + 1.0, *q, *qd, *touch, *torques, *slip)

        start = (0.0 * action[0], *q, *qd, *touch, *([0.0] * (a + c)))
        if self.task.substeps == 1:
            values = list(body(*start))
        else:
            values = list(while_loop(lambda turn, *_: turn < float(self.task.substeps), body, start))
        parts, at = list[Scalars](), 1
        for size in (nq, n, c, a, c):
            parts.append(values[at : at + size])
            at += size
        return *parts[:4], [parts[4][3 * k : 3 * k + 3] for k in range(self.candidates)]  # type: ignore[return-value]

    def _contact_step(self, links: Mechanism, drawn: Mapping[str, Scalar]) -> Any:
        task, robot = self.task, self.robot
        scene = law.scene_of(robot, task.friction, constraints.prepared(robot))
        mu = drawn.get("contact_friction")
        friction: Scalars = [each.friction if mu is None else mu for each in scene.candidates]
        height: Scalars = [ground_of(robot.contact_parts).height] * len(scene.candidates)
        chosen = effort.chosen(scene, mechanism_of(robot, base_parameters=True), task.accuracy)

        def once(q: Scalars, qd: Scalars, touch: Scalars, tau: Scalars) -> Any:
            made = law.step(
                links,
                coupling.expanded(links, q, positions=True),
                coupling.expanded(links, qd),
                coupling.expanded(links, tau, forces=True),
                scene,
                law.Given(task.step, friction, height, touch),
                chosen,
            )
            slip = [x for velocity in made.velocities for x in velocity]
            return made.q, made.qd, [x for p in made.impulses for x in p], slip

        return once

    def _free_step(self, links: Mechanism) -> Any:
        motion = Motion.of(self.robot, links, self.task.friction, 0.0)
        plain = not motion.held and not self.task.friction

        def once(q: Scalars, qd: Scalars, touch: Scalars, tau: Scalars) -> Any:
            if plain:
                given = lambda at, q, qd: motion.accelerated(q, qd, tau).qdd  # noqa: E731
                q, qd = INTEGRATORS["semi_implicit_euler"](given, q, qd, self.task.step, space_of(links))
            else:
                values: dict[str, Sequence[Scalar]] = {"breakaway": [1.0]}
                q, qd = motion.advanced(values, "semi_implicit_euler", lambda *_: tau, q, qd, self.task.step)
            return list(q), list(qd), [], []

        return once

    def _pushed(
        self, state: State, named: Mapping[str, Scalars], episode: Sequence[Scalar], count: Scalar
    ) -> Scalars:
        """Velocities with the push after this step, where there is one."""
        qd = list(state.qd)
        if self.task.push is None:
            return qd
        size, period = named["push"]
        draw = Draw(episode, count, PUSH_CHANNELS)
        now = where(draw.uniform(0.0, period) < self.task.period, 1.0, 0.0)
        change = Vector(now * draw.noise(size), now * draw.noise(size), 0.0)
        own = state.rotation.transposed() @ change
        qd[3:6] = [a + b for a, b in zip(qd[3:6], own, strict=True)]
        return qd

    def _rewards(self, state: State) -> dict[str, Scalar]:
        found = self.task.reward(state)
        return dict(found) if isinstance(found, Mapping) else {"reward": found}

    def _updated(self, state: State, episode: Sequence[Scalar], count: Scalar) -> dict[str, Scalars]:
        if self.task.update is None:
            return {}
        found = self.task.update(state, Draw(episode, count, CHANNELS))
        return {name: self._sized(name, value) for name, value in found.items()}

    def _observed(self, state: State, episode: Sequence[Scalar], count: Scalar) -> Scalars:
        return list(self.task.observe(state, Draw(episode, count, SENSOR_CHANNELS)))

    def _delayed(self, seen: Scalars, late: Scalars) -> tuple[Scalars, Scalars]:
        """(the observation that arrives, the ones on their way): the number of steps it is late comes first."""
        if not late:
            return seen, []
        steps, rest, size = late[0], late[1:], len(seen)
        arrived = seen
        for back in range(1, self.task.delay[1] + 1):
            older = rest[(back - 1) * size : back * size]
            arrived = [where(steps > back - 0.5, b, a) for a, b in zip(arrived, older, strict=True)]
        return arrived, [steps, *seen, *rest[: len(rest) - size]]

    def _broken(self, values: Sequence[Scalar]) -> Scalar:
        """1 where a number is not finite, or the numbers are very large."""
        total: Scalar = 0.0
        for value in values:
            total = total + abs(value)
        return where(total < DIVERGED, 0.0, 1.0)

    def _begun(
        self,
        named: dict[str, Scalars],
        episode: Sequence[Scalar],
        number: Scalar,
        words: Sequence[Scalar],
        step: Scalar,
    ) -> tuple[dict[str, Scalars], Scalars]:
        """(the parts of the first state of an episode, its first observation), with random numbers of these words."""
        task = self.task
        draw = Draw(words, step, CHANNELS)
        drawn = {name: draw.uniform(*named[name]) for name in task.randomise}
        late: Scalars = []
        if task.delay[1]:
            low, high = task.delay
            late = [float(low) if low == high else draw.uniform(low - 0.5, high + 0.5)]
            late = [_whole(late[0], low, high)]
        state = self._fresh(named, draw, self._links(drawn), drawn)
        seen = self._observed(state, words, step)
        parts = {
            "q": state.q, "qd": state.qd, "touch": [0.0] * (3 * self.candidates), "episode": list(episode),
            "number": [number], "step": [0.0], "return": [0.0], "broken": [0.0], "drawn": list(drawn.values()),
            "late": [*late, *(seen * task.delay[1])],
            **{f"memory.{name}": state.memory[name] for name in task.memory},
        }  # fmt: skip
        return parts, seen

    def _fresh(
        self, named: dict[str, Scalars], draw: Draw, links: Mechanism, drawn: Mapping[str, Scalar]
    ) -> State:
        found = {name: list(value) for name, value in self.task.reset(draw, named).items()}
        q, qd = found.pop("q", None), found.pop("qd", [0.0] * self.robot.dof)
        if q is None or len(q) != self.robot.nq or len(qd) != self.robot.dof:
            raise TraceError(
                f"{self.task.name}: reset: expected q with {self.robot.nq} numbers and qd with {self.robot.dof}"
            )
        memory: dict[str, Scalars] = {name: [0.0] * size for name, size in self.task.memory.items()}
        memory |= {name: self._sized(name, value) for name, value in found.items()}
        zeros: Scalars = [0.0] * self.action_size
        nothing: list[Scalars] = [[0.0] * 3 for _ in range(self.candidates)]
        return State(self.robot, links, q, qd, zeros, zeros, memory, named, drawn, 0.0, nothing, nothing)

    def _sized(self, name: str, value: Sequence[Scalar]) -> Scalars:
        size = self.task.memory.get(name)
        if size is None or len(value) != size:
            raise TraceError(
                f"{self.task.name}: memory {name}: expected {'no such name' if size is None else size}, "
                f"got {len(value)} numbers"
            )
        return list(value)


def _payload(mass: Scalar, place: tuple[float, float, float]) -> Scalars:
    """The ten parameters of a ball of this mass at a place in its frame."""
    x, y, z = place
    own = 0.4 * PAYLOAD_RADIUS**2
    second = (own + y * y + z * z, -x * y, -x * z, own + x * x + z * z, -y * z, own + x * x + y * y)
    return [mass, mass * x, mass * y, mass * z, *(mass * s for s in second)]


def _whole(value: Scalar, low: int, high: int) -> Scalar:
    """The nearest whole number, kept between two."""
    from linkwise.environments.tasks import clipped
    from linkwise.scalar import rint

    return clipped(rint(value), float(low), float(high))
