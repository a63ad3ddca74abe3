"""Many environments of one task, stepped by one kernel call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linkwise.algorithms.constrained.constraints import computed_in
from linkwise.compiler.ir.program import trace
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.rollout import NEXT, Feed, Interface, RolloutKernel, RolloutProgram
from linkwise.control.policy import Policy
from linkwise.environments import arrays, draws
from linkwise.environments.stepped import ENDS, SENSOR_CHANNELS, Program
from linkwise.environments.tasks import Task
from linkwise.errors import ArgumentError, ShapeError

EXPLORED = SENSOR_CHANNELS + 300
"""First channel of the random part of actions in rollouts with a policy."""


class Step(NamedTuple):
    """Outputs of the kernel of one policy step, each with a row for every environment."""

    observation: Any
    """(envs, observation): of the new episode where one ended."""
    reward: Any
    """(envs,)."""
    ends: Any
    """(envs, 5): terminated, truncated, broken (0 or 1), return and length of the episode up to this step."""
    final_observation: Any
    """(envs, observation): of the episode that ended; else the observation."""
    terms: Any
    """(envs, terms) of the reward."""


@dataclass(frozen=True)
class Rollout:
    """Several policy steps of every environment, shape (envs, steps, …)."""

    observation: Any
    """After each step."""
    reward: Any
    ends: Any
    action: Any
    q: Any
    """Positions after each step; of the new episode where one ended."""
    impulse: Any
    """Of the contacts in the last physics step of each [N·s], three for every candidate, the normal last."""
    final_state: Any


class Inputs(MutableMapping[str, Any]):
    """Run-time inputs by name: shape (size,) for all environments, or (envs, size)."""

    def __init__(self, owner: Environment, defaults: Mapping[str, np.ndarray]):
        self._owner, self._values = owner, {name: np.array(value) for name, value in defaults.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self._values:
            raise ArgumentError(f"inputs: no {name!r}; there are {', '.join(self._values)}")
        size, count = self._values[name].shape[-1], self._owner.num_envs
        array = np.asarray(value, dtype=float)
        array = array.reshape(1) if not array.ndim else array
        if array.shape not in ((size,), (count, size)):
            raise ShapeError(
                f"inputs: {name}: expected shape ({size},) or ({count}, {size}), got {array.shape}"
            )
        self._values[name] = array
        self._owner._inputs_changed()

    def __delitem__(self, name: str) -> None:
        raise ArgumentError(f"inputs: {name} cannot be removed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def packed(self) -> np.ndarray:
        """All of them side by side: (size,), or (envs, size) where one is."""
        parts = list(self._values.values())
        rows = max(part.ndim for part in parts)
        if rows == 1:
            return np.concatenate(parts)
        count = self._owner.num_envs
        return np.concatenate([np.broadcast_to(part, (count, part.shape[-1])) for part in parts], axis=-1)


class Environment:
    """Environments of one task side by side.

    A policy step (physics, sensors, observation, reward, ends and resets of all environments) is one call of one
    kernel, and on a GPU one launch. An environment whose numbers are no longer finite begins a new episode; ``broken``
    counts these, and no other environment is touched.

    Args:
        task: what is stepped, see ``Task``; ``make`` has ready ones.
        num_envs: how many.
        device: "cpu", "cuda" or "cuda:1".
        arrays: "numpy", "torch", "jax" or "cupy"; by default NumPy on the CPU, PyTorch or else CuPy on a GPU.
        dtype: "float32" or "float64".
        first: number of the first environment: several processes with different numbers are parts of one whole.
        threads: for the CPU; by default all cores where that is worth it.
    """

    def __init__(
        self,
        task: Task,
        num_envs: int = 1,
        *,
        device: str = "cpu",
        arrays: str | None = None,
        dtype: str = "float32",
        first: int = 0,
        threads: int | None = None,
    ):
        from linkwise.environments.arrays import kind_for, placed

        if num_envs < 1 or first < 0 or first + num_envs > draws.MOST:
            raise ArgumentError(f"num_envs and first: expected at least 1 and 0, below {draws.MOST} together")
        self.task, self.num_envs, self.device, self.dtype = task, int(num_envs), device, dtype
        self.first, self.threads = int(first), threads
        self.kind = kind_for(device, arrays)
        self.kernels = Kernels.of(task, dtype)
        self.program = self.kernels.program
        self.seed = 0
        self.inputs = Inputs(self, self.program.default_inputs())
        self._packed: Any = None
        self._inputs_changed()
        self._streams: Any = None
        self._state: Any = None
        self._seen: Any = None
        self._placed = lambda array: placed(np.asarray(array, dtype), self.kind, device)

    # -- sizes --------------------------------------------------------------------------------------------------------

    @property
    def observation_size(self) -> int:
        """Numbers of an observation."""
        return self.program.observation_size

    @property
    def action_size(self) -> int:
        """Numbers of an action; most tasks expect them between −1 and 1."""
        return self.program.action_size

    @property
    def term_names(self) -> tuple[str, ...]:
        """Names of the terms of the reward."""
        return self.program.terms

    @property
    def state(self) -> Any:
        """The states of all environments, shape (envs, numbers); what is kept goes on from there."""
        if self._state is None:
            self.reset()
        return self._state

    @state.setter
    def state(self, value: Any) -> None:
        self._state = value

    @property
    def q(self) -> Any:
        """Positions [rad or m], shape (envs, nq)."""
        return self.state[..., : self.task.robot.nq]

    @property
    def qd(self) -> Any:
        """Velocities [rad/s or m/s], shape (envs, n)."""
        robot = self.task.robot
        return self.state[..., robot.nq : robot.nq + robot.dof]

    @property
    def broken(self) -> int:
        """Episodes that ended because a number was not finite, since the last ``reset``."""
        place = self.program.parts["broken"].first
        return int(arrays.on_host(self.state)[..., place].sum())

    # -- episodes -----------------------------------------------------------------------------------------------------

    def reset(self, seed: int | None = None) -> Any:
        """Begin an episode in every environment.

        Args:
            seed: of all random numbers; None: the last one again.

        Returns:
            The observations, shape (envs, observation).
        """
        if seed is not None:
            self.seed = int(seed)
        numbers = np.arange(self.first, self.first + self.num_envs)
        self._streams = self._placed(draws.environment_streams(self.seed, numbers))
        none = self._placed(np.zeros((self.num_envs, 1)))
        self._state, self._seen = self._call(self.kernels.begin, self._packed, self._streams, none)
        return self._seen

    def step(self, action: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One policy step of every environment; those whose episode ends begin a new one.

        Args:
            action: shape (envs, action), an array of the environment's kind on its device.

        Returns:
            Observations, rewards, whether the episode ended by itself, whether it was cut off by its length, and a
            dictionary with "final_observation", "broken", "return", "length" and "terms", as in Gymnasium.
        """
        made = self.advance(action)
        flags = {name: made.ends[..., k] for k, name in enumerate(ENDS)}
        info = {
            "final_observation": made.final_observation,
            "broken": flags["broken"] > 0.5,
            "return": flags["return"],
            "length": flags["length"],
            "terms": made.terms,
        }
        return made.observation, made.reward, flags["terminated"] > 0.5, flags["truncated"] > 0.5, info

    def advance(self, action: Any, out: Sequence[Any] | None = None) -> Step:
        """``step`` as the kernel gives it: one launch on a GPU, nothing else.

        Args:
            action: shape (envs, action).
            out: arrays for the next state and for each part of a ``Step``, which must not share memory with the state.
        """
        if self._state is None:
            self.reset()
        if self.kind == "numpy":
            action = np.asarray(action, self.dtype)
        if tuple(action.shape) != (self.num_envs, self.action_size):
            raise ShapeError(
                f"action: expected shape ({self.num_envs}, {self.action_size}), got {tuple(action.shape)}"
            )
        results = self._call(self.kernels.step, self._state, action, self._packed, self._streams, out=out)
        self._state, self._seen = results[0], results[1]
        return Step(*results[1:])

    def rollout(self, steps: int, policy: Policy, weights: Any = None, *, explore: bool = False) -> Rollout:
        """Several policy steps of all environments in one kernel, the policy included.

        Args:
            steps: how many.
            policy: the network; it is part of the compiled code, so this is for small ones.
            weights: shape (weights,), by default those of the policy.
            explore: whether actions have the policy's random part.
        """
        kernel = self.kernels.rollout(policy, explore)
        if self._state is None:
            self.reset()
        values = policy.weights if weights is None else weights
        flat = self._placed(np.asarray(arrays.on_host(values), float))
        state = arrays.side_by_side(self._state, self._seen, self.kind)
        given = {"state": state, "inputs": self._packed, "stream": self._streams, "weights": flat}
        return self._rolled(kernel, given, steps)

    def replay(self, seed: int, actions: Any) -> Rollout:
        """The episodes of a seed with these actions, from the first step on: the same bits on every machine.

        Args:
            seed: of ``reset``.
            actions: shape (envs, steps, action).
        """
        actions = self._placed(arrays.on_host(actions))
        if actions.ndim != 3 or actions.shape[0] != self.num_envs or actions.shape[2] != self.action_size:
            expected = (self.num_envs, "steps", self.action_size)
            raise ShapeError(f"actions: expected shape {expected}, got {tuple(actions.shape)}")
        self.reset(seed)
        steps = actions.shape[1]
        table = actions.reshape(self.num_envs, steps * self.action_size)
        given = {"state": self._state, "inputs": self._packed, "stream": self._streams, "action": table}
        return self._rolled(self.kernels.replayed, given, steps)

    def _rolled(self, kernel: RolloutKernel, given: Mapping[str, Any], steps: int) -> Rollout:
        final, written = kernel(given, steps=int(steps), dtype=self.dtype, threads=self.threads)
        self._state = final["state"][..., : self.program.state_size]
        self._seen = written["record_observation"][..., -1, :]
        keys = ("observation", "reward", "ends", "action", "q", "impulse")
        parts = {key: written[f"record_{key}"] for key in keys}
        parts["reward"] = parts["reward"][..., 0]
        return Rollout(**parts, final_state=self._state)

    # -- arrays -------------------------------------------------------------------------------------------------------

    def _inputs_changed(self) -> None:
        packed = self.inputs.packed().astype(self.dtype)
        if self._packed is not None and tuple(self._packed.shape) == packed.shape:
            self._packed = arrays.assign(self._packed, packed, self.kind, self.device)
        else:
            self._packed = arrays.placed(packed, self.kind, self.device)

    def _call(self, kernel: Kernel, *args: Any, out: Sequence[Any] | None = None) -> Any:
        more: dict[str, Any] = {} if self.threads is None else {"threads": self.threads}
        return kernel(*args, **more) if out is None else kernel(*args, out=tuple(out), **more)

    def __repr__(self) -> str:
        return (
            f"<Environment {self.task.name}: {self.num_envs} × {self.observation_size} observations, "
            f"{self.action_size} actions, {self.kind} on {self.device}, {self.dtype}>"
        )


