"""Problems of a mobile arm at rest with one other library: run by the interpreter that has it.

    python arm_peers.py tsid|placo|pink|mink PROBLEM.npz SOLUTION.npz

Minimise w₁ |J_com a − com|² + w₂ |a − posture|² with |aᵢ| ≤ limitᵢ. For TSID and Placo a are accelerations during a
second, for Pink and mink displacements (with ProxQP): at rest these are the same problem.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

REPEATED, CALLS = 12, 8
"""Calls for each state; the least time counts."""


def by_tsid(given, names):
    import pinocchio as pin
    import tsid

    folders = pin.StdVec_StdString()
    folders.append("/")
    robot = tsid.RobotWrapper(str(given["urdf"]), folders, False)
    model = robot.model()
    order = [names.index(name) for name in list(model.names)[1:]]
    q = given["q"][:, order]
    law = tsid.InverseDynamicsFormulationAccForce("tsid", robot, False)
    law.computeProblemData(0.0, q[0], np.zeros(robot.nv))
    com, posture = tsid.TaskComEquality("com", robot), tsid.TaskJointPosture("posture", robot)
    for task, size, weight in ((com, 3, given["weights"][0]), (posture, robot.na, given["weights"][1])):
        task.setKp(np.zeros(size))
        task.setKd(np.zeros(size))
        law.addMotionTask(task, 1e3 * float(weight), 1, 0.0)  # it adds 1e-8 to the cost of every unknown
    speeds = tsid.TaskJointBounds("speeds", robot, 1.0)
    speeds.setVelocityBounds(-given["limit"][order], given["limit"][order])
    law.addMotionTask(speeds, 1.0, 0, 0.0)
    solver = tsid.SolverHQuadProgFast("solver")
    solver.resize(law.nVar, law.nEq, law.nIn)
    still = np.zeros(robot.nv)

    def solve(k):
        for task, wanted in ((com, given["com"][k]), (posture, given["posture"][k][order])):
            sample = tsid.TrajectorySample(len(wanted))
            sample.value(np.zeros(len(wanted)))
            sample.derivative(np.zeros(len(wanted)))
            sample.second_derivative(wanted)
            task.setReference(sample)

        def call():
            answer = solver.solve(law.computeProblemData(0.0, q[k], still))
            return law.getAccelerations(answer)

        return call

    solve.kept = (robot, speeds)  # TSID does not own them
    return solve, order


def by_placo(given, names):
    import placo

    robot = placo.RobotWrapper(str(given["urdf"]), placo.Flags.ignore_collisions)
    order = [names.index(name) for name in robot.joint_names()]
    own = [names[k] for k in order]
    solver = placo.DynamicsSolver(robot)
    solver.mask_fbase(True)
    solver.dt, solver.torque_cost = 1.0, 0.0
    solver.enable_velocity_limits(True)
    for name, limit in zip(own, given["limit"][order], strict=True):
        robot.set_velocity_limit(name, float(limit))
    com = solver.add_com_task(np.zeros(3))
    com.configure("com", "soft", float(given["weights"][0]))
    posture = solver.add_joints_task()
    posture.configure("posture", "soft", float(given["weights"][1]))
    for task in (com, posture):
        task.kp, task.kd = 0.0, 0.0

    def solve(k):
        for name, value in zip(own, given["q"][k][order], strict=True):
            robot.set_joint(name, float(value))
            robot.set_joint_velocity(name, 0.0)
        com.ddtarget_world = given["com"][k]
        for name, value, wanted in zip(own, given["q"][k][order], given["posture"][k][order], strict=True):
            posture.set_joint(name, float(value), 0.0, float(wanted))

        def call():
            robot.update_kinematics()
            return solver.solve(False).qdd[6:]

        return call

    return solve, order


def by_pink(given, names):
    import pink
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(given["urdf"]))
    order = [names.index(name) for name in list(model.names)[1:]]
    model.velocityLimit = given["limit"][order]
    com = pink.tasks.ComTask(cost=float(np.sqrt(given["weights"][0])))
    posture = pink.tasks.PostureTask(cost=float(np.sqrt(given["weights"][1])))

    def solve(k):
        q = given["q"][k][order]
        robot = pink.Configuration(model, model.createData(), q)
        com.set_target(pin.centerOfMass(model, robot.data, q).copy() + given["com"][k])
        posture.set_target(pin.integrate(model, q, given["posture"][k][order]))
        limits = [pink.limits.VelocityLimit(model)]
        return lambda: pink.solve_ik(
            pink.Configuration(model, robot.data, q), [com, posture], 1.0, solver="proxqp", damping=0.0,
            limits=limits, eps_abs=1e-11, eps_rel=0.0)  # fmt: skip

    return solve, order


def by_mink(given, names):
    import mink
    import mujoco

    text = Path(str(given["urdf"])).read_text()
    least = (
        '<mujoco><compiler boundmass="1e-12" boundinertia="1e-12"/></mujoco></robot>'  # of links without mass
    )
    model = mujoco.MjModel.from_xml_string(text.replace("</robot>", least))
    order = [names.index(model.joint(k).name) for k in range(model.njnt)]
    com = mink.ComTask(cost=float(np.sqrt(given["weights"][0])))
    posture = mink.PostureTask(model, cost=float(np.sqrt(given["weights"][1])))
    limits = [
        mink.VelocityLimit(model, {names[k]: float(given["limit"][k]) for k in order}),
    ]

    def solve(k):
        robot = mink.Configuration(model, q=given["q"][k][order])
        com.set_target(robot.data.subtree_com[1] + given["com"][k])
        posture.set_target(given["q"][k][order] + given["posture"][k][order])

        def call():
            robot.update(given["q"][k][order])
            return mink.solve_ik(
                robot, [com, posture], 1.0, "proxqp", damping=0.0, limits=limits, eps_abs=1e-11, eps_rel=0.0
            )

        return call

    return solve, order


def main(library, problem, solution):
    warnings.simplefilter("ignore")
    given = dict(np.load(problem, allow_pickle=False))
    names = [str(name) for name in given["names"]]
    solve, order = globals()[f"by_{library}"](given, names)
    found, times = [], []
    for k in range(len(given["q"])):
        call, own = solve(k), []
        for _ in range(REPEATED):
            begin = time.process_time()
            for _ in range(CALLS):
                answer = call()
            own.append((time.process_time() - begin) / CALLS)
        found.append(np.array(answer)[np.argsort(order)])
        times.append(min(own))
    np.savez(solution, a=found, times=times)


if __name__ == "__main__":
    main(*sys.argv[1:])
