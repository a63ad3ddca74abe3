"""Numbers with names are matched by name and never by position."""

import numpy as np
import pytest

import linkwise as lw

ORDER = [3, 0, 6, 1, 5, 2, 4]


@pytest.fixture(scope="module")
def robot():
    return lw.load("panda")


@pytest.fixture(scope="module")
def states():
    return [np.random.default_rng(k).normal(size=(5, 7)) for k in range(3)]


def mixed(robot):
    return [robot.joint_names[k] for k in ORDER]


def frame(robot, values):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(values, columns=list(robot.joint_names), index=list("abcde"))[mixed(robot)]


def labelled(robot, values):
    xarray = pytest.importorskip("xarray")
    coords = {"time": 0.1 * np.arange(5), "joint": list(robot.joint_names)}
    return xarray.DataArray(values, dims=("time", "joint"), coords=coords).sel(joint=mixed(robot))


def test_dictionaries(robot, states):
    q = states[0]
    one = {name: q[0][list(robot.joint_names).index(name)] for name in mixed(robot)}
    assert np.array_equal(robot.gravity_torques(one), robot.gravity_torques(q[0]))
    many = {name: q[:, list(robot.joint_names).index(name)] for name in mixed(robot)}
    assert np.array_equal(robot.gravity_torques(many), robot.gravity_torques(q))
    assert np.array_equal(robot.pose(one, "panda_link7"), robot.pose(q[0], frame="panda_link7"))
    assert np.array_equal(robot.kernel("gravity_torques")(one), robot.gravity_torques(q[0]))
    assert np.isclose(robot.manipulability(one), robot.manipulability(q[0]))
    assert robot.plot(one, ghosts=[one])._repr_svg_() == robot.plot(q[0], ghosts=[q[0]])._repr_svg_()
    mixed_call = robot.inverse_dynamics(one, states[1][0], np.zeros(7))
    assert np.array_equal(mixed_call, robot.inverse_dynamics(q[0], states[1][0], np.zeros(7)))


def test_tables(robot, states):
    wanted = robot.inverse_dynamics(*states)
    frames = [frame(robot, values) for values in states]
    for found in (robot.inverse_dynamics(*frames), robot.kernel("inverse_dynamics")(*frames)):
        assert list(found.columns) == list(robot.joint_names)
        assert list(found.index) == list("abcde")
        assert np.array_equal(found.to_numpy(), wanted)
    assert np.array_equal(robot.mass_matrix(frames[0]), robot.mass_matrix(states[0]))
    assert np.array_equal(robot.kinetic_energy(*frames[:2]), robot.kinetic_energy(*states[:2]))
    row = robot.gravity_torques(frames[0].loc["b"])
    assert list(row.index) == list(robot.joint_names)
    assert np.array_equal(row.to_numpy(), robot.gravity_torques(states[0][1]))
    out = np.empty((5, 7))
    assert robot.gravity_torques(frames[0], out=out) is out
    assert np.array_equal(out, robot.gravity_torques(states[0]))


def test_labelled_arrays(robot, states):
    wanted = robot.inverse_dynamics(*states)
    q, qd, qdd = (labelled(robot, values) for values in states)
    found = robot.inverse_dynamics(q, qd.transpose("joint", "time"), qdd)
    assert found.dims == ("time", "joint")
    assert found.joint.to_numpy().tolist() == list(robot.joint_names)
    assert np.array_equal(found.time, q.time)
    assert np.array_equal(found.to_numpy(), wanted)
    still = robot.inverse_dynamics(q, qd.isel(time=0, drop=True), qdd)  # leading dimensions by their names
    assert np.array_equal(still.to_numpy(), robot.inverse_dynamics(states[0], states[1][0], states[2]))
    dataset = q.to_dataset("joint")
    assert np.array_equal(robot.gravity_torques(dataset).to_numpy(), robot.gravity_torques(states[0]))
    with pytest.raises(lw.ShapeError, match="coordinates of the inputs differ"):
        robot.velocity_torques(q, qd.assign_coords(time=np.arange(5)))


def test_structured_arrays(robot, states):
    records = np.zeros(5, dtype=[(name, float) for name in mixed(robot)])
    for k, name in enumerate(robot.joint_names):
        records[name] = states[0][:, k]
    assert np.array_equal(robot.gravity_torques(records), robot.gravity_torques(states[0]))