class Kernels:
    """The compiled code of a task in one precision, made once."""

    def __init__(self, task: Task, dtype: str):
        self.task, self.program = task, Program(task, dtype)
        self.dtype = dtype
        self._rollouts: dict[Any, RolloutKernel] = {}
        self.step = self._kernel("environment_step", "step", self.program.inputs(), self.program.outputs())
        sizes = {"inputs": self.program.inputs()["inputs"], "stream": draws.STREAM, "number": 1}
        shapes = {"state": (self.program.state_size,), "observation": (self.program.observation_size,)}
        self.begin = self._kernel("environment_begin", "begin", sizes, shapes)

    @classmethod
    def of(cls, task: Task, dtype: str) -> Kernels:
        """Made once for a task."""
        if dtype not in ("float32", "float64"):
            raise ArgumentError(f"dtype: expected float32 or float64, got {dtype!r}")
        known = task.__dict__.setdefault("_kernels", {})
        if dtype not in known:
            known[dtype] = cls(task, dtype)
        return known[dtype]

    def _kernel(
        self, name: str, method: str, inputs: Mapping[str, int], outputs: Mapping[str, tuple[int, ...]]
    ) -> Kernel:
        def build(dtype: str) -> Any:
            with computed_in(dtype):
                function = getattr(Program(self.task, dtype), method)
                return trace(function, inputs, outputs, name=name, dtype=dtype)  # type: ignore[arg-type]

        return Kernel(name, inputs.items(), outputs.items(), self.dtype, build)

    @property
    def replayed(self) -> RolloutKernel:
        """A rollout with given actions."""
        feed = {"action": Feed(self.program.action_size, self.program.action_size, shared=False)}
        return self._rolled("replay", feed, None, False)

    def rollout(self, policy: Policy, explore: bool) -> RolloutKernel:
        """A rollout with a policy whose weights are an input."""
        if (policy.sizes[0], policy.sizes[-1]) != (self.program.observation_size, self.program.action_size):
            raise ShapeError(
                f"policy: expected {self.program.observation_size} observations and {self.program.action_size} "
                f"actions, got {policy.sizes[0]} and {policy.sizes[-1]}"
            )
        feed = {"weights": Feed(policy.weight_count, 0)}
        return self._rolled(f"policy {policy.key} {explore}", feed, policy, explore)

    def _rolled(
        self, key: str, feed: Mapping[str, Feed], policy: Policy | None, explore: bool
    ) -> RolloutKernel:
        if key in self._rollouts:
            return self._rollouts[key]
        program = self.program
        state = program.state_size + (program.observation_size if policy else 0)
        written = {
            "record_observation": (program.observation_size,),
            "record_reward": (1,),
            "record_ends": (len(ENDS),),
            "record_action": (program.action_size,),
            "record_q": (self.task.robot.nq,),
            "record_impulse": (max(program.parts["touch"].size, 1),),
        }
        parameters = {"inputs": program.inputs()["inputs"], "stream": draws.STREAM}
        interface = Interface({"state": state}, parameters, feed, written)
        build = _RolloutBuilder(self.task, interface, policy, explore)
        identity = hashlib.sha256(build.text(self.dtype).encode()).digest()
        self._rollouts[key] = RolloutKernel("environment_rollout", interface, build, identity)
        return self._rollouts[key]


