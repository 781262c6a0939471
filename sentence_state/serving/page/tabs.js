// Tabs as the keyboard expects them: arrows move, the panel follows.

export function tabs(list) {
  const all = [...list.querySelectorAll('[role="tab"]')];

  function select(tab) {
    for (const one of all) {
      const chosen = one === tab;
      one.setAttribute("aria-selected", String(chosen));
      one.tabIndex = chosen ? 0 : -1;
      document.getElementById(one.getAttribute("aria-controls")).hidden = !chosen;
    }
  }

  list.addEventListener("click", (event) => {
    const tab = event.target.closest('[role="tab"]');
    if (tab) select(tab);
  });
  list.addEventListener("keydown", (event) => {
    const now = all.indexOf(document.activeElement);
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: all.length - 1 }[event.key];
    if (now < 0 || next === undefined) return;
    event.preventDefault();
    const tab = all[(next + all.length) % all.length];
    select(tab);
    tab.focus();
  });
}
