// Sliders, torques, motions and code of a page file. Names come from strangers' files: text is set as text, never as HTML.
const element = (kind, attributes = {}, ...inside) => {
  const made = document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && name !== "list" && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
};
const drawn = (kind, attributes, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
};
const compact = x => {
  const text = x.toFixed(Math.abs(x) >= 1000 ? 0 : Math.abs(x) >= 10 ? 1 : 2);
  return Number(text) === 0 ? "0" : text.replace("-", "−");
};
const finite = x => Number.isFinite(x) ? x : 0;

class Arm {
  constructor(data, functions) {
    this.data = data;
    this.functions = functions;
    this.values = Float64Array.from(data.home); // of the sliders [rad or m]
    this.load = 0;
  }

  // q of the sliders: roll, pitch and yaw of free joints become (x, y, z, w).
  q(values = this.values) {
    const q = [];
    let at = 0;
    for (const joint of this.data.joints) {
      if (!joint.free) { q.push(values[at++]); continue; }
      for (let k = 0; k < joint.lengths; k++) q.push(values[at++]);
      const [c, s] = [Math.cos, Math.sin].map(f => [0, 1, 2].map(k => f(0.5 * values[at + k])));
      q.push(s[0] * c[1] * c[2] - c[0] * s[1] * s[2], c[0] * s[1] * c[2] + s[0] * c[1] * s[2],
        c[0] * c[1] * s[2] - s[0] * s[1] * c[2], c[0] * c[1] * c[2] + s[0] * s[1] * s[2]);
      at += 3;
    }
    return Float64Array.from(q);
  }

  poses(values) { return this.functions.poses({q: this.q(values)}).poses; }

  loaded(name, given) {
    const own = this.functions[name](given).tau, other = this.functions[`${name}_loaded`];
    if (!this.load || !other) return own;
    const with_load = other(given).tau;
    return own.map((x, k) => x + this.load * (with_load[k] - x));
  }

  gravity(values) { return this.loaded("gravity", {q: this.q(values)}); }

  torques(q, qd, qdd) { return this.loaded("inverse", {q, qd, qdd}); }

  // Moves the other joints until loops are closed; the one that was moved stays if it can.
  close(held) {
    if (!this.functions.errors) return true;
    const n = this.values.length, values = Float64Array.from(this.values);
    for (let round = 0; round < 40; round++) {
      const errors = this.functions.errors({q: values}).errors, m = errors.length;
      if (Math.max(...errors.map(Math.abs)) < 1e-9) { this.values.set(values); return true; }
      const J = this.functions.jacobian({q: values}).J, step = new Float64Array(n);
      const weight = k => k === held ? 1e-4 : 1;
      const A = Array.from({length: m}, (_, i) => Float64Array.from({length: m + 1}, (_, j) => {
        if (j === m) return -errors[i];
        let sum = i === j ? 1e-9 : 0;
        for (let k = 0; k < n; k++) sum += J[i * n + k] * weight(k) * J[j * n + k];
        return sum;
      }));
      const y = solved(A);
      for (let k = 0; k < n; k++) for (let i = 0; i < m; i++) step[k] += weight(k) * J[i * n + k] * y[i];
      const size = Math.max(...step.map(Math.abs));
      for (let k = 0; k < n; k++) values[k] += step[k] * Math.min(1, 0.3 / Math.max(size, 1e-12));
    }
    return false;
  }
}

// Gauss elimination with pivots; A has the right side as its last column.
function solved(A) {
  const m = A.length, y = new Float64Array(m);
  for (let k = 0; k < m; k++) {
    let best = k;
    for (let i = k + 1; i < m; i++) if (Math.abs(A[i][k]) > Math.abs(A[best][k])) best = i;
    [A[k], A[best]] = [A[best], A[k]];
    if (!A[k][k]) continue;
    for (let i = k + 1; i < m; i++) {
      const factor = A[i][k] / A[k][k];
      for (let j = k; j <= m; j++) A[i][j] -= factor * A[k][j];
    }
  }
  for (let k = m - 1; k >= 0; k--) {
    let sum = A[k][m];
    for (let j = k + 1; j < m; j++) sum -= A[k][j] * y[j];
    y[k] = A[k][k] ? sum / A[k][k] : 0;
  }
  return y;
}

