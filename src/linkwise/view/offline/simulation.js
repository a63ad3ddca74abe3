// Plays a recorded simulation: poses of the bodies from q, and the forces of contacts as arrows.
class Simulation {
  constructor(panel) {
    Object.assign(this, {panel, rows: panel.data.simulation, playing: false});
    this.end = this.rows.t[this.rows.t.length - 1];
    this.button = element("button", {class: "main", onclick: () => this.playing ? this.stop() : this.start()}, "Play");
    this.time = element("input", {type: "range", min: 0, max: 1000, step: 1, value: "0", "aria-label": "time [s]"});
    this.time.addEventListener("input", () => { this.stop(); this.at(this.time.value / 1000 * this.end); });
    this.moment = element("span", {class: "unit"}, "0 s");
    this.list = element("pre", {tabindex: "0", "aria-label": "forces of contacts"});
  }

  content() {
    return [element("div", {class: "row"}, element("span", {}, "time"), this.time, this.moment),
      element("div", {class: "buttons"}, this.button),
      element("p", {}, "Arrows are forces of contacts on the first of two bodies."), this.list];
  }

  start() {
    this.panel.stop();
    this.playing = true;
    this.button.textContent = "Pause";
    const begin = performance.now() - 1000 * (this.time.value / 1000 % 1) * this.end;
    const frame = now => {
      if (!this.playing) return;
      this.at((now - begin) / 1000 % Math.max(this.end, 1e-3));
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  stop() {
    this.playing = false;
    this.button.textContent = "Play";
  }

  at(moment) {
    const {t, q, points, forces, scale, names} = this.rows;
    let k = t.findIndex(x => x > moment) - 1;
    if (k < 0) k = moment >= this.end ? t.length - 1 : 0;
    const poses = this.panel.arm.functions.poses({q: Float64Array.from(q[k])}).poses;
    this.panel.scene.place(poses);
    if (this.rows.follows) {
      this.first ??= this.panel.arm.functions.poses({q: Float64Array.from(q[0])}).poses.slice();
      this.panel.scene.follow([3, 7, 11].map(place => poses[place] - this.first[place]));
    }
    this.panel.scene.push(points[k], forces[k], scale);
    const lines = names.map((name, i) => [name, forces[k][i]]).filter(([, f]) => Math.hypot(...f) > 0);
    this.list.textContent = lines.map(([name, f]) => `${name}: ${f.map(compact).join("  ")} N`).join("\n") || "nothing touches";
    this.time.value = this.end ? 1000 * moment / this.end : 0;
    this.moment.textContent = `${moment.toFixed(2)} s`;
  }
}
