"""PPO (J. Schulman et al., "Proximal policy optimization algorithms", 2017) in one file of PyTorch.

It learns with environments of ``lw.environments``. On a GPU nothing waits for the host: a rollout and an update are
CUDA graphs, and the learning rate is a number on the device. ``60_learn_to_walk.py`` uses it.
"""

from __future__ import annotations

import copy
import itertools
import time
from dataclasses import dataclass

import torch

import linkwise as lw


@dataclass
class Settings:
    """Of PPO."""

    envs: int = 1024
    horizon: int = 24
    """Policy steps of a rollout; an even number, because two arrays of states take turns."""
    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 4
    batches: int = 4
    discount: float = 0.97
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.005
    rate: float = 1e-3
    divergence: float = 0.01
    """Of the policy in one update; the learning rate follows it."""
    spread: float = 0.5
    """Standard deviation of first actions."""
    least_spread: float = -1.6
    """Logarithm of the smallest standard deviation: exploration does not end."""
    enough: float = 1e9
    """Mean return of episodes at which learning ends."""


def network(sizes: tuple[int, ...]) -> torch.nn.Sequential:
    layers: list[torch.nn.Module] = []
    for own, out in itertools.pairwise(sizes):
        layers += [torch.nn.Linear(own, out), torch.nn.ELU()]
    return torch.nn.Sequential(*layers[:-1])


class Agent(torch.nn.Module):
    """Policy and value, with the running mean and variance of observations."""

    def __init__(self, observations: int, actions: int, settings: Settings):
        super().__init__()
        self.policy = network((observations, *settings.hidden, actions))
        self.value = network((observations, *settings.hidden, 1))
        self.log_std = torch.nn.Parameter(torch.full((actions,), settings.spread).log())
        self.register_buffer("mean", torch.zeros(observations))
        self.register_buffer("variance", torch.ones(observations))
        self.register_buffer("count", torch.tensor(1e-4))
        with torch.no_grad():
            self.policy[-1].weight *= 0.01

    def seen(self, observation):
        return ((observation - self.mean) / (self.variance + 1e-4).sqrt()).clamp(-10.0, 10.0)

    @torch.no_grad()
    def learn_statistics(self, observation):
        """Mean and variance of all observations so far, by the parallel formula of Chan et al."""
        rows = observation.reshape(-1, observation.shape[-1])
        mean, variance, count = rows.mean(0), rows.var(0, correction=0), float(len(rows))
        away, total = mean - self.mean, self.count + count
        self.variance.copy_(
            (self.variance * self.count + variance * count + away**2 * self.count * count / total) / total
        )
        self.mean += away * (count / total)
        self.count.copy_(total.clamp(max=1e8))

    def exported(self) -> lw.environments.Policy:
        """The policy for ``linkwise``: rollouts, and C."""
        layers = [m for m in self.policy if isinstance(m, torch.nn.Linear)]
        pairs = [(m.weight.detach().cpu().numpy(), m.bias.detach().cpu().numpy()) for m in layers]
        return lw.environments.Policy.of_layers(
            pairs,
            mean=self.mean.cpu().numpy(),
            deviation=(self.variance + 1e-4).sqrt().cpu().numpy(),
            log_std=self.log_std.detach().cpu().numpy(),
            activation="elu",
        )


class Graphed:
    """A function without arguments as a CUDA graph; on the CPU the function itself."""

    def __init__(self, function, device: str, warm: int = 2):
        self.run = function
        if device == "cpu":
            return
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(warm):
                function()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function()
        self.run = graph.replay


