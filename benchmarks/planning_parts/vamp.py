"""VAMP's own collision checks of its four robots, compiled from its source: the same edges among the same spheres.

VAMP has no wheel; its source (``pip download vamp-planner``, unpacked) is enough for the checks, which need Eigen and a
C++ compiler. A call checks eight configurations and says whether all of them are free, with its own spheres.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from linkwise.collision import World

ROBOTS = {"panda": "Panda", "ur5_joint_limited_robot": "UR5", "fetch": "Fetch", "baxter": "Baxter"}
EIGEN = "/usr/include/eigen3"
FLAGS = "-O3 -march=native -mavx2 -fno-math-errno -fno-signed-zeros -fno-trapping-math -fno-rounding-math"
FLAGS += " -ffp-contract=fast -fassociative-math -std=c++17 -w"  # those of its build
SORT = "#pragma once\n#include <algorithm>\ntemplate<class I,class F> void pdqsort(I a,I b,F f){std::sort(a,b,f);}\n"
SORT += "template<class I,class F> void pdqsort_branchless(I a,I b,F f){std::sort(a,b,f);}\n"  # of point clouds alone
DRIVER = """
#include <chrono>
#include <cstdio>
#include <vamp/collision/factory.hh>
#include <vamp/robots/@FILE@.hh>
using Robot = vamp::robots::@CLASS@;
constexpr std::size_t rake = vamp::FloatVectorWidth;
static float q[@EDGES@ * 8][Robot::dimension], balls[@BALLS@][4];
int main() {
    std::FILE *f = std::fopen("data.bin", "rb");
    if (!f || std::fread(balls, sizeof balls, 1, f) != 1 || std::fread(q, sizeof q, 1, f) != 1) return 1;
    vamp::collision::Environment<float> world;
    for (auto &b : balls)
        world.spheres.emplace_back(vamp::collision::factory::sphere::array({b[0], b[1], b[2]}, b[3]));
    world.sort();
    vamp::collision::Environment<vamp::FloatVector<rake>> around(world);
    for (int together = 1; together >= 0; --together) {
        double best = 1e9;
        long free_ones = 0, count = together ? @EDGES@ : @EDGES@ * 8;
        for (int repeat = 0; repeat < @REPEATS@; ++repeat) {
            free_ones = 0;
            auto begin = std::chrono::steady_clock::now();
            for (long k = 0; k < count; ++k) {
                alignas(64) float lanes[rake];
                Robot::ConfigurationBlock<rake> block;
                for (std::size_t i = 0; i < Robot::dimension; ++i) {
                    for (std::size_t j = 0; j < rake; ++j) lanes[j] = together ? q[8 * k + j][i] : q[k][i];
                    block[i] = vamp::FloatVector<rake>(lanes);
                }
                free_ones += Robot::fkcc<rake>(around, block);
            }
            std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
            if (taken.count() < best) best = taken.count();
        }
        std::printf("%g %g\\n", 1e9 * best / (@EDGES@ * 8), double(free_ones) / count);
    }
}
"""


def joints_of(source: Path, name: str) -> list[str]:
    """VAMP's joints of a robot, in its order."""
    text = (source / "src" / "impl" / "vamp" / "robots" / f"{ROBOTS[name].lower()}.hh").read_text()
    listed = re.search(r"joint_names = \{(.*?)\}", text, re.DOTALL)
    assert listed is not None
    return re.findall(r'"([^"]+)"', listed[1])


def measured(source: Path, name: str, edges: np.ndarray, world: World, repeats: int) -> tuple[float, ...]:
    """Nanoseconds a configuration where eight along an edge are checked at once, and the share of free edges; the same
    where each is checked alone.

    Args:
        source: VAMP's unpacked source.
        name: of the robot.
        edges: positions of VAMP's joints, eight rows for each edge.
        world: spheres.
        repeats: of which the quickest counts.
    """
    texts = {"FILE": ROBOTS[name].lower(), "CLASS": ROBOTS[name], "EDGES": len(edges) // 8}
    texts |= {"BALLS": len(world.solids["spheres"]), "REPEATS": repeats}
    driver = DRIVER
    for key, value in texts.items():
        driver = driver.replace(f"@{key}@", str(value))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.cc").write_text(driver)
        Path(folder, "pdqsort.h").write_text(SORT)
        numbers = np.concatenate([world.solids["spheres"].ravel(), edges.ravel()]).astype(np.float32)
        numbers.tofile(Path(folder, "data.bin"))
        include = [f"-I{source / 'src' / 'impl'}", f"-I{folder}", f"-I{EIGEN}"]
        command = ["g++", *FLAGS.split(), *include, "-o", "main", "main.cc"]
        subprocess.run(command, cwd=folder, check=True)
        out = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return tuple(float(value) for value in out.split())
