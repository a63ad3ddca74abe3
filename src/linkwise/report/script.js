// The numbers of a plot under the pointer.
for (const figure of document.querySelectorAll("figure")) {
  const plot = figure.querySelector("svg.plot"), data = figure.querySelector("script.data");
  if (!plot || !data) continue;
  const {box, x, lines, range, unit} = JSON.parse(data.textContent);
  const [left, top, right, bottom] = box, [first, last] = range;
  const rule = document.createElementNS("http://www.w3.org/2000/svg", "path");
  rule.setAttribute("stroke", "currentColor");
  rule.setAttribute("opacity", ".35");
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);
  plot.append(rule);
  plot.addEventListener("pointermove", (event) => {
    const area = plot.getBoundingClientRect(), scale = plot.viewBox.baseVal.width / area.width;
    const wanted = first + ((event.clientX - area.left) * scale - left) / (right - left) * (last - first);
    let k = x.findIndex((value) => value >= wanted);
    if (k < 0) k = x.length - 1;
    if (k > 0 && wanted - x[k - 1] < x[k] - wanted) k -= 1;
    const at = left + (x[k] - first) / (last - first) * (right - left);
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
    const place = at / scale;
    tip.style.left = `${place + 14 + tip.offsetWidth > area.width ? place - 14 - tip.offsetWidth : place + 14}px`;
    tip.style.top = "8px";
  });
  plot.addEventListener("pointerleave", () => { tip.hidden = true; rule.removeAttribute("d"); });
}