@pytest.mark.parametrize(
    "make", [lambda robot, x: dict(zip(robot.joint_names, x.T, strict=True)), frame, labelled]
)
def test_names_that_are_missing_or_unknown_are_listed(robot, states, make):
    names = list(robot.joint_names)
    other = lw.load("ur10e")
    values = make(robot, states[0])
    with pytest.raises(lw.UnknownNameError, match=r"q: (none of the names|no dimension)"):
        other.gravity_torques(values)
    locked = robot.lock({names[1]: 0.0, names[4]: 0.0})
    with pytest.raises(lw.UnknownNameError, match=rf"^q: unknown: .*{names[1]}.*; expected") as error:
        locked.gravity_torques(values)
    assert names[4] in str(error.value)
    if isinstance(values, dict):
        few = {name: values[name] for name in names[2:]}
    else:
        few = values[names[2:]] if hasattr(values, "columns") else values.sel(joint=names[2:])
    for call in (robot.gravity_torques, robot.kernel("gravity_torques")):
        with pytest.raises(lw.UnknownNameError, match=rf"^q: no {names[0]}, {names[1]}; expected"):
            call(few)


def test_what_has_no_joint_names_is_never_taken_by_position(robot, states):
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    for value in (pandas.DataFrame(states[0]), pandas.Series(states[0][0]), xarray.DataArray(states[0])):
        with pytest.raises(lw.UnknownNameError, match=r"^q: no.* of this (DataFrame|Series|DataArray)"):
            robot.gravity_torques(value)
    twice = frame(robot, states[0])
    twice = pandas.concat([twice, twice.iloc[:, :1]], axis=1)
    with pytest.raises(lw.UnknownNameError, match="several columns"):
        robot.gravity_torques(twice)
    named = pandas.Series(states[0][0], index=list(robot.joint_names))
    with pytest.raises(lw.DtypeError, match="have names"):
        lw.motion.quintic(named, states[0][1], 1.0)
    with pytest.raises(lw.DtypeError, match="wrench"):
        robot.inverse_dynamics(*states, wrench={"x": 1.0})
    with pytest.raises(lw.ShapeError, match="q and qd: the rows"):
        robot.velocity_torques(frame(robot, states[0]), frame(robot, states[1]).iloc[::-1])
    with pytest.raises(lw.DtypeError, match="q: expected real numbers"):
        robot.gravity_torques(frame(robot, states[0]).astype(str))


def test_moving_bases_and_other_functions():
    robot = lw.load("two_link", base="floating")
    q, v = robot.random(1), np.linspace(0.1, 0.8, robot.dof)
    positions, velocities = robot.kernel("integrate").labels["q"], robot.kernel("integrate").labels["step"]
    assert positions[:7] == tuple(f"root_joint.{x}" for x in ("x", "y", "z", "qx", "qy", "qz", "qw"))
    assert velocities[:6] == tuple(f"root_joint.{x}" for x in ("wx", "wy", "wz", "vx", "vy", "vz"))
    q_named, v_named = dict(zip(positions, q, strict=True)), dict(zip(velocities, v, strict=True))
    assert np.array_equal(robot.integrate(q_named, v_named), robot.integrate(q, v))
    assert np.array_equal(robot.velocity_torques(q_named, v_named), robot.velocity_torques(q, v))
    pandas = pytest.importorskip("pandas")
    moved = robot.integrate(pandas.Series(q_named), v)
    assert list(moved.index) == list(positions)
    step = robot.difference(pandas.Series(q_named), q)
    assert list(step.index) == list(velocities)


def test_starts_of_simulations_and_iterations(robot):
    q = robot.random(3)
    named = dict(zip(reversed(robot.joint_names), q[::-1], strict=True))
    law = lw.control.GravityPD(robot, lw.control.Gains.from_frequency(robot.dof, 1.0))
    runs = [lw.simulate.simulate(robot, law, q, q=start, duration=0.01) for start in (q, named)]
    assert np.array_equal(runs[0].q, runs[1].q)
    assert np.array_equal(robot.inverse_kinematics(robot.pose(q), start=named).q, q)
    pair = robot.kernel(["gravity_torques", "mass_matrix"])
    assert all(np.array_equal(a, b) for a, b in zip(pair(named), pair(q), strict=True))
    loaded = robot.kernel("gravity_torques", inputs=("payload",))
    assert np.array_equal(loaded(named, np.zeros(10)), loaded(q, np.zeros(10)))


def test_single_numbers_for_one_joint(robot, states):
    one = robot.lock(dict.fromkeys(robot.joint_names[1:], 0.2))
    for number in (0.3, np.float64(0.3), np.array(0.3)):
        assert np.array_equal(one.inverse_dynamics(number, 1, 2), one.inverse_dynamics([0.3], [1.0], [2.0]))
    assert one.pose(0.3).shape == (4, 4)
    assert np.array_equal(one.kernel("gravity_torques")(0.3), one.gravity_torques([0.3]))
    with pytest.raises(lw.ShapeError):
        robot.gravity_torques(0.3)
    q = states[0][0]
    assert np.array_equal(robot.gravity_torques(tuple(q)), robot.gravity_torques(list(q)))
