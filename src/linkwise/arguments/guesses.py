"""Names that people try first, and what to type instead: one table for robots, one for the module.

The names are those of Pinocchio, MuJoCo, the Robotics Toolbox, PyBullet, Drake and textbooks. ``robot.fk`` raises an
AttributeError with the text "fk: use robot.pose(q)": ``hasattr`` is False, and neither ``dir`` nor completion lists
the name.

Robots must not have a ``__getattr__``: CPython looks up methods without creating an object for each call only in
classes that have none, so calls would be slower. Therefore every name is a descriptor in a base class that comes
last, and the misspellings are likely ones, made from the real names.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from linkwise.errors import DtypeError

POSE, JACOBIAN, IK = "robot.pose(q)", "robot.jacobian(q)", "robot.inverse_kinematics(pose)"
ID, FD = "robot.inverse_dynamics(q, qd, qdd)", "robot.forward_dynamics(q, qd, tau)"
MASS, BIAS, GRAVITY = "robot.mass_matrix(q)", "robot.bias_torques(q, qd)", "robot.gravity_torques(q)"
CORIOLIS = "robot.coriolis_matrix(q, qd), or robot.velocity_torques(q, qd) for its product with qd"
ENERGY = "robot.kinetic_energy(q, qd) and robot.potential_energy(q)"
RANGE = "robot.limits.lower and robot.limits.upper"
SIMULATE = "linkwise.simulate.simulate(robot, controller, duration=…)"
LOAD = "linkwise.load(path)"
MASSES = "[link.inertia.mass for link in robot.links]"

INSTEAD = {  # what to type: instead of which names
    POSE: (
        "fk fkine fkine_all forward_kinematics forwardKinematics kinematics direct_kinematics framesForwardKinematics "
        "updateFramePlacements placement oMi oMf xpos xquat site_xpos end_effector_pose ee_pose tcp tool_pose "
        "getLinkState getLinkStates link_pose EvalBodyPoseInWorld CalcRelativeTransform transform A T forward "
        "end_effector poses get_pose frame_pose link_transform body_pose mj_kinematics mj_forward position"
    ),
    JACOBIAN: (
        "jac jacob0 jacobn jacobe J compute_jacobian computeJointJacobians computeJointJacobian computeFrameJacobian "
        "getFrameJacobian getJointJacobian mj_jac mj_jacSite mj_jacBody calculateJacobian geometric_jacobian "
        "frame_jacobian CalcJacobianSpatialVelocity jacobians body_jacobian space_jacobian analytical_jacobian "
        "jacob0_analytical"
    ),
    "robot.jacobian_rate(q, qd)": "jacob_dot jacobian_dot jacob0_dot Jdot jacobian_derivative hessian0",
    "robot.velocity(q, qd)": "twist frame_velocity getFrameVelocity spatial_velocity body_velocity",
    IK: (
        "ik ikine ikine_LM ikine_NR ikine_GN ikine_QP ik_LM ik_NR ik_GN ikine_a ikine6s ikine_min solve_ik "
        "inverseKinematics calculateInverseKinematics InverseKinematics"
    ),
    ID: (
        "rnea rne inverseDynamics id ID torque torques tau mj_inverse invdyn idyn calculateInverseDynamics "
        "CalcInverseDynamics newton_euler recursive_newton_euler compute_torques joint_torques get_torques "
        "dynamics_inverse"
    ),
    FD: (
        "aba accel acceleration accelerations forwardDynamics fd FD dynamics fdyn qdd mj_fwdAcceleration "
        "articulated_body articulated_body_algorithm f xdot ode dyn get_accelerations joint_accelerations "
        "CalcTimeDerivatives state_derivative"
    ),
    MASS: (
        "crba inertia M mass_mat massMatrix inertia_matrix mass_inertia_matrix H B D calculateMassMatrix "
        "CalcMassMatrix mj_fullM fullM qM joint_inertia generalized_inertia composite_rigid_body "
        "composite_rigid_body_algorithm generalized_mass_matrix"
    ),
    "robot.inverse_mass_matrix(q)": "computeMinverse Minv minv M_inv inv_mass_matrix mass_matrix_inverse",
    BIAS: (
        "nle nonLinearEffects nonlinear_effects non_linear_effects bias bias_forces qfrc_bias h CalcBiasTerm "
        "coriolis_gravity bias_force bias_torque get_bias"
    ),
    CORIOLIS: "coriolis C computeCoriolisMatrix coriolis_forces coriolis_torques centrifugal coriolis_term",
    GRAVITY: (
        "gravload g G computeGeneralizedGravity generalized_gravity gravity_vector gravity_term "
        "CalcGravityGeneralizedForces gravity_compensation gravity_load gravity_forces grav"
    ),
    "robot.task_inertia(q)": "inertia_x operational_space_inertia task_space_inertia lambda_x Lambda",
    "robot.regressor(q, qd, qdd)": "computeJointTorqueRegressor torque_regressor Y observation_matrix",
    "robot.inverse_dynamics_derivatives(q, qd, qdd)": "computeRNEADerivatives rnea_derivatives rneaDerivatives",
    "robot.forward_dynamics_derivatives(q, qd, tau)": (
        "computeABADerivatives aba_derivatives mjd_transitionFD linearize Linearize abaDerivatives transitionFD "
        "linearise"
    ),
    ENERGY: "energy total_energy mechanical_energy computeMechanicalEnergy hamiltonian lagrangian",
    "robot.kinetic_energy(q, qd)": "computeKineticEnergy KE ke CalcKineticEnergy",
    "robot.potential_energy(q)": "computePotentialEnergy PE pe CalcPotentialEnergy",
    "robot.center_of_mass(q)": (
        "com com_position centerOfMass centre_of_mass cog center_of_gravity subtree_com "
        "CalcCenterOfMassPositionInWorld centroid CoM"
    ),
    "robot.com_jacobian(q)": "jacobianCenterOfMass jacobian_com center_of_mass_jacobian Jcom",
    "robot.centroidal_momentum(q, qd)": "computeCentroidalMomentum momentum hg",
    "robot.centroidal_matrix(q)": "ccrba computeCentroidalMap centroidal_momentum_matrix cmm Ag",
    "robot.manipulability(q)": "manipulability_gradient manip yoshikawa dexterity manipulability_measure jacobm",
    "robot.dof": (
        "n nv n_joints num_joints njoints ndof n_dof dofs num_dof number_of_joints getNumJoints num_velocities "
        "num_actuators nu ndofs NDOF DOF degrees_of_freedom joint_count n_links num_joint numJoints n_v"
    ),
    "robot.nq": "num_positions n_q num_q",
    RANGE: (
        "qlim q_limits joint_limits qlimits q_lim joint_range jnt_range position_limits lowerPositionLimit "
        "upperPositionLimit lower_limits upper_limits GetPositionLowerLimits GetPositionUpperLimits lower upper "
        "bounds q_min q_max qmin qmax lower_limit upper_limit joint_bounds lower_position_limits "
        "upper_position_limits q_bounds ranges"
    ),
    "robot.limits.velocity": "velocityLimit qd_limits qd_max max_velocity qdlim speed_limits qd_lim",
    "robot.limits.effort": "effortLimit torque_limits tau_max tau_limits max_torque actuator_forcerange",
    "robot.neutral": (
        "q0 qz qr qn home zero zeros zero_configuration neutral_configuration qpos0 q_neutral default_q home_position "
        "q_home rest qneutral neutral_position q_zero"
    ),
    "robot.random(rng)": (
        "random_configuration randomConfiguration random_q rand sample random_state randomize random_position "
        "random_positions random_config sample_configuration random_qpos"
    ),
    "robot.save(path)": (
        "export write to_urdf to_file dump write_urdf save_urdf to_mjcf to_xml to_toml dumps to_string export_urdf"
    ),
    "robot.plot(q)": "draw plot_robot picture teach render display_robot figure plot3d",
    "robot.show()": "view visualize visualise display initViewer viewer launch animate gui",
    "robot.joint_names": "names joints_names jointnames actuated_joint_names joint_name actuated_joints",
    "robot.link_names": "bodies_names body_names linknames link_name",
    "robot.frame_names": (
        "frames_names frame_list sites end_effectors ee_links getFrameId frame_ids existFrame existBodyName "
        "exist_frame has_frame getBodyId body_id link_index"
    ),
    "robot.default_frame()": "ee_frame tip tool ee_link end_effector_link tcp_frame",
    MASSES: "mass masses total_mass body_mass inertias computeTotalMass link_masses weight",
    "robot.with_payload(mass, com, inertia)": "payload set_payload add_payload attach load",
    "robot.with_gravity((0, 0, -9.81))": "set_gravity setGravity gravity_field",
    "robot.with_parameters({label: value})": "set_parameters update_parameters dynchanged set_params params",
    "robot.lock({joint: position})": "lock_joints buildReducedModel fix_joints reduced_model freeze",
    "robot.with_base('floating')": "add_freeflyer JointModelFreeFlyer floating_base free_flyer root_joint",
    SIMULATE: "simulate step mj_step stepSimulation rollout sim run simulation",
    "robot.as_ode()": "to_ode ode_function rhs vector_field as_odes solve_ivp",
    "linkwise.motion.quintic(q0, q1, duration)": "jtraj trajectory plan move interpolate ctraj",
    "robot.kernel('inverse_dynamics').casadi()": "casadi to_casadi casadi_function",
    "robot.kernel('inverse_dynamics').source('c')": "codegen generate_code c_code to_c generate",
    "robot.kernel('inverse_dynamics').sympy()": "sympy symbolic symbolics equations symbolic_dynamics",
    "jax.jit(robot.inverse_dynamics)": "jit jax",
    "q as an array, list or dictionary; robots have no state": (
        "q qd state configuration config data update reset set_state get_state qpos qvel qacc ctrl set_q set_positions "
        "resetJointState set_joint_positions set_configuration SetPositions forward_kinematics_update"
    ),
    "robots as they are; they are immutable, and with_… methods give changed ones": "copy clone deepcopy",
    "arrays of CuPy, PyTorch or JAX as inputs; results are of the same kind": "to cuda torch numpy cpu gpu device",
    "robot.save('arm.toml')": "to_dict as_dict serialize to_json json",
    "robot.joint_names and robot.limits": "getJointInfo joint_info get_joint_info getJointId joint_id joint_index",
    "{link.name: link for link in robot.links}": "body link get_link get_body links_by_name link_by_name",
    "{joint.name: joint for joint in robot.joints}": "joint get_joint joints_by_name joint_by_name jnt",
    "linkwise.simulate.simulate(robot, linkwise.control.named('computed_torque', robot, frequency=10), duration=…)": (
        "setJointMotorControl2 setJointMotorControlArray control controller step_simulation set_control"
    ),
    "robot.with_parameters({'joint1.viscous_friction': value}); robot.parameter_labels lists them": (
        "with_friction friction set_friction damping dof_damping frictionloss armature rotor_inertia motor"
    ),
    "robot.gravity and robot.with_gravity((0, 0, -9.81))": "opt option options",
    "the product of torques and velocities: (tau * qd).sum(-1)": "power mechanical_power",
    "robot.task_inertia(q) and robot.consistent_inverse(q)": "operational_space nullspace null_space projector pinv",
    "robot.pose(q)[..., :3, :3]": "rotation orientation rotmat get_rotation",
    "robot.pose(q, frame=name)": "placeJoint joint_placement joint_pose joint_transform oMj",
    "linkwise generate ROBOT FUNCTION --out DIR on the command line": "generate_c export_c to_cpp cpp generate_cpp",
    "the robot itself; there is no separate data object": "model createData robot",
}  # fmt: skip

MODULE_INSTEAD = {
    LOAD: (
        "load_urdf from_urdf loadURDF buildModelFromUrdf load_mjcf from_mjcf from_xml_path URDF read_urdf load_robot "
        "RobotWrapper BuildFromURDF MjModel from_file read open Model load_xml buildModelFromMJCF from_xml from_path "
        "load_model urdf mjcf parse make ERobot DHRobot SerialLink from_dh from_toml from_string from_xml_string "
        "get_robot"
    ),
    "linkwise.load('panda'); linkwise.robots() lists the bundled robots": "models Panda Puma560 UR5 list robot",
    "linkwise.motion.quintic(q0, q1, duration)": "jtraj Trajectory trajectory quintic plan",
    "linkwise.simulate.simulate(robot, controller, …)": "Simulator sim Simulation rollout",
    "linkwise.view.serve(robot), or robot.show()": "show viewer visualize Viewer",
    "linkwise.identify.identify(robot, log)": "identification identify_robot sysid calibrate",
    "linkwise.Transform, or 4×4 arrays as robot.pose(q) gives them": "SE3 se3 SO3 Pose Rotation SE3d transforms",
    "the command linkwise bench": "bench benchmark benchmarks",
    "robot.gravity": "GRAVITY gravity g0",
    "robot.forward_dynamics(q, qd, tau, algorithm='kalman')": "kalman aba articulated_body",
    "leading axes: robot.inverse_dynamics(q, qd, qdd) takes arrays of shape (..., n)": "batch vmap batched vectorize",
    "linkwise.load(path); robots are of the class linkwise.Robot": "ArmModel Arm Manipulator RobotModel Multibody",
}  # fmt: skip

PART_INSTEAD = {  # names that people try in the parts: what to type instead
    "motion": {
        "linkwise.motion.quintic(q0, q1, duration)": "jtraj Quintic polynomial minimum_jerk interpolate linear lerp",
        "linkwise.motion.trapezoidal(…)": "trapezoid lspb trap bang_bang",
        "linkwise.motion.inverse_kinematics(robot, pose)": "ik ikine solve_ik IK",
        "linkwise.motion.cubic_spline(…)": "spline CubicSpline cubic",
        "linkwise.motion.line(…) and arc(…)": "ctraj cartesian straight_line movel MoveL circle",
    },
    "control": {
        "linkwise.control.named('computed_torque', robot, frequency=10)": (
            "computed_torque ComputedTorqueController computed_torque_control controller CTC make get"
        ),
        "linkwise.control.GravityPD": "PID PD pd pid PDController PIDController gravity_compensation",
        "linkwise.control.CartesianImpedance": "ImpedanceController impedance CartesianImpedanceController compliance",
        "linkwise.control.CartesianAdmittance": "AdmittanceController admittance",
        "linkwise.control.OperationalSpace": "OSC OperationalSpaceController operational_space",
        "linkwise.control.HandGuiding": "ZeroTorque zero_torque free_drive freedrive teach gravity_compensation_mode",
    },
    "simulate": {
        "linkwise.simulate.simulate(robot, controller, duration=…)": "Simulator run step rollout Simulation sim",
    },
    "identify": {
        "linkwise.identify.read_log(path, robot)": "read_csv load_log load read from_csv open_log read_file",
        "linkwise.identify.identify(robot, log)": "run estimate sysid least_squares identify_robot",
        "linkwise.identify.excite(robot)": "excitation excitation_trajectory optimal_trajectory",
    },
    "view": {"linkwise.view.show(robot)": "Viewer viewer display visualize open plot render"},
    "collision": {"linkwise.collision.shapes_of(robot)": "capsules collision_model geometry check"},
}  # fmt: skip
CALLED = {  # modules that people call
    "simulate": "linkwise.simulate.simulate(robot, controller, duration=…)",
    "identify": "linkwise.identify.identify(robot, log)",
    "view": "linkwise.view.show(robot)",
    "control": "linkwise.control.named('computed_torque', robot, frequency=10)",
    "motion": "linkwise.motion.quintic(q0, q1, duration)",
    "collision": "linkwise.collision.shapes_of(robot)",
    "robot": "linkwise.load('panda')",
}

ROBOT_GUESSES = {name: use for use, names in INSTEAD.items() for name in names.split()}
MODULE_GUESSES = {name: use for use, names in MODULE_INSTEAD.items() for name in names.split()}

CONFUSED = (
    "iy",
    "yi",
    "ae",
    "ea",
    "ei",
    "ie",
    "sz",
    "zs",
    "ck",
    "kc",
    "oe",
)  # letters written one for the other


def misspellings(name: str) -> Iterator[str]:
    """Likely misspellings of a name and other ways to write it: a letter left out, doubled, confused or swapped with
    its neighbour, camel case, without underscores, with or without an s, with get or compute before it."""
    words = name.split("_")
    yield words[0] + "".join(word.capitalize() for word in words[1:])
    yield "".join(words)
    for before in ("get", "compute", "calc"):
        yield f"{before}_{name}"
        yield before + "".join(word.capitalize() for word in words)
    yield from ("_".join([*words[:k], _number(words[k]), *words[k + 1 :]]) for k in range(len(words)))
    for k in range(len(name)):
        yield name[:k] + name[k + 1 :]
        yield name[:k] + name[k] + name[k:]
        if k + 1 < len(name):
            yield name[:k] + name[k + 1] + name[k] + name[k + 2 :]
        yield from (name[:k] + pair[1] + name[k + 1 :] for pair in CONFUSED if name[k] == pair[0])


def _number(word: str) -> str:
    """The other number of a noun: torque, torques."""
    return word[:-1] if word.endswith("s") else word + "s"


class Guess:
    """An attribute of robots that says what to type instead."""

    __slots__ = ("meant", "name")

    def __init__(self, name: str, meant: str | None):
        self.name, self.meant = name, meant

    def __get__(self, robot: Any, owner: type | None = None) -> Any:
        if self.meant is None:
            raise AttributeError(f"{self.name}: use {ROBOT_GUESSES[self.name]}")
        raise AttributeError(f"Robot has no attribute {self.name!r}; did you mean {self.meant!r}?")


class RobotType(type):
    """The class of ``Robot``: adds a last base class with the guesses, which are not listed, and raises a helpful
    error for names that the class does not have."""

    def __new__(mcls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> Any:
        if not any(isinstance(base, mcls) for base in bases):
            names = {name for base in bases for name in public_names(base)}
            bases = (*bases, _answering(names | {name for name in content if not name.startswith("_")}))
        return super().__new__(mcls, name, bases, content)

    def __dir__(cls) -> list[str]:
        return _without_guesses(cls, super().__dir__())

    def __getattr__(cls, name: str) -> Any:
        names = () if name.startswith("_") else public_names(cls)
        raise AttributeError(answer(name, "Robot", names, {**MODULE_GUESSES, **ROBOT_GUESSES}))


def _answering(names: set[str]) -> type:
    """A class whose attributes are the guesses and the likely misspellings of these names."""
    found: dict[str, Any] = {name: Guess(name, None) for name in ROBOT_GUESSES}
    for name in sorted(names):
        if len(name) > 3:
            found |= {wrong: Guess(wrong, name) for wrong in misspellings(name) if wrong not in found}
    for name in names:
        found.pop(name, None)
    return type.__new__(RobotType, "Guesses", (), {"__slots__": (), "__dir__": _listed, **found})


def _listed(robot: Any) -> list[str]:
    """What ``dir`` gives, before and after the first call: without guesses, and without what a robot remembers."""
    remembered = {name for name in vars(robot) if name.startswith("_")}
    return [name for name in _without_guesses(type(robot), object.__dir__(robot)) if name not in remembered]


def _without_guesses(cls: type, names: Iterable[str]) -> list[str]:
    *others, guesses, _ = cls.__mro__
    real = set().union(
        *(base.__dict__ for base in others)
    )  # a derived class may have a method of such a name
    return [name for name in names if name in real or name.startswith("_") or name not in guesses.__dict__]


def public_names(cls: type) -> list[str]:
    """Names of methods, properties and, from annotations, of attributes."""
    annotated = [name for base in cls.__mro__ for name in inspect.get_annotations(base)]
    return [name for name in (*dir(cls), *annotated) if not name.startswith("_")]


def answer(name: str, owner: str, names: Iterable[str], guesses: dict[str, str]) -> str:
    """What to type instead of a name that ``owner`` does not have: from the table, or the nearest names."""
    if name in guesses:
        return f"{name}: use {guesses[name]}"
    close = [] if name.startswith("_") else difflib.get_close_matches(name, list(names), n=3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return f"{owner} has no attribute {name!r}{hint}"


class Part(ModuleType):
    """A part of the package: names that it does not have, and calls of itself, say what to type."""

    def __getattr__(self, name: str) -> Any:
        part = self.__name__.rpartition(".")[2]
        guesses = {guess: use for use, names in PART_INSTEAD.get(part, {}).items() for guess in names.split()}
        raise AttributeError(
            answer(name, f"module {self.__name__!r}", vars(self).get("__all__", ()), guesses)
        )

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        raise DtypeError(f"{self.__name__} is a module: use {CALLED[self.__name__.rpartition('.')[2]]}")


def answer_for(module: str) -> None:
    """Let a part answer what to type instead of names that it does not have."""
    sys.modules[module].__class__ = Part


def module_answer(name: str, names: Iterable[str], methods: Iterable[str], robots: Iterable[str] = ()) -> str:
    """The same for the module ``linkwise``: a robot's methods are guessed there, too."""
    if name in MODULE_GUESSES:
        return f"{name}: use {MODULE_GUESSES[name]}"
    if name in ROBOT_GUESSES:
        return f"{name}: use {ROBOT_GUESSES[name]} with robot = linkwise.load('panda') or of a file"
    if name.lower() in robots:
        return f"{name}: use linkwise.load({name.lower()!r})"
    if name in methods:
        return f"{name} belongs to robots: robot.{name} with robot = linkwise.load('panda') or of a file"
    return answer(name, "module 'linkwise'", names, {})
