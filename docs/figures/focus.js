// What scrolls sideways (wide tables and formulas) can be reached and scrolled with the keyboard. Copy buttons of code, which
// the theme puts into <nav>, are no landmarks.
const reachable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .arithmatex, .output")) {
    if (box.scrollWidth <= box.clientWidth) continue;
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "scrolls sideways");
  }
  for (const buttons of document.querySelectorAll(".md-code__nav")) buttons.setAttribute("role", "presentation");
};
addEventListener("load", () => [0, 300, 1000].forEach(wait => setTimeout(reachable, wait)));
addEventListener("resize", reachable);
