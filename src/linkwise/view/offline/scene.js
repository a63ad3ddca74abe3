// Draws solids fixed to bodies with WebGL 2: one light from above, a floor of lines, a camera that circles the robot.
const SHADERS = {
  solid: [`#version 300 es
    uniform mat4 view; uniform mat4 body; in vec3 place; in vec3 normal; out vec3 seen; out vec3 turned;
    void main() { vec4 at = body * vec4(place, 1.0); seen = at.xyz; turned = mat3(body) * normal; gl_Position = view * at; }`,
  `#version 300 es
    precision highp float;
    uniform vec4 colour; uniform vec3 eye; uniform vec3 up; uniform float flatness;
    in vec3 seen; in vec3 turned; out vec4 result;
    void main() {
      vec3 n = flatness > 0.5 ? normalize(cross(dFdx(seen), dFdy(seen))) : normalize(turned);
      vec3 to = normalize(eye - seen);
      if (dot(n, to) < 0.0) n = -n;
      vec3 sun = normalize(to + 1.2 * up);
      float light = 0.42 + 0.18 * dot(n, up) + 0.5 * max(dot(n, sun), 0.0);
      float shine = 0.18 * pow(max(dot(n, normalize(sun + to)), 0.0), 24.0);
      result = vec4(colour.rgb * light + shine, colour.a);
    }`],
  line: [`#version 300 es
    uniform mat4 view; uniform vec3 shift; in vec3 place; out vec3 seen;
    void main() { seen = place + shift; gl_Position = view * vec4(seen, 1.0); }`,
  `#version 300 es
    precision highp float;
    uniform vec4 colour; uniform vec3 centre; uniform float reach; in vec3 seen; out vec4 result;
    void main() { result = vec4(colour.rgb, colour.a * clamp(1.6 - distance(seen, centre) / (1.6 * reach), 0.0, 1.0)); }`],
};

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const along = (a, s, b) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const unit = a => { const l = Math.hypot(...a) || 1; return [a[0] / l, a[1] / l, a[2] / l]; };
const bytesOf = text => Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer;

// Column-major 4×4 product.
function times(a, b) {
  const c = new Float32Array(16);
  for (let j = 0; j < 4; j++) for (let i = 0; i < 4; i++)
    c[4 * j + i] = a[i] * b[4 * j] + a[4 + i] * b[4 * j + 1] + a[8 + i] * b[4 * j + 2] + a[12 + i] * b[4 * j + 3];
  return c;
}
// From three rows of four, as poses are given.
const matrix = p => new Float32Array([p[0], p[4], p[8], 0, p[1], p[5], p[9], 0, p[2], p[6], p[10], 0, p[3], p[7], p[11], 1]);
const IDENTITY = matrix([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]);

