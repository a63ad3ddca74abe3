"""Small robot files in which nearly everything stands that a reader knows, with odd numbers."""

ARM = """<mujoco model="arm">
  <compiler angle="degree" eulerseq="zYx" autolimits="true" boundmass="0.07" boundinertia="0.0004"/>
  <option gravity="0.4 -0.9 -9.5" density="1.3" viscosity="0.02" wind="0.3 -0.1 0.2"/>
  <default>
    <joint damping="0.31" armature="0.023"/>
    <geom density="730" type="capsule" size="0.03 0.12"/>
    <motor gear="7.3" ctrlrange="-1.1 0.9"/>
    <site size="0.01" pos="0.01 0.02 0.03"/>
    <default class="stiff">
      <joint stiffness="4.7" springref="13" frictionloss="0.17" range="-100 80"/>
      <geom density="910"/>
    </default>
  </default>
  <worldbody>
    <geom type="plane" size="3 3 0.1"/>
    <body name="lower" pos="0.1 -0.2 0.3" euler="11 -23 35" childclass="stiff">
      <joint name="first" axis="0.1 0.2 1.3" pos="0.02 0.01 -0.03" ref="17" limited="true"/>
      <geom fromto="0 0 0 0.11 0.05 0.31" size="0.041"/>
      <geom type="box" size="0.05 0.07 0.03" pos="0.02 0.1 0.2" axisangle="0.3 1 -0.4 31" mass="0.43"/>
      <geom type="ellipsoid" size="0.02 0.06 0.05" zaxis="0.3 -0.4 1" fluidshape="ellipsoid" group="2"/>
      <frame pos="0.03 0.05 0.33" quat="0.7 0.2 -0.1 0.4">
        <body name="slider" xyaxes="1 0.2 0.1 -0.3 1 0.4">
          <joint name="second" type="slide" axis="1 -0.3 0.2" range="-0.3 0.5" ref="0.07"
           damping="2.1" springdamper="0.3 0.7"/>
          <inertial pos="0.03 -0.04 0.11" mass="1.7" fullinertia="0.021 0.027 0.031 0.001 -0.002 0.003"/>
          <site name="tool" type="box" size="0.01 0.02 0.03" euler="3 5 7"/>
          <body name="wrist" pos="-0.04 0.13 0.21" gravcomp="0.6">
            <joint name="third" class="main" axis="0 1 0.3" stiffness="2.3" springref="-8"/>
            <joint name="fourth" pos="0.03 0.02 0.01" axis="1 0.4 0" actuatorfrcrange="-31 27" class="main"/>
            <inertial pos="0.01 0.02 -0.03" quat="0.6 0.3 -0.5 0.2" mass="0.9" diaginertia="0.012 0.009 0.0101"/>
            <body name="finger" pos="0.05 0 0.02">
              <joint name="left" type="slide" axis="0 1 0" range="-0.02 0.06" class="main"/>
              <geom type="cylinder" size="0.013 0.04" mass="0.21" shellinertia="true"/>
            </body>
            <body name="thumb" pos="-0.05 0 0.02">
              <joint name="right" type="slide" axis="0 -1 0" class="main"/>
              <geom type="sphere" size="0.027"/>
            </body>
          </body>
        </body>
      </frame>
    </body>
  </worldbody>
  <equality>
    <joint joint1="right" joint2="left" polycoef="0.003 -0.9 0 0 0"/>
    <weld body1="finger" body2="lower" anchor="0.02 0.03 0.01" relpose="0.1 0.2 0.3 0.8 0.1 0.2 -0.3" active="false"/>
  </equality>
  <tendon>
    <fixed name="rope" stiffness="3.1" damping="0.7" frictionloss="0.13" armature="0.011" springlength="0.4">
      <joint joint="first" coef="0.21"/>
      <joint joint="fourth" coef="-0.37"/>
    </fixed>
  </tendon>
  <actuator>
    <motor joint="first" forcerange="-9 11"/>
    <position joint="second" kp="130" ctrlrange="-0.2 0.3" forcerange="-21 21"/>
    <general joint="third" gainprm="3.7" biastype="affine" biasprm="0.6 0 0" gear="2.1" ctrlrange="-2 3"/>
    <cylinder tendon="rope" area="0.3" bias="1.7" gear="1.3"/>
    <velocity joint="left" kv="3"/>
  </actuator>
</mujoco>
"""

FREE = """<mujoco model="free">
  <compiler angle="radian" settotalmass="7.3" inertiafromgeom="auto" inertiagrouprange="0 3" balanceinertia="true"/>
  <option gravity="0 0 -9.7"><flag frictionloss="enable" damper="enable"/></option>
  <default><geom type="sphere" size="0.05" density="400"/></default>
  <worldbody>
    <body name="trunk" pos="0.3 0.1 0.7" quat="0.9 0.1 0.3 -0.2">
      <freejoint name="root" align="false"/>
      <geom type="box" size="0.2 0.1 0.07"/>
      <geom size="0.09" pos="0.3 0 0.1" group="4"/>
      <body name="head" pos="0.2 0.05 0.2">
        <joint name="neck" type="ball" pos="0.01 0.02 0.03" damping="0.3" armature="0.02" stiffness="1.7"/>
        <geom size="0.11"/>
      </body>
      <replicate count="2" offset="0.3 0.1 0" euler="0 0 0.5" sep="_">
        <body name="leg" pos="-0.1 0.11 -0.1">
          <joint name="hip" axis="0 1 0.2" range="-0.7 0.9" damping="0.4" frictionloss="0.09"/>
          <geom type="capsule" fromto="0 0 0 0.02 0.01 -0.3" size="0.02"/>
          <site name="foot" pos="0.02 0.01 -0.3"/>
        </body>
      </replicate>
    </body>
  </worldbody>
  <equality>
    <connect name="held" body1="head" body2="trunk" anchor="0.03 0.04 0.05"/>
    <weld name="stand" body1="trunk" relpose="0.1 0.2 0.3 0.8 0.1 0.2 -0.3" anchor="0.1 0 0.2" torquescale="0.7"/>
  </equality>
</mujoco>
"""