class Panel {
  constructor(arm, scene) {
    Object.assign(this, {arm, scene, data: arm.data, rows: [], bars: []});
    const data = this.data;
    document.getElementById("name").textContent = data.name;
    document.getElementById("dark").addEventListener("click", () => this.shade(!document.documentElement.classList.contains("dark")));
    this.shade(data.dark ?? matchMedia("(prefers-color-scheme: dark)").matches);
    this.addBars();
    this.simulation = data.simulation ? new Simulation(this) : null;
    this.addTabs({...(this.simulation ? {Simulation: this.simulation.content()} : {}), Joints: this.joints(), ...(data.moves ? {Motion: this.motion()} : {}), Code: this.code(), Show: this.show()});
    if (!scene.gl) document.getElementById("hint").textContent = "This browser has no WebGL 2: the robot is not drawn; torques and code work.";
    arm.close(-1);
    this.refresh();
    if (this.simulation) this.simulation.at(0);
  }

  shade(dark) {
    document.documentElement.classList.toggle("dark", dark);
    document.getElementById("dark").textContent = dark ? "light" : "dark";
  }

  addTabs(tabs) {
    const list = element("div", {role: "tablist", "aria-label": "parts of the page"}), panels = document.getElementById("panels");
    const buttons = Object.entries(tabs).map(([title, content], k) => {
      const panel = element("div", {role: "tabpanel", id: `panel${k}`, "aria-labelledby": `tab${k}`, hidden: true}, ...content);
      panels.append(panel);
      const button = element("button", {role: "tab", id: `tab${k}`, "aria-controls": `panel${k}`, onclick: () => select(k)}, title);
      list.append(button);
      return [button, panel];
    });
    const select = chosen => buttons.forEach(([button, panel], k) => {
      button.setAttribute("aria-selected", k === chosen);
      button.tabIndex = k === chosen ? 0 : -1;
      panel.hidden = k !== chosen;
    });
    list.addEventListener("keydown", event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const next = (buttons.findIndex(([button]) => button.tabIndex === 0) + step + buttons.length) % buttons.length;
      select(next);
      buttons[next][0].focus();
    });
    panels.before(list);
    select(0);
  }

  // -- torques --------------------------------------------------------------------------------------------------------

  addBars() {
    const place = document.getElementById("bars");
    for (const {name, unit} of this.data.torques) {
      const fill = element("div", {class: "fill"}), number = element("div", {class: "number"}), share = element("div", {class: "share", title: "of the effort limit"});
      const bar = element("div", {class: "bar"}, element("div", {class: "name", title: name}, name), element("div", {class: "track"}, fill), number, share);
      place.append(bar);
      this.bars.push({bar, fill, number, share, unit});
    }
  }

  tint(part) {
    const stops = this.data.tints, x = Math.min(1, Math.max(0, Number.isFinite(part) ? part : 1)) * (stops.length - 1), k = Math.min(Math.floor(x), stops.length - 2);
    return stops[k].map((c, i) => c + (x - k) * (stops[k + 1][i] - c));
  }

  paint(tau, caption) {
    document.getElementById("caption").textContent = caption;
    this.bars.forEach(({bar, fill, number, share, unit}, k) => {
      const {scale, limited} = this.data.torques[k], part = tau[k] / scale, length = 50 * Math.min(1, Math.abs(part));
      bar.dataset.torque = tau[k];
      fill.style.left = `${50 - (part < 0 ? length : 0)}%`;
      fill.style.width = `${length}%`;
      fill.style.background = `rgb(${this.tint(Math.abs(part)).map(Math.round)})`;
      number.textContent = `${compact(tau[k])} ${unit}`;
      share.textContent = limited ? `${Math.round(100 * Math.abs(part))} %` : "";
    });
    this.data.hubs.forEach((coordinates, joint) => {
      const part = Math.max(0, ...coordinates.map(k => Math.abs(tau[k] / this.data.torques[k].scale)));
      this.scene.tints.set(joint, this.tint(part).map(c => c / 255));
    });
  }

  refresh() {
    if (this.arm.functions.poses) this.scene.place(this.arm.poses());
    if (this.data.torques.length) this.paint(this.arm.gravity(), this.arm.load ? `gravity torques with ${this.arm.load} kg` : "gravity torques");
    this.scene.draw();
    for (const row of this.rows) row.show();
    this.python();
  }

  // -- joints ---------------------------------------------------------------------------------------------------------

  slider(name, unit, low, high, step, read, write) {
    const id = `slider${this.rows.length}`, bounds = {min: low, max: high, step};
    const range = element("input", {type: "range", id, ...bounds, "aria-label": `${name} [${unit}]`});
    const field = element("input", {type: "number", ...bounds, "aria-label": `${name} [${unit}], as a number`});
    const set = text => { const x = Number(text); if (text !== "" && Number.isFinite(x)) write(Math.min(high, Math.max(low, x))); };
    range.addEventListener("input", () => set(range.value));
    field.addEventListener("change", () => { set(field.value); show(true); });
    const show = () => {
      const value = (Math.round(read() * 10) / 10 + 0).toFixed(1);
      range.value = value;
      if (document.activeElement !== field) field.value = value;
    };
    this.rows.push({show});
    show();
    return element("div", {class: "row"}, element("label", {for: id, title: name}, name), range, field, element("span", {class: "unit"}, unit));
  }

  joints() {
    const {data, arm} = this, made = [];
    data.dials.forEach((dial, k) => made.push(this.slider(dial.name, dial.unit, dial.low, dial.high, 0.1, () => arm.values[k] * dial.factor, x => {
      const before = Float64Array.from(arm.values);
      arm.values[k] = Math.min(dial.inside[1], Math.max(dial.inside[0], x / dial.factor));
      if (!arm.close(k)) arm.values.set(before);
      this.halt();
      this.refresh();
    })));
    if (data.load) made.push(this.slider("load", "kg", 0, data.load.most, 0.1, () => arm.load, x => {
      arm.load = x;
      this.scene.shown.load = x > 0;
      const size = Math.cbrt(3 * x / (4 * Math.PI * data.load.density)), {position} = data.load;
      if (this.scene.ball) this.scene.ball.pose = matrix([size, 0, 0, position[0], 0, size, 0, position[1], 0, 0, size, position[2]]);
      this.refresh();
    }));
    const go = values => { arm.values.set(values); arm.close(-1); this.halt(); this.refresh(); };
    made.push(element("div", {class: "buttons"},
      element("button", {onclick: () => go(data.home)}, "start position"),
      element("button", {onclick: () => go(data.dials.map(d => (d.low + Math.random() * (d.high - d.low)) / d.factor))}, "random"),
      element("button", {id: "copy", onclick: event => copied(event.target, this.text)}, "copy q as Python")));
    for (const note of data.notes) made.push(element("p", {}, note));
    this.snippet = element("pre", {tabindex: "0", "aria-label": "the position as Python code"});
    made.push(this.snippet);
    return made;
  }

  // JSON strings are Python strings, so that no name can end the comment or the text.
  python() {
    const {data, arm} = this, q = arm.q();
    this.text = `import linkwise as lw\n\nrobot = lw.load(${JSON.stringify(data.file)})\nq = [${Array.from(q).join(", ")}]  # ${JSON.stringify(data.positions)}\nprint(robot.gravity_torques(q))\n`;
    this.snippet.textContent = this.text;
  }

  // -- motions --------------------------------------------------------------------------------------------------------

  motion() {
    const {data} = this;
    this.play = element("button", {class: "main", onclick: () => this.playing ? this.stop() : this.start()}, "Play");
    const choice = this.choice = element("select", {id: "motion", onchange: () => { this.stop(); this.recording = null; this.start(); }});
    for (const name of [...(data.motion ? ["the given motion"] : []), "to and fro", "random points"]) choice.append(element("option", {}, name));
    this.time = element("input", {type: "range", min: 0, max: 1000, step: 1, value: "0", "aria-label": "time [s]"});
    this.moment = element("span", {class: "unit"}, "0 s");
    this.time.addEventListener("input", () => { if (!this.recording) this.record(); this.stop(); this.at(this.time.value / 1000 * this.recording.end); });
    this.plot = element("div", {});
    return [element("div", {class: "row"}, element("label", {for: "motion"}, "motion"), choice, this.play),
      element("div", {class: "row"}, element("span", {}, "time"), this.time, this.moment), this.plot,
      element("p", {}, "Torques of the arm without contact: floor and obstacles are not modelled.")];
  }

  // Rows of t, q, qd, qdd and torques.
  record() {
    const {data, arm} = this;
    const rows = data.motion && this.choice.selectedIndex === 0 ? data.motion : smooth(data, arm.values, this.choice.value === "random points");
    const tau = rows.t.map((_, k) => arm.torques(...["q", "qd", "qdd"].map(name => Float64Array.from(rows[name][k]))));
    this.recording = {...rows, tau, end: rows.t[rows.t.length - 1]};
    this.drawPlot();
  }

  start() {
    if (!this.recording) this.record();
    this.playing = true;
    this.play.textContent = "Pause";
    const begin = performance.now() - 1000 * (this.time.value / 1000 % 1) * this.recording.end;
    const frame = now => {
      if (!this.playing) return;
      this.at((now - begin) / 1000 % this.recording.end);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  // Poses of the sliders end what is played.
  halt() {
    this.stop();
    if (!this.simulation) return;
    this.simulation.stop();
    this.scene.push([], [], 1);
  }

  stop() {
    if (!this.play) return;
    this.playing = false;
    this.play.textContent = "Play";
  }

  at(moment) {
    const {t, q, tau, end} = this.recording;
    let k = Math.max(0, Math.min(t.length - 2, t.findIndex(x => x > moment) - 1));
    if (moment >= end) k = t.length - 2;
    const part = Math.min(1, Math.max(0, (moment - t[k]) / (t[k + 1] - t[k])));
    const mixed = rows => Float64Array.from(rows[k], (x, i) => (1 - part) * x + part * rows[k + 1][i]);
    this.arm.values.set(mixed(q));
    this.scene.place(this.arm.poses());
    this.paint(mixed(tau), "torques of the motion");
    for (const row of this.rows) row.show();
    this.python();
    this.time.value = 1000 * moment / end;
    this.moment.textContent = `${moment.toFixed(1)} s`;
    this.mark.setAttribute("x1", 40 + 310 * moment / end);
    this.mark.setAttribute("x2", 40 + 310 * moment / end);
  }

  drawPlot() {
    const {t, tau, end} = this.recording, most = Math.max(1e-9, ...tau.map(row => Math.max(...row.map(Math.abs))));
    const svg = drawn("svg", {viewBox: "0 0 360 170", role: "img", "aria-label": `torques over time, at most ${compact(most)}`});
    const x = s => 40 + 310 * s / end, y = v => 75 - 65 * v / most;
    for (const v of [-most, 0, most]) {
      svg.append(drawn("line", {class: "grid", x1: 40, x2: 350, y1: y(v), y2: y(v)}), drawn("text", {x: 36, y: y(v) + 4, "text-anchor": "end"}, compact(v)));
    }
    svg.append(drawn("text", {x: 40, y: 158}, "0 s"), drawn("text", {x: 350, y: 158, "text-anchor": "end"}, `${end.toFixed(1)} s`));
    const legend = element("div", {class: "legend"});
    this.data.torques.forEach(({name, unit}, k) => {
      const colour = this.data.colours[k % this.data.colours.length];
      const line = tau.map((row, i) => `${i ? "L" : "M"}${x(t[i]).toFixed(1)} ${y(row[k]).toFixed(1)}`).join("");
      svg.append(drawn("path", {d: line, fill: "none", stroke: colour, "stroke-width": 1.6}));
      const key = element("i");
      key.style.background = colour;
      legend.append(element("span", {}, key, `${name} [${unit}]`));
    });
    this.mark = drawn("line", {x1: 40, x2: 40, y1: 10, y2: 140, stroke: "currentColor"});
    svg.append(this.mark);
    this.plot.replaceChildren(svg, legend);
  }

  // -- code and groups ------------------------------------------------------------------------------------------------

  code() {
    const {sources, name} = this.data, choice = element("select", {id: "function"});
    const shown = element("pre", {tabindex: "0", "aria-label": "generated C code"});
    if (!Object.keys(sources).length) return [element("p", {}, "The code of this robot is too long for a page file: linkwise generate writes it.")];
    for (const title of Object.keys(sources)) choice.append(element("option", {}, title));
    const write = () => { shown.textContent = sources[choice.value]; };
    choice.addEventListener("change", write);
    write();
    const download = element("button", {class: "main", id: "download", onclick: () => {
      const link = element("a", {href: URL.createObjectURL(new Blob([sources[choice.value]], {type: "text/x-c"})), download: `${choice.value}.c`});
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }}, "download C");
    return [element("div", {class: "row"}, element("label", {for: "function"}, "function"), choice, download),
      element("p", {}, "C99 for this robot, one state per call; needs no library but libm."), shown];
  }

  show() {
    const {groups} = this.data, made = [];
    const more = this.data.simulation ? [{group: "arrows", label: "forces of contacts", visible: true}] : [];
    for (const {group, label, visible} of [...groups, ...more, {group: "floor", label: "floor", visible: true}]) {
      this.scene.shown[group] = visible;
      const box = element("input", {type: "checkbox", checked: visible, onchange: () => { this.scene.shown[group] = box.checked; this.scene.draw(); }});
      made.push(element("label", {class: "check"}, box, label));
    }
    for (const problem of this.data.problems) made.push(element("p", {}, `Not shown: ${problem}`));
    made.push(element("p", {}, `Made by linkwise ${this.data.version}; computed in this browser, with the same bits as in Python.`));
    return made;
  }
}

// Through points, at rest at each: quintic polynomials, slower than the joints allow.
function smooth(data, start, random) {
  const n = start.length, low = data.dials.map(d => d.low / d.factor), high = data.dials.map(d => d.high / d.factor);
  const points = [Array.from(start)];
  for (let p = 0; p < (random ? 4 : 1); p++) points.push(low.map((l, k) => {
    const middle = (l + high[k]) / 2;
    return random ? l + (0.15 + 0.7 * Math.random()) * (high[k] - l)
      : Math.min(high[k], Math.max(l, middle - 0.5 * (start[k] - middle) + 0.15 * (high[k] - l)));
  }));
  points.push(Array.from(start));
  const rows = {t: [], q: [], qd: [], qdd: []}, PEAK = 1.875; // largest velocity of a quintic step of 1 in 1 s
  let begin = 0;
  for (let p = 0; p + 1 < points.length; p++) {
    const [a, b] = [points[p], points[p + 1]];
    const T = Math.max(0.8, ...a.map((x, k) => PEAK * Math.abs(b[k] - x) / data.speeds[k])), count = Math.max(20, Math.ceil(30 * T));
    for (let i = p ? 1 : 0; i <= count; i++) {
      const s = i / count, at = f => a.map((x, k) => f(x, b[k] - x));
      rows.t.push(begin + s * T);
      rows.q.push(at((x, d) => x + d * s * s * s * (10 + s * (6 * s - 15))));
      rows.qd.push(at((_, d) => d / T * 30 * s * s * (s - 1) * (s - 1)));
      rows.qdd.push(at((_, d) => d / T / T * 60 * s * (s * (2 * s - 3) + 1)));
    }
    begin += T;
  }
  return rows;
}

// Pages from file:// may not use the clipboard of every browser: the text is selected and copied then.
async function copied(button, text) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", {"aria-hidden": "true"});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = label; }, 1500);
}

async function begin() {
  const packed = document.getElementById("data").textContent.trim();
  const stream = new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = JSON.parse(await new Response(stream).text());
  const names = Object.keys(data.modules);
  const loaded = await Promise.all(names.map(name => instantiated(data.modules[name])));
  const arm = new Arm(data, Object.fromEntries(names.map((name, k) => [name, loaded[k]])));
  const scene = new Scene(document.querySelector("canvas"), data);
  window.linkwise = new Panel(arm, scene);
}
begin().catch(error => { document.getElementById("hint").textContent = `This page does not work here: ${error.message}`; throw error; });
