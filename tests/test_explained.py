"""Every public function names the argument that cannot be right, whatever was given for it."""

import functools
import operator
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise import control, identify, motion, simulate

ROBOT = lw.load("two_link")
Q = np.zeros(2)
POSE = np.eye(4)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ROBOT.lock("joint2"), r"lock: .*as in \{'joint2': 0.0\}, got 'joint2'"),
        (lambda: ROBOT.lock(["joint2"]), r"lock: .*as in \{'joint2': 0.0\}"),
        (lambda: lw.load("two_link", lock="joint2"), r"lock: .*\{'joint2': 0.0\}"),
        (lambda: ROBOT.with_gravity(9.81), r"gravity: expected three numbers .*\(0, 0, -9.81\), got 9.81"),
        (lambda: ROBOT.with_gravity("down"), "gravity: expected three numbers"),
        (lambda: ROBOT.with_constraints("tip"), "constraints: expected a list .* got 'tip'"),
        (lambda: ROBOT.with_constraints(lw.Weld("link2", POSE)), "constraints: expected a list"),
        (lambda: ROBOT.with_elastic_joints("joint1"), "springs: expected a dictionary, got 'joint1'"),
        (lambda: ROBOT.with_elastic_joints(900.0), "springs: expected a dictionary"),
        (lambda: ROBOT.with_motors({"joint1": 1}), "given: expected a list"),
        (lambda: ROBOT.kernel(None), "function: expected"),
        (lambda: ROBOT.kernel([]), "kernel: expected the name"),
        (lambda: ROBOT.random("seed"), "rng: expected"),
        (lambda: ROBOT.random(0, size={}), "size: expected"),
        (lambda: ROBOT.pose(Q, frame=["link2"]), "frame"),
        (lambda: ROBOT.mass_matrix(Q, threads=np.zeros(3)), "threads: expected"),
        (lambda: ROBOT.directions({"a": 1}, Q), "q: "),
        (lambda: ROBOT.directions(np.zeros((4, 2)), np.zeros((4, 3))), r"qd: expected shape"),
        (lambda: ROBOT.mass_matrix(), "'q' is missing: positions"),
        (lambda: ROBOT.inverse_dynamics(Q, Q, qdot=Q), "no argument 'qdot'; did you mean 'qd'"),
        (lambda: ROBOT.mass_matrix(Q, friction=True), "no argument 'friction'; valid: q, algorithm"),
        (
            lambda: lw.random_robot(1, 3, frictoin=True),
            "random_robot: no argument 'frictoin'; did you mean 'friction'",
        ),
        (lambda: lw.planar_chain(3, lenght=1.0), "planar_chain: no argument 'lenght'; did you mean 'length'"),
        (lambda: lw.general_chain(3, offsets=False), "general_chain: no argument 'offsets'; "),
        (lambda: ROBOT.mass_matrix(Q, algorithm="crba"), "crba is 'compound_link' here"),
        (lambda: ROBOT.inverse_dynamics(Q, Q, Q, algorithm="rnea"), "rnea is 'newton_euler' here"),
        (lambda: ROBOT.inverse_kinematics([0.3, 0, 0.5]), "for a point give task='position'"),
        (lambda: ROBOT.inverse_kinematics(POSE, task="position"), "for a pose give task='pose'"),
        (lambda: ROBOT.inverse_kinematics([0.3, 0, 0.5, 1, 0, 0, 0]), "a pose is a 4×4 matrix"),
        (lambda: simulate.simulate(ROBOT), "'controller' is missing: one of linkwise.control"),
        (lambda: simulate.simulate(ROBOT, "computed_torque", duration=1.0), "control.named"),
        (lambda: identify.identify(ROBOT, "log.csv"), "log: expected a recording .*read_log"),
        (lambda: identify.identify(ROBOT, np.zeros((9, 3))), "log: expected a recording"),
        (lambda: identify.identify("log.csv", ROBOT), "robot: expected a robot .*got 'log.csv'"),
        (lambda: motion.quintic("0,0", "1,1", 1.0), "start: expected"),
        (lambda: lw.Transform.from_quaternion(3), "from_quaternion"),
        (lambda: control.Gains.from_frequency(None), "frequency and damping: expected"),
        (lambda: lw.compat.rnea(None, Q, Q, Q), "robot: expected a robot"),
        (lambda: lw.load("<robot name='x'/>"), "write it to a file"),
        (lambda: lw.general_chain(10**30), "n = "),
    ],
)
def test_the_argument_is_named(call, expected):
    with pytest.raises(lw.LinkwiseError, match=expected) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_errors_keep_their_python_types():
    with pytest.raises(TypeError):
        ROBOT.mass_matrix()
    with pytest.raises(ValueError, match="task: expected"):
        ROBOT.inverse_kinematics(POSE, task="both")
    with pytest.raises(lw.ArgumentError, match="task: expected"):
        motion.inverse_kinematics(ROBOT, POSE, task="both")


