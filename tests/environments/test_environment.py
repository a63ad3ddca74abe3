"""Episodes: bits by every way to compute them, ends, randomisation, late sensors, and what NaN does."""

import dataclasses
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from conftest import actions, bouncer
from linkwise.environments import Environment, PDTargets, Policy, Task, Torques, page
from linkwise.environments.ready import joystick
from linkwise.environments.tasks import Drives, State
from linkwise.model.mechanism import quaternion_rotation

sys.path.insert(0, str(Path(__file__).parents[1]))
from c_functions import call_c

STEPS, COUNT = 40, 37


def run(env: Environment, given: np.ndarray, seed: int = 3) -> dict[str, np.ndarray]:
    """Step by step; arrays (envs, steps, …)."""
    env.reset(seed=seed)
    rows = []
    for k in range(given.shape[1]):
        made = env.advance(given[:, k])
        rows.append([*made, env.state])
    names = (*made._fields, "state")
    return {
        name: np.stack(column, axis=1) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }


@pytest.fixture(scope="module")
def episodes(task):
    given = actions(COUNT, STEPS)
    return given, run(Environment(task, COUNT), given)


def test_replay_gives_the_same_bits(task, episodes):
    given, wanted = episodes
    found = Environment(task, COUNT).replay(3, given)
    for name in ("observation", "reward", "ends"):
        assert getattr(found, name).tobytes() == wanted[name].tobytes(), name
    assert found.final_state.tobytes() == np.ascontiguousarray(wanted["state"][:, -1]).tobytes()


def test_one_environment_alone_is_the_same(task, episodes):
    """In any order and number: environment 20 of many is the first of those from 20 on."""
    given, wanted = episodes
    for first, count in ((20, 1), (5, 9)):
        found = run(Environment(task, count, first=first), given[first : first + count])
        for name, values in found.items():
            assert values.tobytes() == wanted[name][first : first + count].tobytes(), name


def test_generated_c_has_the_bits_of_a_step(task, tmp_path):
    env = Environment(task, 3, dtype="float64")
    env.reset(seed=2)
    given = actions(3, 30).astype(float)
    for k in range(25):
        before = env.state.copy()
        made = env.advance(given[:, k])
    ended = int(np.argmax(made.ends[:, 1]))
    assert made.ends[ended, 1] == 1.0  # a step in which an episode ends and another one begins
    parts = call_c(
        env.kernels.step,
        tmp_path,
        before[ended],
        given[ended, k],
        env._packed,
        np.asarray(env._streams)[ended],
    )
    wanted = [env.state[ended], *(np.asarray(x)[ended] for x in made)]
    for a, b in zip(parts, wanted, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b, float).tobytes()


def test_ends_returns_and_final_observations(task, episodes):
    _, made = episodes
    terminated, truncated, broken, total, length = np.moveaxis(made["ends"], -1, 0)
    done = (terminated + truncated) > 0.5
    assert done.any(axis=1).all()
    assert terminated.sum() > 0
    assert truncated.sum() > 0
    assert not broken.any()
    assert (length[truncated > 0.5] == 25).all()
    assert not (terminated * truncated).any()
    same = (made["observation"] == made["final_observation"]).all(axis=-1)
    assert same[~done].all()
    assert not same[done].any()
    running = np.zeros(COUNT)
    for k in range(STEPS):
        running += made["reward"][:, k]
        np.testing.assert_allclose(total[:, k], running, atol=1e-4)
        running[done[:, k]] = 0.0
    np.testing.assert_allclose(made["terms"].sum(axis=-1), made["reward"], atol=1e-6)


def test_a_nan_ends_one_episode_and_touches_no_other(task, episodes):
    given, wanted = episodes
    spoilt = given.copy()
    spoilt[4, 6] = np.nan
    spoilt[11, 9] = np.inf
    env = Environment(task, COUNT)
    found = run(env, spoilt)
    others = np.ones(COUNT, bool)
    others[[4, 11]] = False
    for name, values in found.items():
        assert values[others].tobytes() == wanted[name][others].tobytes(), name
        assert np.isfinite(values).all(), name
    assert env.broken == 2
    assert found["ends"][4, 6, 2] == 1.0
    assert found["ends"][4, 6, 0] == 1.0
    assert found["ends"][:, :, 2].sum() == 2
    assert (found["reward"][[4, 11], [6, 9]] == 0.0).all()
    state = env.state.copy()
    state[2, 3] = np.nan  # and in a state
    env.state = state
    env.advance(given[:, 0])
    assert env.broken == 3
    assert np.isfinite(env.state).all()


