// Plots: numbers under the pointer, and zoom. Wheel, + and − zoom in time, with Shift vertically; dragging selects a
// range, or moves what is zoomed, as arrow keys do; a double click or 0 shows everything again.
const SVG = "http://www.w3.org/2000/svg", NEAR = 1.25, SCROLLS = 400;
const HELP = "Wheel or + −: zoom (Shift: vertically). Drag: choose a range, then move. Double click or 0: everything.";
let scrolled = -Infinity;
addEventListener("scroll", () => { scrolled = performance.now(); }, {passive: true});

function element(name, parent, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return parent.appendChild(made);
}

function ticks(low, high, about) {
  const raw = (high - low) / about, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((value) => value >= raw * (1 - 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found;
}

const short = (value, span) => {
  const digits = Math.max(3, Math.min(8, Math.ceil(Math.log10(Math.abs(value) / span + 1)) + 2));
  return String(Number(value.toPrecision(digits))).replace("-", "−");
};

function interactive(figure) {
  const plot = figure.querySelector("svg.plot"), data = figure.querySelector("script.data");
  if (!plot || !data) return;
  const {box, x, lines, range, unit} = JSON.parse(data.textContent);
  const [left, top, right, bottom] = box, width = right - left, height = bottom - top;
  const area = plot.querySelector("g.data"), drawn = [...plot.querySelectorAll("path.line")];
  const whole = drawn.map((path) => path.getAttribute("d")), mark = plot.querySelector("path.cursor");
  const tip = document.createElement("div"), rule = element("path", plot, {stroke: "currentColor", opacity: ".35"});
  const chosen = element("rect", plot, {y: top, height, fill: "currentColor", opacity: ".12", width: 0});
  let view = [...range], held = null;
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);

  const zoomed = () => view.some((value, k) => value !== range[k]);
  const across = (value) => left + (value - view[0]) / (view[1] - view[0]) * width;
  const up = (value) => bottom - (value - view[2]) / (view[3] - view[2]) * height;
  const place = (event) => {
    const shown = plot.getBoundingClientRect(), scale = plot.viewBox.baseVal.width / shown.width;
    return [(event.clientX - shown.left) * scale, (event.clientY - shown.top) * scale, scale, shown];
  };

  function label(group, values, vertical) {
    group.replaceChildren();
    const span = vertical ? view[3] - view[2] : view[1] - view[0];
    for (const value of values) {
      const at = vertical ? up(value) : across(value);
      element("path", group, vertical
        ? {d: `M${left} ${at}H${right}`, stroke: value === 0 ? "var(--ink)" : "var(--grid)"}
        : {d: `M${at} ${bottom}v4`, stroke: "var(--faint)"});
      const text = element("text", group, vertical
        ? {x: left - 8, y: at, dy: ".32em", "text-anchor": "end", fill: "var(--faint)"}
        : {x: at, y: bottom + 17, "text-anchor": "middle", fill: "var(--faint)"});
      text.textContent = short(value, span);
    }
  }

  function redraw() {
    const sx = (range[1] - range[0]) / (view[1] - view[0]), sy = (range[3] - range[2]) / (view[3] - view[2]);
    const x0 = left + (view[0] - range[0]) / (range[1] - range[0]) * width;
    const y0 = bottom - (view[2] - range[2]) / (range[3] - range[2]) * height;
    area.setAttribute("transform", `matrix(${sx} 0 0 ${sy} ${left - x0 * sx} ${bottom - y0 * sy})`);
    drawn.forEach((path, k) => {
      // the drawing has the extremes of all samples; near by, single samples are more exact
      const near = sx > 2 && lines[k];
      path.setAttribute("d", near ? through(lines[k].y) : whole[k]);
      if (near) path.setAttribute("transform", `matrix(${1 / sx} 0 0 ${1 / sy} ${x0 - left / sx} ${y0 - bottom / sy})`);
      else path.removeAttribute("transform");
    });
    label(plot.querySelector("g.y"), ticks(view[2], view[3], 5), true);
    label(plot.querySelector("g.x"), ticks(view[0], view[1], 8), false);
    if (mark) mark.style.display = zoomed() ? "none" : "";
    figure.classList.toggle("zoomed", zoomed());
    tip.hidden = true;
    rule.removeAttribute("d");
  }

  function through(y) {
    let d = "", pen = "M";
    const first = Math.max(0, x.findIndex((value) => value >= view[0]) - 1);
    for (let k = first; k < x.length; k += 1) {
      if (y[k] === null) { pen = "M"; continue; }
      d += `${pen}${across(x[k]).toFixed(2)} ${up(y[k]).toFixed(2)}`;
      pen = "L";
      if (x[k] > view[1]) break;
    }
    return d;
  }

  function within(k, low, high) {
    const span = Math.min(high - low, range[k + 1] - range[k]);
    if (span < 1e-4 * (range[k + 1] - range[k])) return;
    const start = Math.min(Math.max(low, range[k]), range[k + 1] - span);
    view[k] = start;
    view[k + 1] = start + span >= range[k + 1] * (1 - 1e-12) && span === range[k + 1] - range[k] ? range[k + 1] : start + span;
  }

  function zoom(factor, share, vertical = false) {
    const k = vertical ? 2 : 0, span = view[k + 1] - view[k], about = view[k] + share * span;
    within(k, about - share * span * factor, about + (1 - share) * span * factor);
    redraw();
  }

  function move(dx, dy) {
    within(0, view[0] + dx * (view[1] - view[0]), view[1] + dx * (view[1] - view[0]));
    within(2, view[2] + dy * (view[3] - view[2]), view[3] + dy * (view[3] - view[2]));
    redraw();
  }

  function reset() { view = [...range]; redraw(); }

  plot.addEventListener("wheel", (event) => {
    const steps = event.deltaY || event.deltaX;  // with Shift browsers turn the wheel sideways
    if (performance.now() - scrolled < SCROLLS || !steps || (steps > 0 && !zoomed())) return;
    const [px, py] = place(event), vertical = event.shiftKey;
    const share = vertical ? (bottom - py) / height : (px - left) / width;
    event.preventDefault();
    zoom(steps < 0 ? 1 / NEAR : NEAR, Math.min(1, Math.max(0, share)), vertical);
  }, {passive: false});
  plot.addEventListener("dblclick", reset);
  plot.addEventListener("keydown", (event) => {
    const moves = {ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1]}[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoom(1 / NEAR, 0.5);
    else if (event.key === "-" || event.key === "−") zoom(NEAR, 0.5);
    else if (event.key === "*") zoom(1 / NEAR, 0.5, true);
    else if (event.key === "_" || event.key === "/") zoom(NEAR, 0.5, true);
    else if (event.key === "0" || event.key === "Escape") reset();
    else if (moves && zoomed()) move(...moves);
    else return;
    event.preventDefault();
  });
  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    held = {from: place(event), view: [...view], pans: zoomed()};
    try { plot.setPointerCapture(event.pointerId); } catch { /* a pointer that is gone */ }
  });
  plot.addEventListener("pointerup", (event) => {
    if (!held) return;
    const [px] = place(event), [from] = held.from;
    if (!held.pans && Math.abs(px - from) > 6) {
      const ends = [from, px].sort((a, b) => a - b).map((p) => view[0] + (p - left) / width * (view[1] - view[0]));
      within(0, ...ends.map((value) => Math.min(Math.max(value, range[0]), range[1])));
      redraw();
    }
    chosen.setAttribute("width", 0);
    held = null;
  });
  plot.addEventListener("pointercancel", () => { held = null; chosen.setAttribute("width", 0); });
  plot.addEventListener("pointermove", (event) => {
    const [px, py, scale, shown] = place(event);
    if (held && held.pans) {
      view = [...held.view];
      move((held.from[0] - px) / width, (py - held.from[1]) / height);
      return;
    }
    if (held) {
      chosen.setAttribute("x", Math.min(px, held.from[0]));
      chosen.setAttribute("width", Math.abs(px - held.from[0]));
    }
    if (!lines.length) return;
    const wanted = view[0] + (px - left) / width * (view[1] - view[0]);
    let k = x.findIndex((value) => value >= wanted);
    if (k < 0) k = x.length - 1;
    if (k > 0 && wanted - x[k - 1] < x[k] - wanted) k -= 1;
    const at = Math.min(Math.max(across(x[k]), left), right);
    rule.setAttribute("d", `M${at} ${top}V${bottom}`);
    tip.replaceChildren(`${x[k]} ${unit}`);
    for (const {name, colour, y} of lines) {
      const row = document.createElement("div"), dot = document.createElement("span"), value = document.createElement("b");
      dot.textContent = "● ";
      dot.style.color = colour;
      value.textContent = y[k] === null ? "–" : y[k];
      row.append(dot, name, value);
      tip.append(row);
    }
    tip.hidden = false;
    const beside = at / scale;
    tip.style.left = `${beside + 14 + tip.offsetWidth > shown.width ? beside - 14 - tip.offsetWidth : beside + 14}px`;
    tip.style.top = "8px";
  });
  plot.addEventListener("pointerleave", () => { tip.hidden = true; rule.removeAttribute("d"); });

  if (!area || !plot.querySelector("g.x")) return;
  plot.setAttribute("tabindex", "0");
  plot.setAttribute("aria-label", HELP);
  const buttons = document.createElement("div");
  buttons.className = "zoom";
  const offers = [["+", "zoom in", () => zoom(1 / NEAR / NEAR, 0.5)], ["−", "zoom out", () => zoom(NEAR * NEAR, 0.5)],
    ["↺", "show everything", reset]];
  for (const [sign, words, action] of offers) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = sign;
    button.title = sign === "+" ? HELP : words;
    button.setAttribute("aria-label", words);
    button.addEventListener("click", action);
    buttons.append(button);
  }
  figure.append(buttons);
}