class Learning:
    """Arrays of a rollout, and the two things that are repeated: ``collect`` and ``update``."""

    def __init__(self, env, settings: Settings):
        self.env, self.settings, self.device = env, settings, env.device
        device = env.device
        self.agent = Agent(env.observation_size, env.action_size, settings).to(device)
        s, n, t = settings, env.num_envs, settings.horizon
        new = lambda *shape: torch.zeros(*shape, device=device)  # noqa: E731
        self.seen, self.final = new(t + 1, n, env.observation_size), new(t, n, env.observation_size)
        self.action, self.likelihood = new(t, n, env.action_size), new(t, n)
        self.mu, self.sigma = new(t, n, env.action_size), new(env.action_size)
        self.reward, self.ends, self.terms = new(t, n), new(t, n, 5), new(t, n, len(env.term_names))
        self.value, self.advantage, self.target = new(t + 1, n), new(t, n), new(t, n)
        self.states = [env.state.clone(), env.state.clone()]
        self.seen[t].copy_(env.reset(env.seed))
        self.states[0].copy_(env.state)
        env.state = self.states[0]
        self.rate = torch.tensor(s.rate, device=device)
        self.optimizer = torch.optim.Adam(
            self.agent.parameters(), lr=self.rate, capturable=device != "cpu", foreach=device != "cpu"
        )
        self.index = torch.zeros(n * t // s.batches, dtype=torch.long, device=device)
        self.episodes = new(3)  # sums of returns and lengths of episodes that ended, and their number

    @torch.no_grad()
    def collect(self) -> None:
        """A rollout of every environment: nothing here reads a number from the device."""
        s, agent, env = self.settings, self.agent, self.env
        self.seen[0].copy_(self.seen[-1])
        self.sigma.copy_(agent.log_std.exp())
        for k in range(s.horizon):
            mean = agent.policy(agent.seen(self.seen[k]))
            noise = torch.randn_like(mean)
            torch.add(mean, self.sigma * noise, out=self.action[k])
            self.mu[k].copy_(mean)
            self.likelihood[k].copy_(-(0.5 * noise**2 + self.sigma.log()).sum(-1))
            env.advance(
                self.action[k],
                out=(
                    self.states[(k + 1) % 2], self.seen[k + 1], self.reward[k], self.ends[k], self.final[k],
                    self.terms[k],
                ),
            )  # fmt: skip
        self.value.copy_(agent.value(agent.seen(self.seen)).squeeze(-1))
        last = agent.value(agent.seen(self.final)).squeeze(-1)
        terminated, truncated = self.ends[..., 0], self.ends[..., 1]
        done = terminated + truncated
        running = torch.zeros_like(self.reward[0])
        for k in reversed(range(s.horizon)):
            following = torch.where(done[k] > 0.5, last[k], self.value[k + 1]) * (1.0 - terminated[k])
            error = self.reward[k] + s.discount * following - self.value[k]
            running = error + s.discount * s.trace * (1.0 - done[k]) * running
            self.advantage[k].copy_(running)
        self.target.copy_(self.advantage + self.value[:-1])
        self.advantage.copy_((self.advantage - self.advantage.mean()) / (self.advantage.std() + 1e-8))
        self.episodes += torch.stack(
            [(self.ends[..., 3] * done).sum(), (self.ends[..., 4] * done).sum(), done.sum()]
        )
        agent.learn_statistics(self.seen[:-1])

    def update(self) -> None:
        """One step of the optimizer on the samples of ``index``."""
        s, agent, pick = self.settings, self.agent, self.index
        flat = lambda x: x.flatten(0, 1)[pick]  # noqa: E731
        seen = agent.seen(flat(self.seen[:-1]))
        mean, sigma = agent.policy(seen), agent.log_std.exp()
        away = (flat(self.action) - mean) / sigma
        likelihood = -(0.5 * away**2 + agent.log_std).sum(-1)
        ratio = (likelihood - flat(self.likelihood)).exp()
        advantage = flat(self.advantage)
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - s.clip, 1 + s.clip) * advantage).mean()
        error = (agent.value(seen).squeeze(-1) - flat(self.target)).square().mean()
        loss = -gain + 0.5 * error - s.entropy * agent.log_std.sum()
        self.optimizer.zero_grad(set_to_none=False)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
        with torch.no_grad():
            old = self.sigma
            divergence = (
                ((sigma / old).log() + (old**2 + (flat(self.mu) - mean) ** 2) / (2 * sigma**2) - 0.5)
                .sum(-1)
                .mean()
            )
            grown = torch.where(divergence < 0.5 * s.divergence, self.rate * 1.5, self.rate)
            self.rate.copy_(
                torch.where(divergence > 2 * s.divergence, self.rate / 1.5, grown).clamp(1e-5, 1e-2)
            )
        self.optimizer.step()
        with torch.no_grad():
            agent.log_std.clamp_(s.least_spread, 0.5)

    def shuffled(self, update) -> None:
        """All epochs over the samples of one rollout."""
        count = self.index.numel() * self.settings.batches
        for _ in range(self.settings.epochs):
            order = torch.randperm(count, device=self.device)
            for part in order.view(self.settings.batches, -1):
                self.index.copy_(part)
                update()

    def report(self, passed: float, steps: int, terms: bool) -> tuple[float, ...]:
        """Print how far it is; the only place where the host waits for the device."""
        total, length, count = self.episodes.tolist()
        self.episodes.zero_()
        reward = self.reward.mean().item()
        row = (passed, steps, total / max(count, 1.0), length / max(count, 1.0), reward)
        print(
            f"{passed:6.1f} s {steps / 1e6:8.2f} M steps  return {row[2]:8.3f}  length {row[3]:7.1f}  "
            f"reward {reward:.4f}  rate {self.rate.item():.1e}  spread {self.sigma.mean().item():.2f}",
            flush=True,
        )
        if terms:
            means = (self.terms.mean((0, 1)) / self.env.task.period).tolist()
            print("   ", ", ".join(f"{n} {x:.3f}" for n, x in zip(self.env.term_names, means, strict=True)))
        return row


