"""MuJoCo Playground's environment of a quadruped with joystick commands, as a peer on the same GPU."""

from __future__ import annotations

import re
import time

TASK = "Go1JoystickFlatTerrain"


def measured(count: int, steps: int) -> tuple[float, int] | str:
    """(policy steps a second, physics steps of each), or why there are none.

    Playground's own model with feet only, its own settings (one solver iteration), MJX on JAX, random actions, all
    steps in one compiled scan. Episodes that end are not begun again, which only saves it work.

    Args:
        count: environments side by side.
        steps: policy steps that are timed.
    """
    try:
        import jax
        from mujoco_playground._src import mjx_env
        from mujoco_playground._src.locomotion.go1 import base, joystick
    except ImportError as error:
        return f"MuJoCo Playground is not installed: {error}"
    mjx_env.ensure_menagerie_exists = lambda: None  # it would download pictures of the robot
    everything = base.get_assets
    base.get_assets = lambda: {name: without_meshes(name, data) for name, data in everything().items()}
    settings = joystick.default_config()
    settings.impl = "jax"
    env = joystick.Joystick(task="flat_terrain", config=settings)

    def rolled(state, key):
        def one(held, key):
            shape = (count, env.action_size)
            held = jax.vmap(env.step)(held, jax.random.uniform(key, shape, minval=-1.0, maxval=1.0))
            return held, held.reward.mean()

        return jax.lax.scan(one, state, jax.random.split(key, steps))

    rolled = jax.jit(rolled)
    state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), count))
    for k in range(
        2
    ):  # the first call gives arrays of other types than those of reset: the second compiles again
        state, _ = jax.block_until_ready(rolled(state, jax.random.key(k)))
    began = time.perf_counter()
    jax.block_until_ready(rolled(state, jax.random.key(2)))
    return count * steps / (time.perf_counter() - began), env.n_substeps


def without_meshes(name: str, data: bytes) -> bytes:
    """A model file without what is only drawn; collisions are those of spheres."""
    if not name.endswith(".xml"):
        return data
    text = re.sub(r"<mesh [^>]*/>", "", data.decode())
    return re.sub(r"<geom [^>]*mesh=[^>]*/>", "", text).encode()