def test_ranges_are_inputs_and_episodes_draw_from_them(task):
    env = Environment(task, 400)
    env.reset(seed=0)
    place = env.program.parts["drawn"]
    columns = env.state[:, place.first : place.first + place.size]
    for k, (low, high) in enumerate(task.randomise.values()):
        values = columns[:, k]
        assert values.min() >= low
        assert values.max() <= high
        assert abs(values.mean() - 0.5 * (low + high)) < 4 * (high - low) / np.sqrt(12 * 400)
    env.inputs["contact_friction"] = (0.55, 0.6)
    env.inputs["episode_length"] = 2
    made = [env.advance(np.zeros((400, 1), np.float32)) for _ in range(2)][-1]
    assert (made.ends[:, :2].sum(axis=1) == 1.0).all()
    friction = env.state[:, place.first]
    assert friction.min() >= 0.55
    assert friction.max() <= 0.6
    each = np.linspace(0.0, 0.1, 400)[:, None]
    env.inputs["height"] = each
    env.reset(seed=4)
    assert (env.q[:, 2] <= 0.3 + each[:, 0] + 1e-6).all()
    with pytest.raises(lw.LinkwiseError, match="inputs: no 'hight'"):
        env.inputs["hight"] = 1.0
    with pytest.raises(lw.LinkwiseError, match="expected shape"):
        env.inputs["height"] = (1.0, 2.0)


def test_observations_are_late(plain):
    given = actions(6, 20)
    at_once = run(Environment(plain, 6), given)["final_observation"]
    late = run(Environment(dataclasses.replace(plain, delay=(2, 2)), 6), given)["final_observation"]
    np.testing.assert_array_equal(late[:, 2:], at_once[:, :-2])


def test_a_policy_in_the_kernel_is_the_policy_outside(task):
    env = Environment(task, 8)
    policy = Policy.random((env.observation_size, 8, 1), seed=1, squash="tanh")
    seen = env.reset(seed=6)
    rewards = []
    for _ in range(10):
        seen, reward, *_ = env.step(policy(seen))
        rewards.append(reward)
    env.reset(seed=6)
    rolled = env.rollout(10, policy)
    assert rolled.reward.tobytes() == np.stack(rewards, axis=1).tobytes()
    assert rolled.observation[:, -1].tobytes() == seen.tobytes()
    again = env.rollout(3, policy)  # goes on from there
    assert again.observation.shape == (8, 3, env.observation_size)


def test_feet_stand_on_a_height_field():
    """A stool with three legs on a step of 0.1 m: where it stands says how high the ground is."""
    links = [lw.Link("body", lw.Inertia.from_com(3.0, (0, 0, 0), (0.05, 0.05, 0.05)))]
    joints = []
    for k, angle in enumerate((0.0, 2.1, 4.2)):
        place = lw.Transform.from_rpy((0.1 * np.cos(angle), 0.1 * np.sin(angle), -0.2))
        links.append(lw.Link(f"leg{k}", lw.Inertia.from_com(0.1, (0, 0, 0), (0.01, 0.01, 0.01))))
        joints.append(lw.Joint(f"joint{k}", "revolute", "body", f"leg{k}", place, (0, 1, 0)))
    feet = tuple((f"leg{k}", (0.0, 0.0, 0.0)) for k in range(3))
    legged = lw.environments.Legged("stool", feet, 0.02, (0.0,) * 3, 0.22, 0.1, "body")
    heights = np.where(np.arange(4)[:, None] < 2, 0.0, 0.1) + np.zeros((4, 3))
    terrain = lw.environments.Terrain(heights, (4.0, 4.0))
    made = joystick.task(lw.Robot("stool", links, joints), legged, noise=False, terrain=terrain)
    env = Environment(made, 6)
    env.inputs["push"] = (0.0, 4.0)
    env.reset(seed=0)
    state = env.state.copy()
    state[:, 0] = (-1.6, -1.5, -1.4, 1.4, 1.5, 1.6)
    state[:, made.robot.nq : made.robot.nq + 6] = 0.0
    env.state = state
    for _ in range(60):
        step = env.advance(np.zeros((6, 3), np.float32))
    assert not step.ends[:, 0].any()
    np.testing.assert_allclose(env.q[:, 2], [0.22] * 3 + [0.32] * 3, atol=2e-3)


