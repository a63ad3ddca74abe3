"""Whole-body problems with TSID and its solver (eiquadprog): run by the interpreter that has it.

    python tsid_problem.py PROBLEM.npz SOLUTION.npz

TSID 1.7.1 from a package index works with Pinocchio 3.4.0 and cmeel-urdfdom 4.0.1; its compiled module may have to be
moved next to its ``__init__.py``.

The problem has: urdf, feet (names of frames), corners ((0, 3) for point feet), q and v of every state in Pinocchio's
order, wanted accelerations (centre of mass, turn of the base, posture), torque and velocity limits, weights.
"""

import sys
import time

import numpy as np

REPEATED, CALLS = 12, 8
"""Calls for each state; the least time counts."""


def main(problem, solution):
    import pinocchio as pin
    import tsid

    given = dict(np.load(problem, allow_pickle=False))  # an open file would be read again in every timed call
    folders = pin.StdVec_StdString()
    folders.append("/")
    robot = tsid.RobotWrapper(str(given["urdf"]), folders, pin.JointModelFreeFlyer(), False)
    model, motors = robot.model(), robot.na
    law = tsid.InverseDynamicsFormulationAccForce("tsid", robot, False)
    law.computeProblemData(0.0, given["q"][0], given["v"][0])
    kept = supports(tsid, law, robot, given)  # TSID does not own them
    com = tsid.TaskComEquality("com", robot)
    turn = tsid.TaskSE3Equality("turn", robot, str(given["base"]))
    turn.useLocalFrame(False)
    turn.setMask(np.array([0.0, 0, 0, 1, 1, 1]))
    posture = tsid.TaskJointPosture("posture", robot)
    for task, size in ((com, 3), (turn, 6), (posture, motors)):
        task.setKp(np.zeros(size))
        task.setKd(np.zeros(size))
    for task, weight in zip((com, turn, posture), given["weights"], strict=True):
        law.addMotionTask(task, float(weight), 1, 0.0)
    torques = tsid.TaskActuationBounds("torques", robot)
    torques.setBounds(-given["torque"], given["torque"])
    law.addActuationTask(torques, 1.0, 0, 0.0)
    speeds = tsid.TaskJointBounds("speeds", robot, float(given["period"]))
    speeds.setVelocityBounds(-given["velocity"], given["velocity"])
    law.addMotionTask(speeds, 1.0, 0, 0.0)
    solver = tsid.SolverHQuadProgFast("solver")
    solver.resize(law.nVar, law.nEq, law.nIn)
    tau, dv, status, times = [], [], [], []
    for k in range(len(given["q"])):
        refer(tsid, (com, turn, posture), given, k)
        own = []
        for _ in range(REPEATED):
            begin = time.process_time()
            for _ in range(CALLS):
                data = law.computeProblemData(0.0, given["q"][k], given["v"][k])
                answer = solver.solve(data)
            own.append((time.process_time() - begin) / CALLS)
        times.append(min(own))
        status.append(answer.status)
        good = answer.status == 0
        tau.append(law.getActuatorForces(answer) if good else np.full(motors, np.nan))
        dv.append(law.getAccelerations(answer) if good else np.full(robot.nv, np.nan))
    names = [name for name in model.names][2:]
    del kept
    np.savez(solution, tau=tau, dv=dv, status=status, times=times, names=names,
             sizes=[law.nVar, law.nEq, law.nIn])  # fmt: skip


def supports(tsid, law, robot, given):
    """Rigid contacts; their forces are weighed equally."""
    data, corners, kept = law.data(), given["corners"], []
    for name in given["feet"]:
        foot, up, friction = str(name), np.array([0.0, 0.0, 1.0]), float(given["friction"])
        least, most = float(given["smallest"]), float(given["largest"])
        if len(corners):
            contact = tsid.Contact6d(foot, robot, foot, corners.T, up, friction, least, most)
            size = 6
        else:
            contact = tsid.ContactPoint(foot, robot, foot, up, friction, least, most)
            contact.useLocalFrame(False)
            size = 3
        contact.setRegularizationTaskWeightVector(np.ones(size))
        contact.setKp(np.zeros(size))
        contact.setKd(np.zeros(size))
        contact.setReference(robot.framePosition(data, robot.model().getFrameId(foot)))
        law.addRigidContact(contact, float(given["force_weight"]), 1.0, 0)
        kept.append(contact)
    return kept


def refer(tsid, tasks, given, k):
    """The wanted accelerations of state k."""
    for task, name, size in zip(
        tasks, ("com", "turn", "posture"), (3, 6, given["posture"].shape[1]), strict=True
    ):
        sample = tsid.TrajectorySample(12, 6) if name == "turn" else tsid.TrajectorySample(size)
        acceleration = np.zeros(6) if name == "turn" else given[name][k]
        if name == "turn":
            acceleration[3:] = given[name][k]
            pose = np.zeros(12)
            pose[3:] = np.eye(3).T.ravel()
            sample.value(pose)
            sample.derivative(np.zeros(6))
        else:
            sample.value(np.zeros(size))
            sample.derivative(np.zeros(size))
        sample.second_derivative(acceleration)
        task.setReference(sample)


if __name__ == "__main__":
    main(*sys.argv[1:])
