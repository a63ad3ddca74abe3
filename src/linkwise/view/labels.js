// Names for screen readers, which viser's controls lack: a slider and its field get the text of their label.
(() => {
  const name = (element, text) => {
    if (element && text && element.getAttribute("aria-label") !== text) element.setAttribute("aria-label", text);
  };
  const mended = () => {
    for (const label of document.querySelectorAll("label[for]")) {
      const control = document.getElementById(label.htmlFor), text = label.textContent.trim();
      if (!control || !text) continue;
      name(control.querySelector("[role=slider]"), text);
      const row = control.parentElement;
      for (const field of row.querySelectorAll("input:not([type=hidden])")) if (field.id !== label.htmlFor) name(field, text);
    }
    for (const button of document.querySelectorAll("button")) {
      if (button.textContent.trim() || button.title) continue;
      const parts = button.className;
      name(button, /close/i.test(parts) ? "close" : "settings of the page");
    }
    const root = document.getElementById("root");
    if (root && !root.hasAttribute("role")) root.setAttribute("role", "main");
    for (const canvas of document.querySelectorAll("canvas[data-engine]")) {
      canvas.setAttribute("role", "img");
      name(canvas, `3-D view: ${document.title}`);
    }
    if (root && !document.querySelector("h1")) {
      const heading = document.createElement("h1");
      heading.textContent = document.title || "3-D page";
      heading.style.cssText = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);margin:0";
      root.before(heading);
    }
  };
  let waiting = false;
  const later = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; mended(); }, 200);
  };
  new MutationObserver(later).observe(document.documentElement, {childList: true, subtree: true});
  later();
})();