def test_an_episode_as_a_page_file(task, tmp_path):
    env = Environment(task, 2)
    rolled = env.replay(3, actions(2, 20))
    path = lw.environments.write_episode(task, rolled, tmp_path / "episode.html", environment=1)
    assert path.stat().st_size > 10_000
    made = page.first_episode(task, rolled, 1)
    assert made.contact_arrows.shape == (len(made.t), 1, 3)
    assert made.contact_arrows[..., 2].max() > 10.0  # the foot carries the body


def test_wrong_arguments(task):
    with pytest.raises(lw.LinkwiseError, match="no environment 'cartpole'"):
        lw.environments.make("cartpole")
    with pytest.raises(lw.LinkwiseError, match="device"):
        lw.environments.make("cart_pole", device="gpu")
    with pytest.raises(lw.LinkwiseError, match="unitree_go2"):
        lw.environments.make("go2_joystick")
    env = Environment(task, 2)
    with pytest.raises(lw.LinkwiseError, match=r"action: expected shape \(2, 1\)"):
        env.step(np.zeros((2, 2)))
    with pytest.raises(lw.LinkwiseError, match="randomise: no 'frictoin'"):
        bouncer(randomise={"frictoin": (0.0, 1.0)})
    with pytest.raises(lw.LinkwiseError, match="randomise contact_friction: expected at least 0"):
        bouncer(randomise={"contact_friction": (-0.1, 1.0)})
    with pytest.raises(lw.LinkwiseError, match="memory"):
        Environment(bouncer(memory={"last": 2, "goal": 1}), 1).step(np.zeros((1, 1)))


def test_every_ready_environment_steps(monkeypatch):
    monkeypatch.setattr("linkwise.environments.robots._folders", list)
    for name in lw.environments.names():
        if name in ("anymal_joystick", "g1_walk", "go2_joystick"):
            with pytest.raises(lw.ModelError, match="LINKWISE_ROBOTS"):  # says what to install
                lw.environments.make(name)
            continue
        env = lw.environments.make(name, num_envs=5)
        given = actions(5, 8, env.action_size)
        found = run(env, given)
        assert all(np.isfinite(values).all() for values in found.values()), name
        assert env.broken == 0
        assert env.replay(3, given).observation.tobytes() == found["observation"].tobytes()


def crawler(seed, legs, joints, substeps):
    """A random body on legs, and a task that shows everything functions of a task see."""
    rng = np.random.default_rng(seed)
    links = [lw.Link("body", lw.Inertia.from_com(3.0, (0.0, 0.01, 0.0), (0.03, 0.03, 0.04)))]
    bones, contacts = [], []
    for leg in range(legs):
        parent, at = "body", (0.2 * np.cos(2.0 * leg), 0.2 * np.sin(2.0 * leg), -0.02)
        for k in range(joints):
            name = f"leg{leg}_{k}"
            axis = rng.normal(size=3)
            links.append(lw.Link(name, lw.Inertia.from_com(0.3, (0.0, 0.0, -0.05), (1e-3, 1e-3, 5e-4))))
            place, limits = lw.Transform.from_rpy(at), lw.Limits(-1.0, 1.0)
            axis /= np.linalg.norm(axis)
            bones.append(lw.Joint(name, "revolute", parent, name, place, axis, limits=limits))
            parent, at = name, (0.0, 0.0, -0.1)
        contacts.append(lw.Contact(parent, offset=(0.0, 0.0, -0.12), radius=0.01, friction=0.7))
    robot = lw.Robot(f"crawler{seed}", links, bones).with_base("floating").with_contacts(contacts)
    driven = legs * joints

    def observe(state, draw):
        seen = [*state.q, *state.qd, *state.torque, *state.action, state.time]
        return [*seen, *(x for force in state.forces for x in force), *(x for v in state.slip for x in v)]

    def reset(draw, inputs):
        return {"q": [0.0, 0.0, 0.12 + 0.1 * joints, 0.0, 0.0, 0.0, 1.0, *([0.0] * driven)]}

    return Task(
        f"crawler{seed}", robot, PDTargets(20.0, 0.5, 0.1, 0.3, 3.0), observe, lambda s: s.q[2],
        lambda s: s.q[2] < -9.0, reset, step=0.004, substeps=substeps, episode_length=1000, accuracy=1e-9,
    )  # fmt: skip


