"""Arms whose links are mesh files: chains of random boxes and cylinders, and what coal says about them."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise.geometry.solids import box, cylinder, joined
from linkwise.model import Transform

LINK = """<link name="{name}"><inertial><mass value="2"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0"
iyz="0"/></inertial>{collision}</link>"""
COLLISION = '<collision><geometry><mesh filename="{name}.stl"/></geometry></collision>'
JOINT = """<joint name="joint{k}" type="revolute"><parent link="link{k}"/><child link="link{next}"/>
<origin xyz="0 0 {height}" rpy="{roll} 0 0"/><axis xyz="0 0 1"/>
<limit lower="-2.8" upper="2.8" velocity="2" effort="120"/></joint>"""


def mesh_arm(folder, seed: int = 0, joints: int = 5, height: float = 0.32) -> str:
    """The path of a URDF file with its meshes beside it; with lower links those next but one are near each other."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(joints + 1):
        size = rng.uniform(0.05, 0.09)
        column = cylinder(size, height, sides=12).moved(Transform(np.eye(3), [0.0, 0.0, 0.6 * height]))
        extra = box(rng.uniform(0.06, 0.14, 3)).moved(Transform(np.eye(3), [0.02, 0.0, 0.7 * height]))
        write_stl(folder / f"link{k}.stl", joined([column, extra]))
        parts.append(LINK.format(name=f"link{k}", collision=COLLISION.format(name=f"link{k}")))
        if k < joints:
            parts.append(
                JOINT.format(
                    k=k, next=k + 1, height=height, roll=(-1.57, 1.57, 0.8, -0.8)[k % 4] if k else 0.0
                )
            )
    file = folder / f"arm{seed}.urdf"
    file.write_text(f'<robot name="arm{seed}">' + "\n".join(parts) + "</robot>")
    return str(file)


def write_stl(path, mesh) -> None:
    """Triangles in a binary STL file."""
    triangles = mesh.vertices[mesh.faces].astype("<f4")
    records = np.zeros(
        len(triangles), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")]
    )
    records["corners"] = triangles
    path.write_bytes(b"\0" * 80 + np.uint32(len(triangles)).tobytes() + records.tobytes())


class Coal:
    """Collisions of the meshes of a URDF file with each other and with a world, by coal."""

    def __init__(self, file: str, robot: lw.Robot, compared, world):
        import coal
        import pinocchio as pin

        self.pin = pin
        self.model = pin.buildModelFromUrdf(file)
        self.data = self.model.createData()
        folder = file.rpartition("/")[0]
        self.geometry = pin.buildGeomFromUrdf(
            self.model, file, pin.GeometryType.COLLISION, package_dirs=folder
        )
        self.geometry.removeAllCollisionPairs()
        own = list(self.geometry.geometryObjects)
        body = [each.parentJoint - 1 for each in own]
        for i in range(len(own)):
            for k in range(i):
                if tuple(sorted((body[i], body[k]))) in compared:
                    self.geometry.addCollisionPair(pin.CollisionPair(k, i))
        for number, (shape, pose) in enumerate(_shapes(world, coal)):
            placed = pin.SE3(pose.rotation, pose.translation)
            added = self.geometry.addGeometryObject(pin.GeometryObject(f"obstacle{number}", 0, placed, shape))
            for k in range(len(own)):
                if body[k] >= 0:
                    self.geometry.addCollisionPair(pin.CollisionPair(k, added))
        self.placed = self.geometry.createData()

    def __call__(self, q: np.ndarray) -> np.ndarray:
        found = [
            self.pin.computeCollisions(
                self.model, self.data, self.geometry, self.placed, np.asarray(x, float), True
            )
            for x in q
        ]
        return np.array(found)

    def torques(self, motion) -> np.ndarray:
        rows = zip(motion.q, motion.qd, motion.qdd, strict=True)
        return np.array([self.pin.rnea(self.model, self.data, *row) for row in rows])


def _shapes(world, coal):
    tables = world.solids
    for x, y, z, radius in tables["spheres"]:
        yield coal.Sphere(radius), Transform(np.eye(3), [x, y, z])
    for row in tables["boxes"]:
        yield coal.Box(*(2 * row[3:])), Transform(np.eye(3), row[:3])
    for row in tables["turned_boxes"]:
        yield coal.Box(*(2 * row[12:])), Transform(row[3:12].reshape(3, 3).T, row[:3])
    for row in tables["rods"]:
        from linkwise.geometry.solids import from_z_to

        length = float(np.linalg.norm(row[3:6]))
        yield coal.Capsule(row[6], length), from_z_to(row[3:6], row[:3] + row[3:6] / 2)
    for row in tables["planes"]:
        yield coal.Halfspace(row[:3], row[3]), Transform(np.eye(3), np.zeros(3))
