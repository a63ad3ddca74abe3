// Names for screen readers, which viser's controls lack: a slider and its field get the text of their label.
(title => {
  const name = (element, text) => {
    if (element && text && element.getAttribute("aria-label") !== text) element.setAttribute("aria-label", text);
  };
  const mended = () => {
    if (document.title !== title) document.title = title;
    for (const label of document.querySelectorAll("label[for]")) {
      const control = document.getElementById(label.htmlFor), text = label.textContent.trim();
      if (!control || !text) continue;
      name(control.querySelector("[role=slider]"), text);
      const row = control.parentElement;
      for (const field of row.querySelectorAll("input:not([type=hidden])")) if (field.id !== label.htmlFor) name(field, text);
    }
    for (const field of document.querySelectorAll("input:not([type=hidden], [aria-label])"))
      if (!field.labels?.length) name(field, "address of the server"); // the only one without a label
    for (const button of document.querySelectorAll("button")) {
      if (button.textContent.trim() || button.title) continue;
      const parts = button.className;
      name(button, /close/i.test(parts) ? "close" : "settings of the page");
    }
    for (const bars of document.querySelectorAll(".lw-bars")) { // of many joints: they scroll, so that the tabs stay in sight
      const box = bars.parentElement;
      if (bars.children.length < 16 || box.style.maxHeight) continue;
      Object.assign(box.style, {maxHeight: "42vh", overflowY: "auto"});
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      name(box, "torques");
    }
    const root = document.getElementById("root");
    if (root && !root.hasAttribute("role")) root.setAttribute("role", "main");
    for (const canvas of document.querySelectorAll("canvas[data-engine]")) {
      canvas.setAttribute("role", "img");
      name(canvas, `3-D view: ${title}`);
    }
    if (root && !document.querySelector("h1")) {
      const heading = document.createElement("h1");
      heading.textContent = title;
      heading.style.cssText = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);margin:0";
      root.prepend(heading);
    }
  };
  // On a phone viser's panel is as narrow as beside a wide page: it gets the whole width and less of the height. A tap on its
  // first line hides it and brings it back, which a bar says.
  const phone = document.createElement("style");
  phone.textContent = `@media (max-width: 500px) {
    .mantine-Paper-root[style*="position: fixed"][style*="bottom: 0px"] { width: 100% !important; max-height: 50% !important; }
    .mantine-Paper-root[style*="position: fixed"][style*="bottom: 0px"] .mantine-ScrollArea-content > div { width: 100% !important; }
    .mantine-Paper-root[style*="position: fixed"][style*="bottom: 0px"] .mantine-ScrollArea-content > div > div:first-child::before {
      content: ""; position: absolute; top: .45em; left: calc(50% - 1.5em); width: 3em; height: .3em; border-radius: .2em; background: #999; }
  }`;
  document.head.append(phone);
  // Keys that move a slider or are typed into a field would move the camera, too: viser listens at the document.
  for (const kind of ["keydown", "keyup"]) document.body.addEventListener(kind, event => {
    if (event.target.closest?.("[role=slider], [role=tab], input, textarea, select, button")) event.stopPropagation();
  });
  let waiting = false, again = false;
  const later = () => { // at once, then at most five times a second
    again = waiting;
    if (waiting) return;
    waiting = true;
    mended();
    setTimeout(() => { waiting = false; if (again) later(); }, 200);
  };
  // a control that is drawn anew loses its name without a new element
  new MutationObserver(later).observe(document.documentElement, {childList: true, subtree: true, attributeFilter: ["aria-label"]});
  later();
})(TITLE);