def test_steps_are_those_of_the_robots_own_functions():
    """Positions, torques, forces and velocities of contacts of random bodies on legs, of one or several physics steps,
    computed again from the observation before by ``contact_step`` and ``contact_velocities``."""
    for seed, (legs, joints, substeps) in enumerate(((2, 1, 1), (3, 2, 3))):
        task = crawler(seed, legs, joints, substeps)
        robot, driven, count = task.robot, legs * joints, 4
        env = Environment(task, count, dtype="float64")
        seen = env.reset(seed=1)
        given = actions(count, 60, driven).astype(float)
        sizes = np.cumsum([robot.nq, robot.dof, driven, driven, 1, 3 * legs])
        touched = 0
        for k in range(60):
            q, qd = np.split(np.asarray(seen, float), sizes, axis=1)[:2]
            seen = env.advance(given[:, k]).observation
            if k % 4 != 3:
                continue
            for _ in range(substeps):
                target = np.clip(0.1 + 0.3 * given[:, k], -1.0, 1.0)
                torque = np.clip(20.0 * (target - q[:, 7:]) - 0.5 * qd[:, 6:], -3.0, 3.0)
                tau = np.concatenate([np.zeros((count, 6)), torque], axis=1)
                call = {"step": task.step, "accuracy": 1e-9, "friction": task.friction}
                slip = robot.contact_velocities(q, qd, tau, **call)
                q, qd, impulses = robot.contact_step(q, qd, tau, **call)
            parts = np.split(np.asarray(seen, float), sizes, axis=1)
            wanted = (q, qd, torque, given[:, k], np.full((count, 1), (k + 1) * task.period))
            wanted += (impulses.reshape(count, -1) / task.step, slip.reshape(count, -1))
            for part, right in zip(parts, wanted, strict=True):
                np.testing.assert_allclose(part, right, atol=2e-6 * (1.0 + np.abs(right).max()))
            touched += (impulses[..., 2] > 0.0).sum()
        assert touched > 10


def test_drives_are_motors_of_the_robot_within_their_limits():
    """Joints without a motor are not driven, and torques stay within the effort limits unless others are given."""
    chain = lw.planar_chain(3)
    joints = [
        dataclasses.replace(joint, limits=lw.Limits(effort=7.0)) if joint.name == "joint1" else joint
        for joint in chain.joints
    ]
    robot = lw.Robot("loose", chain.links, joints, frames=chain.frames, passive=["joint2"])
    drives = Drives.of(robot, PDTargets(10.0, 1.0))
    assert drives.names == ("joint1", "joint3")
    assert drives.numbers["limits"].tolist() == [7.0, np.inf]
    assert drives.torques([5.0, 5.0], np.zeros(3), np.zeros(3), {}) == [7.0, 50.0]
    assert Drives.of(robot, PDTargets(10.0, 1.0, limits=9.0)).numbers["limits"].tolist() == [9.0, 9.0]
    with pytest.raises(lw.ArgumentError, match="no joint 'joint2' with one axis and a motor"):
        Drives.of(robot, Torques(joints=("joint2",)))


def test_gravity_that_is_not_along_z_is_seen_as_it_is():
    turn = np.array([0.3, -0.2, 0.5, 0.7]) / np.linalg.norm([0.3, -0.2, 0.5, 0.7])
    rotation = quaternion_rotation(turn.tolist())
    matrix = np.array([[*rotation.row(k)] for k in range(3)])
    for pull in ((0.0, 0.0, -9.81), (3.0, -1.0, -9.0), (0.0, 9.81, 0.0)):
        robot = lw.planar_chain(2).with_gravity(pull).with_base("floating")
        seen = State.gravity.fget(SimpleNamespace(robot=robot, rotation=rotation))
        np.testing.assert_allclose(seen, matrix.T @ pull / np.linalg.norm(pull), atol=1e-15)