URDF = """<?xml version="1.0"?>
<robot name="odd" version="1.2">
  <link name="base"/>
  <link name="a">
    <inertial><origin xyz="0.1 -0.02 0.3" rpy="0.3 -0.5 0.7"/><mass value="2.3"/>
      <inertia ixx="0.031" ixy="0.002" ixz="-0.003" iyy="0.027" iyz="0.001" izz="0.022"/></inertial>
  </link>
  <link name="b">
    <inertial><origin xyz="0.03 0.02 0.07" quat_xyzw="0.1 0.3 -0.2 0.8"/><mass value="1.1"/>
      <inertia ixx="0.011" ixy="0.001" ixz="-0.001" iyy="0.013" iyz="0.0007" izz="0.009"/></inertial>
  </link>
  <link name="c"><inertial><origin xyz="0.2 0 0.1"/><mass value="0.7"/></inertial></link>
  <link name="d"><inertial/></link>
  <link name="e"><inertial><mass value="0.3"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <link name="f"/>
  <joint name="turn" type="revolute">
    <parent link="base"/><child link="a"/><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><axis xyz="1 2 -2"/>
    <limit lower="-1.1" upper="0.9" velocity="2.3" effort="41"/><dynamics damping="0.7" friction="0.31"/>
  </joint>
  <joint name="push" type="prismatic">
    <parent link="a"/><child link="b"/><origin xyz="0.3 0 0.1"/><axis xyz="0 0.6 0.8"/>
    <limit upper="0.4" velocity="-1" effort="80"/>
  </joint>
  <joint name="wheel" type="continuous">
    <parent link="b"/><child link="c"/><axis xyz="3 0 4"/><limit lower="-1" upper="1" velocity="9" effort="5"/>
  </joint>
  <joint name="follows" type="revolute">
    <parent link="c"/><child link="d"/><mimic joint="turn" multiplier="-0.7" offset="0.13"/>
    <limit lower="2" upper="1" velocity="1" effort="2"/>
  </joint>
  <joint name="ball" type="spherical"><parent link="d"/><child link="e"/><origin rpy="0.1 0.2 0.3"/></joint>
  <joint name="plane" type="planar">
    <parent link="a"/><child link="f"/><axis xyz="0 1 1"/><limit velocity="1.5" effort="7"/><dynamics damping="0.2"/>
  </joint>
</robot>
"""

SPEC = """number_links 3
name three of 1992
gravity 0.3 0 -9.6
mass 1.1 m2 0.7
sigma 0 1 0
alpha 90 -37 11
dpar 0.1 0.2 d3
apar 0.03 a2 0.07
theta 5 0 -12
xgrav 0.1 0.02 0.03
ygrav 0.01 y2 0.04
zgrav 0.05 0.06 -0.02
adyna 0.3 0.2 0.1
bdyna 0.31 0.22 0.12
cdyna 0.29 0.25 0.13
ddyna 0.01 0.02 0.003
edyna -0.01 0.004 0.005
fdyna 0.002 0.006 -0.003
motor_inertia 0.4 0.5 0.2
fs 0.3 0.2 0.1
ds 1.1 0.7 0.9
variable m2 2.3
variable y2 0.07
constant d3 0.31
constant a2 0.2
"""

DH = """name = "table"
convention = "dh"
gravity = [0.2, 0.1, -9.7]

[[joint]]
alpha_deg = 90
a = 0.2
d = 0.31
theta = 12
mass = 3.1
com = [0.1, -0.02, 0.03]
inertia = { Ixx = 0.03, Iyy = 0.04, Izz = 0.05, Ixy = 0.001, Ixz = -0.002, Iyz = 0.003 }
limits_deg = [-170, 160]
rotor_inertia = 0.2
viscous_friction = 0.7
coulomb_friction = [0.3, 0.4]

[[joint]]
type = "prismatic"
alpha = -30
a = 0.1
d = 0.05
theta = 40
mass = 1.7
first_moment = [0.1, 0.2, -0.03]
inertia_about_origin = { Ixx = 0.3, Iyy = 0.4, Izz = 0.5, Ixy = 0.01, Ixz = -0.02, Iyz = 0.03 }
limits = [-0.2, 0.3]
velocity_limit = 1.3
effort_limit = 60

[[joint]]
name = "wrist"
link = "link3"
alpha = 0.1
theta = -15
mass = 0.9
stiffness = 3.1
spring_reference = 0.3
coulomb_friction = 0.2

[[frame]]
name = "tip"
link = "link3"
xyz = [0.1, 0.2, 0.3]
rpy = [0.3, 0.2, 0.1]

[[motor]]
name = "both"
joints = { joint1 = 1.3, wrist = -0.7 }
rotor_inertia = 0.1
viscous_friction = 0.2
coulomb_friction = [0.3, 0.2]
offset = 0.4
"""

FILES = {"arm.xml": ARM, "free.xml": FREE, "odd.urdf": URDF, "three.spec": SPEC, "table.toml": DH}
