// The exchange of one step as a picture: every word a circle, every flow as wide as the share that was taken.

import { html, svg } from "./elements.js";

const TOP = 16, BAR = 24; // the sentence, a bar over all words
const NODE = 150, RADIUS = 21; // the words' states
const HEIGHT = 232;
const WIDEST = 32; // a share of one
const LANE = 10; // flows to the right run this far above the middle, those to the left below
const NARROWEST = 78, LETTER = 9, MOST_STRETCHED = 1.7; // columns
const AROUND = 2 * Math.PI * (RADIUS + 4);

export function figure(words, edges, room, onPick) {
  const needed = words.map((word) => Math.min(150, Math.max(NARROWEST, Array.from(word).length * LETTER + 18)));
  const stretch = Math.min(MOST_STRETCHED, Math.max(1, room / sumOf(needed)));
  const widths = needed.map((width) => width * stretch);
  const total = sumOf(widths);
  const middles = widths.map((width, i) => sumOf(widths.slice(0, i)) + width / 2);
  const picture = svg("svg", { width: total, height: HEIGHT, viewBox: `0 0 ${total} ${HEIGHT}`, "aria-hidden": "true" });
  picture.append(svg("rect", { class: "bar", x: 1, y: TOP, width: total - 2, height: BAR, rx: 5 }));
  picture.append(svg("text", { class: "bar-name", x: 16, y: TOP + 17 }, "the sentence"));
  const marks = words.map((_, i) => mark(middles, i, words.length));
  for (const { group } of marks) picture.append(group);
  const row = html("div", { class: "words" });
  const buttons = words.map((word, i) => {
    const button = html("button", { type: "button", "aria-pressed": "false", title: word, class: edges[i] ? "edge" : "" }, word);
    button.style.width = `${widths[i]}px`;
    button.addEventListener("click", () => onPick(i));
    button.addEventListener("mouseenter", () => onPick(i, true));
    button.addEventListener("mouseleave", () => onPick(null, true));
    row.append(button);
    return button;
  });
  row.style.width = `${total}px`;
  row.addEventListener("keydown", (event) => moveFocus(event, buttons));
  const view = html("div", { class: "figure", role: "group", "aria-label": "The words; choose one to read its shares" }, picture, row);

  function show(step, mostRead) {
    marks.forEach((one, i) => one.show(step, i, mostRead));
  }

  function pick(word) {
    picture.classList.toggle("picked", word !== null);
    marks.forEach(({ group }, i) => group.classList.toggle("chosen", i === word));
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === word)));
  }

  return { view, show, pick };
}

const sumOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0);

// The flows into one word, its circle, and what the sentence reads from it.
function mark(middles, i, count) {
  const x = middles[i];
  const group = svg("g", { class: "word-mark" });
  const flows = [
    flow("input", [x, HEIGHT], [x, NODE + RADIUS + 8]),
    i > 0 ? flow("left", [middles[i - 1] + RADIUS + 5, NODE - LANE], [x - RADIUS - 7, NODE - LANE]) : null,
    null,
    i < count - 1 ? flow("right", [middles[i + 1] - RADIUS - 5, NODE + LANE], [x + RADIUS + 7, NODE + LANE]) : null,
    flow("sentence", [x - 10, TOP + BAR], [x - 10, NODE - RADIUS - 7]),
  ];
  const read = flow("read", [x + 13, NODE - RADIUS - 4], [x + 13, TOP + BAR]);
  const core = svg("circle", { class: "core", cx: x, cy: NODE, r: 0 });
  const ring = svg("circle", { class: "ring", cx: x, cy: NODE, r: RADIUS + 4, transform: `rotate(-90 ${x} ${NODE})` });
  for (const one of [...flows, read]) if (one) group.append(one.line, one.head);
  group.append(svg("circle", { class: "node", cx: x, cy: NODE, r: RADIUS }), core, ring);

  function show(step, word, mostRead) {
    const shares = step ? step.words[word] : [0, 0, 0, 0, 0];
    flows.forEach((one, source) => one && one.set(shares[source] * WIDEST));
    read.set(step ? (step.sentence_read[word] / mostRead) * 14 : 0);
    core.style.setProperty("r", `${Math.sqrt(shares[2]) * (RADIUS - 2)}px`);
    const changed = step ? Math.min(1, step.words_moved[word]) * AROUND : 0;
    ring.style.setProperty("stroke-dasharray", `${changed} ${AROUND}`);
  }

  return { group, show };
}

function flow(kind, [x1, y1], [x2, y2]) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const size = 7;
  const line = svg("path", { class: `flow of-${kind}`, d: `M${x1} ${y1}L${x2 - dx * size} ${y2 - dy * size}` });
  const head = svg("path", { class: `head of-${kind}` });
  return {
    line,
    head,
    set(width) {
      line.style.setProperty("stroke-width", `${width}px`);
      const half = width > 0 ? width / 2 + 2.5 : 0;
      const [bx, by] = [x2 - dx * size, y2 - dy * size];
      head.setAttribute("d", `M${x2} ${y2}L${bx - dy * half} ${by + dx * half}L${bx + dy * half} ${by - dx * half}Z`);
      head.style.opacity = width > 0 ? 1 : 0;
    },
  };
}

function moveFocus(event, buttons) {
  const now = buttons.indexOf(document.activeElement);
  const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (now < 0 || next === undefined) return;
  event.preventDefault();
  buttons[Math.max(0, Math.min(buttons.length - 1, next))].focus();
}
