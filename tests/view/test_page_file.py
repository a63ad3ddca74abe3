"""Page files: one HTML file that needs no network, computes with the bits of Python and trusts no name."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from test_moving_page import linkage, walker

import linkwise as lw
from browser import errors, reset
from linkwise import Robot
from linkwise.cli import main
from linkwise.geometry import solids
from linkwise.geometry.simplify import shared_out, simplified
from linkwise.simulate import simulate
from linkwise.view import offline, page_file, write_page
from linkwise.view.offline import page as pages

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">'{data}\n#"
START = [0.3, 0.5, -2.2, 0.4, 0.6, 0.0]
TORQUES = "return [...document.querySelectorAll('.bar')].map(bar => Number(bar.dataset.torque))"
# sets a slider as a person does, and gives q
SLIDE = """
const [k, value] = arguments, slider = document.querySelectorAll('.row input[type=range]')[k];
slider.value = value;
slider.dispatchEvent(new Event('input', {bubbles: true}));
return Array.from(linkwise.arm.q());
"""
# whether every control has a name for screen readers
NAMED = """
const named = e => e.getAttribute('aria-label') || e.labels?.length || e.textContent.trim();
return [...document.querySelectorAll('input, button, select')].every(named);
"""


@pytest.fixture(scope="module")
def driver(chrome):
    pytest.importorskip("selenium")
    reset(chrome, 900, 600)
    yield chrome
    chrome.get("about:blank")


def opened(driver, path):
    driver.get(path.as_uri())
    driver.set_script_timeout(60)
    ready = (
        "const done = arguments[0], wait = () => window.linkwise ? done('') : setTimeout(wait, 20); wait();"
    )
    driver.execute_async_script(ready)
    assert not errors(driver)


def data_of(text: str) -> dict:
    found = re.search(r'<script id="data"[^>]*>([^<]*)</script>', text)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


@pytest.fixture(scope="module")
def puma_page(driver, tmp_path_factory):
    robot = lw.load("puma560")
    path = write_page(robot, tmp_path_factory.mktemp("page") / "puma.html", q=np.array(START))
    opened(driver, path)
    return robot, path


def test_torques_of_the_browser_have_the_bits_of_python(driver, puma_page):
    robot, _ = puma_page
    assert driver.execute_script(TORQUES) == robot.gravity_torques(START).tolist()
    q = driver.execute_script(SLIDE, 1, "-40")
    assert q[1] == np.radians(-40.0)
    assert driver.execute_script(TORQUES) == robot.gravity_torques(q).tolist()
    poses = driver.execute_script("return Array.from(linkwise.arm.poses())")
    for k, joint in enumerate(robot.moving_joints):
        np.testing.assert_allclose(
            np.reshape(poses, (-1, 3, 4))[k], robot.pose(q, joint.child)[:3], atol=1e-12
        )


def test_a_load_and_a_motion(driver, puma_page):
    robot, _ = puma_page
    q = driver.execute_script(SLIDE, 6, "2.5")
    loaded = robot.with_payload(2.5, (0, 0, 0), (0, 0, 0), frame=robot.leaf_names[0])
    np.testing.assert_allclose(
        driver.execute_script(TORQUES), loaded.gravity_torques(q), rtol=1e-12, atol=1e-12
    )
    driver.execute_script("linkwise.record()")
    rows = driver.execute_script(
        "return JSON.parse(JSON.stringify(linkwise.recording, (k, v) => v.buffer ? [...v] : v))"
    )
    states = (np.array(rows[name]) for name in ("q", "qd", "qdd"))
    np.testing.assert_allclose(rows["tau"], loaded.inverse_dynamics(*states), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        np.gradient(rows["q"], rows["t"], axis=0)[5:-5], np.array(rows["qd"])[5:-5], atol=0.1
    )
    driver.execute_script("linkwise.start(); linkwise.stop(); linkwise.at(0.5 * linkwise.recording.end)")
    assert "torques of the motion" in driver.find_element("id", "caption").text
    driver.execute_script(SLIDE, 6, "0")


def test_q_as_python_and_c_to_download(driver, puma_page):
    robot, _ = puma_page
    text = driver.execute_script("return linkwise.text")
    given: dict = {}
    (line,) = [line for line in text.splitlines() if line.startswith("q = ")]
    exec(line, {}, given)
    assert given["q"] == driver.execute_script("return Array.from(linkwise.arm.q())")
    assert 'lw.load("puma560")' in text
    sources = driver.execute_script("return linkwise.data.sources")
    assert sources["gravity_torques"] == robot.kernel("gravity_torques").source("c")


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_fits_a_phone_and_has_light_and_dark(driver, puma_page, width, dark):
    reset(driver, width, 700)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    opened(driver, puma_page[1])
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    paper = driver.execute_script("return getComputedStyle(document.querySelector('main')).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", paper))) < 100) == dark
    assert driver.execute_script(NAMED)


def test_names_of_strangers_stay_text(driver, tmp_path):
    arm = lw.load("two_link")
    names = {name: name + HOSTILE for name in arm.link_names}
    links = [replace(link, name=names[link.name]) for link in arm.links]
    joints = [
        replace(joint, name=joint.name + HOSTILE, parent=names[joint.parent], child=names[joint.child])
        for joint in arm.joints
    ]
    path = write_page(Robot(HOSTILE, links, joints, gravity=arm.gravity), tmp_path / "hostile.html")
    opened(driver, path)
    assert "taken" in driver.title
    assert driver.title != "taken"
    assert driver.execute_script("return document.getElementById('name').textContent") == HOSTILE
    assert driver.execute_script("return document.images.length") == 0
    text = driver.execute_script("return linkwise.text")
    assert len([line for line in text.splitlines() if line.strip()]) == 4  # no line of their own


def test_floating_bases_balls_and_followers(driver, tmp_path):
    robot = walker()
    path = write_page(robot, tmp_path / "walker.html")
    opened(driver, path)
    driver.execute_script(SLIDE, 3, "20")
    q = driver.execute_script(SLIDE, 7, "-30")
    np.testing.assert_allclose(np.linalg.norm(q[3:7]), 1.0)
    assert driver.execute_script(TORQUES) == robot.gravity_torques(q).tolist()
    poses = np.reshape(driver.execute_script("return Array.from(linkwise.arm.poses())"), (-1, 3, 4))
    for k, joint in enumerate(robot.moving_joints):
        np.testing.assert_allclose(poses[k], robot.pose(q, joint.child)[:3], atol=1e-12)


def test_loops_stay_closed(driver, tmp_path):
    robot = linkage()
    opened(driver, write_page(robot, tmp_path / "linkage.html"))
    q = driver.execute_script(SLIDE, 0, "35")
    assert q[0] == pytest.approx(np.radians(35.0), abs=0.01)
    assert np.abs(robot.constraint_errors(q)).max() < 1e-8


def test_nothing_is_fetched_and_the_size_is_bounded(monkeypatch):
    text = page_file(lw.load("two_link"))
    assert "default-src 'none'" in text
    assert not re.findall(r"(?:src|href)\s*=\s*[\"']?\s*(?:https?:)?//", text)
    assert len(text) < 200_000
    monkeypatch.setattr(pages, "MOST_BYTES", 1000)
    with pytest.raises(lw.LinkwiseError, match=r"the page file would have 0\.1 MB"):
        page_file(lw.load("two_link"))


def test_meshes_are_simplified_to_a_budget():
    ball = solids.sphere(1.0)
    assert simplified(ball, 10_000) is ball
    coarse = simplified(ball, 200)
    assert 100 < len(coarse.faces) <= 200
    assert np.linalg.norm(coarse.vertices, axis=1) == pytest.approx(1.0, abs=0.2)
    several = [ball, ball.scaled((2, 2, 2)), solids.box((1, 1, 1))]
    assert shared_out(several, 10_000) == [len(mesh.faces) for mesh in several]
    small, large, box = shared_out(several, 600)
    assert small + large + box <= 600
    assert large == pytest.approx(4 * small, abs=4)  # as large as it looks
    assert box == 12  # which has no more


def test_the_command_writes_it_without_viser(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)
    path = tmp_path / "arm.html"
    assert main(["view", "two_link", "--out", str(path)]) == 0
    assert "MB, works without a network" in capsys.readouterr().out
    assert data_of(path.read_text())["name"] == "two_link"
    assert path.stat().st_size < offline.MOST_BYTES
    assert main(["view", "two_link", "--out", str(tmp_path / "no" / "arm.html")]) == 2
    assert "arm.html" in capsys.readouterr().err


def test_simulations_are_played_with_the_forces_of_contacts(driver, tmp_path):
    scene = lw.Scene([lw.Body.box((0.1, 0.1, 0.1), mass=1.0, name=HOSTILE), lw.Ground()])
    start = scene.neutral.copy()
    start[2] = 0.08
    result = simulate(scene, lw.control.Passive(scene), duration=0.3, step=0.002, every=10, q=start)
    opened(driver, write_page(scene, tmp_path / "falls.html", result=result))
    at = "linkwise.simulation.at(arguments[0]); return linkwise.scene.arrows.map(pose => Array.from(pose))"
    assert driver.execute_script(at, 0.0) == []  # it falls
    assert driver.execute_script("return linkwise.simulation.list.textContent") == "nothing touches"
    arrows = np.array(driver.execute_script(at, 0.29))
    assert arrows.shape == (4, 16)
    scale = driver.execute_script("return linkwise.data.simulation.scale")
    np.testing.assert_allclose(arrows[:, 8:11].sum(axis=0), [0.0, 0.0, 9.81 * scale], atol=1e-4)
    np.testing.assert_allclose(arrows[:, 12:15], result.contact_points[-1], atol=1e-4)
    assert "2.45 N" in driver.execute_script("return linkwise.simulation.list.textContent")
    driver.execute_script("linkwise.halt()")
    assert driver.execute_script("return linkwise.scene.arrows") == []
    assert driver.title != "taken"
    batch = simulate(scene, lw.control.Passive(scene), duration=0.02, q=np.stack([start, start]))
    with pytest.raises(lw.LinkwiseError, match="batch"):
        page_file(scene, result=batch)


def test_a_simulation_stands_on_its_ground_and_is_followed(driver, tmp_path):
    """The floor is that of the contacts, the first picture the first row, and the camera goes with the base."""
    scene = lw.Scene([lw.Body.box((0.1, 0.1, 0.1), mass=1.0, name="cube"), lw.Ground(height=-0.3)])
    start = scene.neutral.copy()
    start[2] = -0.2
    slide = np.array([0.0, 0.0, 0.0, 2.0, 0.0, 0.0])
    law = lw.control.Passive(scene)
    result = simulate(scene, law, duration=0.2, step=0.002, every=10, q=start, qd=slide)
    path = write_page(scene, tmp_path / "slides.html", result=result)
    data = data_of(path.read_text(encoding="utf-8"))
    assert data["floor"] == -0.3
    assert data["home"][2] == pytest.approx(-0.2)
    opened(driver, path)
    script = "window.linkwise.simulation.at(arguments[0]); return [...window.linkwise.scene.camera.target]"
    first, last = (np.array(driver.execute_script(script, float(t))) for t in (0.0, result.t[-1]))
    np.testing.assert_allclose(last - first, result.q[-1, :3] - result.q[0, :3], atol=1e-5)
    assert last[0] - first[0] > 0.1


def test_the_camera_sees_bodies_that_are_fixed_in_the_world():
    """A small cube above a large slope: the picture has both."""
    cube = lw.Body.box((0.1, 0.1, 0.1), mass=0.5, name="cube")
    scene = lw.Scene([cube, lw.Body.box((1.0, 1.0, 0.1), name="wedge")])
    assert data_of(page_file(scene, q=scene.neutral))["camera"]["distance"] > 1.5


def test_a_mesh_that_is_missing_is_said_and_its_body_drawn_from_kinematics(tmp_path):
    """Beside bodies with shapes; a body whose file states no shape stays undrawn, as the file wants it."""
    shape = "<visual><geometry>{}</geometry></visual>"
    shapes = [shape.format('<mesh filename="lost.stl"/>'), shape.format('<sphere radius="0.1"/>'), ""]
    inertia = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    links = "".join(f'<link name="l{k}">{each}{inertia}</link>' for k, each in enumerate(shapes))
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/><child link="l{k}"/>'
        f'<origin xyz="0 0 0.5"/><axis xyz="0 1 0"/></joint>'
        for k in range(3)
    )
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm"><link name="base"/>{links}{joints}</robot>')
    with pytest.warns(lw.ModelWarning, match=r"not drawn: .*lost\.stl"):
        text = page_file(lw.load(tmp_path / "arm.urdf"))
    assert {part["body"] for part in data_of(text)["parts"] if part["group"] == "meshes"} == {0, 1}