def test_errors_of_users_functions_stay_as_they_are():
    def broken(*arguments):
        raise KeyError("of the user")

    with pytest.raises(KeyError, match="of the user"):
        simulate.simulate(ROBOT, broken, duration=0.01)


def test_functions_stay_themselves():
    """Signature, pickling and names are those of the written function."""
    assert pickle.loads(pickle.dumps(motion.quintic)) is motion.quintic
    assert motion.quintic.__name__ == "quintic"
    assert "duration" in motion.quintic.__wrapped__.__code__.co_varnames


def test_warnings_name_the_line_of_the_caller():
    """Through explained functions and methods of our own, however many there are."""
    robot = lw.load("two_link")
    impossible = np.diag([1.0, 1.0, 9.0])  # no body has such moments
    with pytest.warns(lw.ModelWarning) as told:
        robot.with_payload(1.0, (0.0, 0.0, 0.0), impossible)
    assert {each.filename for each in told} == {__file__}


def test_bugs_of_the_library_are_called_bugs(monkeypatch):
    """Arguments that fit did not cause it: the error keeps its type and its traceback."""
    broken = functools.partial(operator.getitem, {}, "a table of ours")  # in C: no line of a user
    monkeypatch.setattr("linkwise.formats.files.bundled_names", broken)
    with pytest.raises(KeyError, match="a table of ours") as caught:
        lw.load("two_link")
    assert not isinstance(caught.value, lw.LinkwiseError)
    assert any("bug in Linkwise" in note and "two_link" in note for note in caught.value.__notes__)
    assert len(caught.traceback) > 3  # down to the line that failed


def test_wrong_arguments_are_not_called_bugs():
    """Where an argument cannot be compared with what is expected, or is an array of a shape that nobody checks."""
    for call in (
        lambda: lw.collision.sphere_distance({}, [0.0, 0.0, 0.0], 1.0),
        lambda: lw.collision.plane_distance([[1.0], [2.0, 3.0]], [1.0], None),
        lambda: control.ConstantTorque(ROBOT, np.zeros((0, 2))),
        lambda: control.ConstantTorque(ROBOT, {"a": 1}),
        lambda: control.StateObserver(ROBOT, frequency={}),
        lambda: lw.collision.Clearance(ROBOT, upper=np.eye(4)),
        lambda: lw.Transform(np.eye(3), {}),
        lambda: lw.optimal.solve_many(["joint1"], np.zeros((2, 4))),
        lambda: lw.optimal.reaching((1, 2)),
        lambda: ROBOT.forward_dynamics(Q, Q, Q, start=""),
        lambda: ROBOT.inverse_dynamics_derivatives(Q, Q, Q, out=True),
    ):
        with pytest.raises(lw.LinkwiseError) as caught:
            call()
        assert not hasattr(caught.value, "__notes__")