class Scene {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.data = data;
    const gl = this.gl = canvas.getContext("webgl2", {antialias: true, alpha: true});
    this.shown = {};
    this.camera = {yaw: data.camera.yaw, pitch: data.camera.pitch, distance: data.camera.distance, target: [...data.camera.target]};
    this.side = unit(cross(data.up, Math.abs(data.up[2]) > 0.9 ? [0, 1, 0] : [0, 0, 1]));
    this.front = cross(this.side, data.up);
    this.poses = Array.from({length: data.bodies}, () => IDENTITY);
    this.tints = new Map();
    if (!gl) return;
    this.programs = Object.fromEntries(Object.entries(SHADERS).map(([name, texts]) => [name, this.program(...texts)]));
    this.parts = data.parts.map(part => this.solid(part));
    this.ball = data.load ? this.solid({...data.load.ball, group: "load", body: data.load.body, opacity: 1}) : null;
    this.floor = this.lines();
    this.arrow = data.simulation ? this.solid(data.simulation.arrow) : null;
    this.arrows = [];
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  program(vertex, fragment) {
    const gl = this.gl, program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text.trim());
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, 0, "place");
    gl.bindAttribLocation(program, 1, "normal");
    gl.linkProgram(program);
    const uniforms = {};
    for (let k = 0; k < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); k++) {
      const {name} = gl.getActiveUniform(program, k);
      uniforms[name] = gl.getUniformLocation(program, name);
    }
    return {program, uniforms};
  }

  solid(part) {
    const whole = new Uint16Array(bytesOf(part.vertices)), count = whole.length / 3;
    const places = new Float32Array(whole.length), normals = new Float32Array(whole.length);
    for (let k = 0; k < whole.length; k++) places[k] = part.low[k % 3] + part.step[k % 3] * whole[k];
    const faces = count > 65535 ? new Uint32Array(bytesOf(part.faces)) : new Uint16Array(bytesOf(part.faces));
    for (let f = 0; f < faces.length; f += 3) {
      const [a, b, c] = [0, 1, 2].map(k => places.subarray(3 * faces[f + k], 3 * faces[f + k] + 3));
      const n = cross(along(b, -1, a), along(c, -1, a));
      for (let k = 0; k < 3; k++) for (let i = 0; i < 3; i++) normals[3 * faces[f + k] + i] += n[i];
    }
    const array = this.array([places, normals], faces);
    return {...part, array, count: faces.length, wide: count > 65535, pose: matrix(part.pose), colour: part.colour.map(c => c / 255)};
  }

  array(attributes, indices) {
    const gl = this.gl, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    attributes.forEach((values, k) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(k);
      gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 0, 0);
    });
    if (indices) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
    }
    gl.bindVertexArray(null);
    return array;
  }

  lines() {
    const {reach, floor, up} = this.data, half = 3 * reach, step = reach / 4, points = [];
    const at = (a, b) => along(along(along([0, 0, 0], floor, up), a, this.side), b, this.front);
    for (let k = -12; k <= 12; k++) points.push(at(k * step, -half), at(k * step, half), at(-half, k * step), at(half, k * step));
    return {array: this.array([new Float32Array(points.flat())]), count: points.length};
  }

  eye() {
    const {yaw, pitch, distance, target} = this.camera, {up} = this.data;
    const level = along(along([0, 0, 0], Math.cos(yaw), this.side), Math.sin(yaw), this.front);
    return along(along(target, distance * Math.cos(pitch), level), distance * Math.sin(pitch), up);
  }

  view(eye) {
    const {target, distance} = this.camera, back = unit(along(eye, -1, target));
    const right = unit(cross(this.data.up, back)), above = cross(back, right);
    const turn = new Float32Array([right[0], above[0], back[0], 0, right[1], above[1], back[1], 0, right[2], above[2], back[2], 0,
      -dot(right, eye), -dot(above, eye), -dot(back, eye), 1]);
    const aspect = this.canvas.width / this.canvas.height, narrow = Math.min(1, aspect);
    const f = narrow / Math.tan(0.35), near = 0.05 * distance, far = 12 * distance;
    const lens = new Float32Array([f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0]);
    return times(lens, turn);
  }

  draw() {
    if (!this.gl || this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.now(); });
  }

  now() {
    const gl = this.gl, {canvas} = this, sharp = Math.min(devicePixelRatio || 1, 2);
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * sharp));
    canvas.height = Math.max(1, Math.round(canvas.clientHeight * sharp));
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const eye = this.eye(), view = this.view(eye), {up} = this.data;
    const solid = this.programs.solid;
    gl.useProgram(solid.program);
    gl.uniformMatrix4fv(solid.uniforms.view, false, view);
    gl.uniform3fv(solid.uniforms.eye, eye);
    gl.uniform3fv(solid.uniforms.up, up);
    const all = this.ball ? [...this.parts, this.ball] : this.parts;
    const visible = all.filter(part => this.shown[part.group]);
    for (const clear of [false, true]) {
      if (clear && this.shown.floor) this.drawFloor(view);
      gl.useProgram(solid.program);
      gl.depthMask(!clear);
      for (const part of visible) if ((part.opacity < 1) === clear) this.drawSolid(part);
      if (!clear && this.shown.arrows) for (const pose of this.arrows) this.drawSolid({...this.arrow, pose});
    }
    gl.depthMask(true);
  }

  drawSolid(part) {
    const gl = this.gl, {uniforms} = this.programs.solid;
    const colour = part.hub === null || part.hub === undefined ? part.colour : this.tints.get(part.hub) || part.colour;
    gl.uniform4f(uniforms.colour, ...colour, part.opacity);
    gl.uniform1f(uniforms.flatness, part.group === "meshes" ? 1 : 0);
    gl.uniformMatrix4fv(uniforms.body, false, times(part.body < 0 ? IDENTITY : this.poses[part.body], part.pose));
    gl.bindVertexArray(part.array);
    gl.drawElements(gl.TRIANGLES, part.count, part.wide ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT, 0);
  }

  drawFloor(view) {
    const gl = this.gl, {program, uniforms} = this.programs.line;
    gl.useProgram(program);
    gl.uniformMatrix4fv(uniforms.view, false, view);
    gl.uniform4f(uniforms.colour, 0.5, 0.55, 0.6, 0.5);
    gl.uniform3fv(uniforms.centre, this.camera.target);
    gl.uniform1f(uniforms.reach, this.data.reach);
    const {side, front} = this, step = this.data.reach / 4, moved = along(this.camera.target, -1, this.data.camera.target);
    const whole = axis => step * Math.round(dot(moved, axis) / step);
    gl.uniform3fv(uniforms.shift, along(along([0, 0, 0], whole(side), side), whole(front), front));
    gl.bindVertexArray(this.floor.array);
    gl.drawArrays(gl.LINES, 0, this.floor.count);
  }

  place(poses) {
    this.poses = this.poses.map((_, k) => matrix(poses.subarray(12 * k, 12 * k + 12)));
    this.draw();
  }

  // The camera goes with something that has moved by this from where it was at first; the floor's lines follow by whole steps.
  follow(moved) {
    this.camera.target = along(this.data.camera.target, 1, moved);
    this.draw();
  }

  // Forces at points as arrows: a pose whose third axis is the force.
  push(points, forces, scale) {
    this.arrows = [];
    points.forEach((p, k) => {
      const length = scale * Math.hypot(...forces[k]);
      if (!(length > 0)) return;
      const z = unit(forces[k]), x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [0, 1, 0], z)), y = cross(z, x);
      const wide = Math.min(length, 0.3 * this.data.reach);
      this.arrows.push(matrix([0, 1, 2].flatMap(i => [wide * x[i], wide * y[i], length * z[i], p[i]])));
    });
    this.draw();
  }

  turn(yaw, pitch) {
    this.camera.yaw += yaw;
    this.camera.pitch = Math.min(1.5, Math.max(-1.2, this.camera.pitch + pitch));
    this.draw();
  }

  zoom(factor) {
    const {distance} = this.data.camera;
    this.camera.distance = Math.min(4 * distance, Math.max(0.15 * distance, this.camera.distance * factor));
    this.draw();
  }

  listen() {
    const {canvas} = this, held = new Map();
    canvas.addEventListener("pointerdown", event => { held.set(event.pointerId, [event.clientX, event.clientY]); canvas.setPointerCapture(event.pointerId); });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, event => held.delete(event.pointerId));
    canvas.addEventListener("pointermove", event => {
      const last = held.get(event.pointerId);
      if (!last) return;
      const others = [...held].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const now = [event.clientX, event.clientY];
      if (others.length) {
        const gap = place => Math.hypot(place[0] - others[0][0], place[1] - others[0][1]);
        this.zoom(gap(last) / Math.max(gap(now), 1));
      } else this.turn(-0.008 * (now[0] - last[0]), 0.008 * (now[1] - last[1]));
      held.set(event.pointerId, now);
    });
    canvas.addEventListener("wheel", event => { event.preventDefault(); this.zoom(Math.exp(0.0012 * event.deltaY)); }, {passive: false});
    const keys = {ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1]};
    canvas.addEventListener("keydown", event => {
      if (keys[event.key]) this.turn(...keys[event.key]);
      else if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 0.9 : 1.1);
      else if (event.key === "0") { Object.assign(this.camera, this.data.camera); this.draw(); }
      else return;
      event.preventDefault();
    });
  }
}