def train(
    env,
    settings: Settings,
    seconds: float,
    seed: int = 0,
    *,
    every: float = 2.0,
    terms: bool = False,
    curriculum=None,
):
    """Learn until the time is over or the returns are enough.

    Returns the agent and its curve: rows of seconds, steps, return, length and reward.

    Args:
        env: environments with arrays of PyTorch.
        settings: of PPO.
        seconds: wall time, that of compiling included [s].
        seed: of environments, first weights and exploration.
        every: seconds between lines of output.
        terms: whether to print the terms of the reward.
        curriculum: a function of the environment and of the part of the time that is over; it may change inputs.
    """
    began = time.perf_counter()
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    if env.device == "cpu":
        torch.set_num_threads(1)  # these networks are small
    env.reset(seed=seed)
    learning = Learning(env, settings)
    kept = copy.deepcopy(learning.agent.state_dict())
    learning.collect()
    learning.index.copy_(torch.arange(learning.index.numel(), device=env.device))
    collect, update = Graphed(learning.collect, env.device), Graphed(learning.update, env.device)
    learning.agent.load_state_dict(kept)  # what the first runs of the graphs have changed
    learning.rate.fill_(settings.rate)
    learning.episodes.zero_()
    print(f"{env!r}: ready after {time.perf_counter() - began:.1f} s")
    curve, steps, shown = [], 0, time.perf_counter()
    start, changed = shown, shown
    if curriculum is not None:
        curriculum(env, 0.0)
    while (now := time.perf_counter()) - began < seconds:
        collect.run()
        learning.shuffled(update.run)
        steps += settings.envs * settings.horizon
        if curriculum is not None and now - changed > 0.01 * seconds:
            changed = now
            curriculum(env, (now - start) / max(began + seconds - start, 1e-9))
        if now - shown < every:
            continue
        shown = now
        curve.append(learning.report(now - began, steps, terms))
        if curve[-1][2] >= settings.enough:
            break
    print(
        f"{steps / 1e6:.1f} million steps in {time.perf_counter() - began:.1f} s, broken episodes: {env.broken}"
    )
    return learning.agent, curve
