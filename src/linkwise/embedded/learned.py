"""A learned policy as C: the network of a file, its weights as a constant table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwise.control.policy import Policy
from linkwise.embedded.entry import Entry, EntryError, Options
from linkwise.robot.robot import Robot


def policy_entries(robot: Robot, options: Options) -> list[Entry]:
    """The function ``policy``: (observation, weights) -> action."""
    if options.weights is None:
        raise EntryError(
            "policy: give the file of the network, --weights FILE (linkwise.environments.Policy.save)"
        )
    policy = Policy.load(options.weights)
    kernel = policy.kernel(options.dtype)
    layers = " x ".join(map(str, policy.sizes))
    summary = (
        f"learned policy of {robot.name}: a network of {layers} with {policy.activation}; the same bits as "
        "linkwise.environments.Policy in this precision"
    )
    mean = policy.weights[: policy.sizes[0]].astype(float)
    spread = 1.0 / np.maximum(
        np.abs(policy.weights[policy.sizes[0] : 2 * policy.sizes[0]].astype(float)), 1e-6
    )

    def states(count: int) -> Mapping[str, np.ndarray]:
        rng = np.random.default_rng(0)
        seen = mean + spread * rng.normal(size=(count, policy.sizes[0]))
        return {"observation": seen, "weights": np.tile(policy.weights.astype(float), (count, 1))}

    return [
        Entry(
            "policy",
            summary,
            kernel,
            options.dtype,
            tables={"weights": policy.weights.astype(float)},
            words={
                "observation": "as in training",
                "weights": "mean and inverse deviation of observations, layers (rows, then offsets), exploration",
                "action": "mean of the policy",
            },
            states=states,
        )
    ]