class _RolloutBuilder:
    """Makes the program of a rollout in one precision."""

    def __init__(self, task: Task, interface: Interface, policy: Policy | None, explore: bool):
        self.task, self.interface, self.policy, self.explore = task, interface, policy, explore
        self._made: dict[str, RolloutProgram] = {}

    def __call__(self, dtype: Any) -> RolloutProgram:
        if dtype not in self._made:
            made = Program(self.task, dtype)
            with computed_in(dtype):
                step = trace(
                    lambda **values: self._step(made, **values),
                    self.interface.inputs(),
                    self.interface.outputs(),
                    name="environment_rollout",
                    dtype=dtype,
                )
            self._made[dtype] = RolloutProgram(step, self.interface)
        return self._made[dtype]

    def text(self, dtype: str) -> str:
        """Identifies the program."""
        from linkwise.compiler.emit import c

        return c.source(self(dtype).step)

    def _step(self, made: Program, **values: Any) -> dict[str, Any]:
        state, inputs, stream = values["state"], values["inputs"], values["stream"]
        if self.policy is None:
            action = values["action"]
        else:
            state, seen = state[: made.state_size], state[made.state_size :]
            part = made.parts["episode"], made.parts["step"]
            episode, count = (state[p.first : p.first + p.size] for p in part)
            draw = draws.Draw(episode, count[0], EXPLORED) if self.explore else None
            action = self.policy.action(seen, values["weights"], draw)
        found, touch = made.step(state, action, inputs, stream), made.parts["touch"]
        following = [*found["next_state"], *(found["observation"] if self.policy else [])]
        return {
            NEXT + "state": following,
            "record_observation": found["observation"],
            "record_reward": [found["reward"]],
            "record_ends": found["ends"],
            "record_action": list(action),
            "record_q": found["next_state"][: made.robot.nq],
            "record_impulse": found["next_state"][touch.first : touch.first + touch.size] or [0.0],
        }