for (const figure of document.querySelectorAll("figure")) interactive(figure);

// a link to a folded section, and printing, unfold it
const unfold = () => { document.querySelector(`${location.hash || "#none"} > details`)?.setAttribute("open", ""); };
addEventListener("hashchange", unfold);
addEventListener("beforeprint", () => { for (const each of document.querySelectorAll("details")) each.open = true; });
unfold();

// a table or plot that is wider than the window is moved by arrow keys
const reachable = () => {
  for (const each of document.querySelectorAll(".scroll, figure")) {
    const wide = each.scrollWidth > each.clientWidth + 1;
    const own = each.tagName === "FIGURE" ? [] : [["role", "group"]]; // a figure with a caption has its own role
    for (const [name, value] of [["tabindex", "0"], ["aria-label", "scrolls sideways"], ...own])
      wide ? each.setAttribute(name, value) : each.removeAttribute(name);
  }
};
addEventListener("resize", reachable);
reachable();

// Commands: the button copies what stands beside it; a page from a file has no clipboard in some browsers.
for (const button of document.querySelectorAll("button.copy")) {
  const typed = button.parentElement.querySelector("code");
  button.addEventListener("click", async () => {
    const range = document.createRange();
    range.selectNodeContents(typed);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    try {
      await navigator.clipboard.writeText(typed.textContent);
    } catch {
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
