// The slider over the steps, the picture of one step, its numbers, and what the model would say if it stopped there.

import { tagged, verdict } from "./answer.js";
import { html, percent } from "./elements.js";
import { figure } from "./figure.js";

const PAUSE = 1100; // milliseconds a step stays when the steps are played
const NAMES = { input: "its input", left: "the left", own: "itself", right: "the right", sentence: "the sentence" };
let count = 0;

export function exchangeView(found, model, room, startAt = null) {
  const last = found.steps.length;
  const edges = found.offsets.map((offset) => offset === null);
  const mostRead = Math.max(1e-9, ...found.steps.flatMap((step) => step.sentence_read));
  const id = `steps-${count++}`;
  let now = startAt === null ? last : Math.min(startAt, last);
  let chosen = null;
  let timer = null;

  const picture = figure(found.words, edges, room, (word, passing) => {
    if (!passing) chosen = chosen === word ? null : word;
    point(passing && word !== null ? word : chosen);
  });
  const slider = html("input", { type: "range", id, min: 0, max: last, step: 1, value: now, "aria-label": "Step of the exchange" });
  const where = html("output", { for: id });
  const play = html("button", { type: "button", class: "play" }, "Play");
  const ticks = html("ol", { class: "ticks", "aria-hidden": "true" });
  const final = saying(found.steps[last - 1].prediction);
  for (let t = 0; t <= last; t++) {
    const same = t > 0 && saying(found.steps[t - 1].prediction) === final;
    ticks.append(html("li", { class: t === 0 ? "none" : same ? "same" : "other" }, String(t)));
  }
  const reading = html("p", { class: "reading", "aria-live": "polite" });
  const stopped = html("div", { class: "stopped" });
  const numbers = html("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Shares of every word" });
  const view = html(
    "section",
    { class: "exchange", "aria-label": "The exchange of states" },
    html("h3", {}, "The exchange of states"),
    html("div", { class: "steps" }, html("div", { class: "where" }, play, where), html("div", { class: "track-of-steps" }, slider, ticks)),
    picture.view,
    legend(found.sources),
    reading,
    stopped,
    html("details", {}, html("summary", {}, "All numbers of this step"), numbers),
  );

  slider.addEventListener("input", () => {
    pause();
    show(Number(slider.value));
  });
  play.addEventListener("click", () => (timer === null ? start() : pause()));

  function start() {
    if (now === last) show(0);
    play.textContent = "Pause";
    timer = setInterval(() => (now < last && view.isConnected ? show(now + 1) : pause()), PAUSE);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }

  function show(step) {
    now = step;
    slider.value = step;
    where.textContent = `Step ${step} of ${last}`;
    slider.setAttribute("aria-valuetext", `Step ${step} of ${last}`);
    ticks.childNodes.forEach((tick, t) => tick.classList.toggle("now", t === step));
    const content = step > 0 ? found.steps[step - 1] : null;
    picture.show(content, mostRead);
    stopped.replaceChildren(...wouldSay(content, found.text, model));
    numbers.replaceChildren(content ? table(found, content) : html("p", { class: "note" }, "Step 0 has none: nothing was exchanged yet."));
    point(chosen);
  }

  function point(word) {
    picture.pick(word);
    reading.textContent = describe(found, now, word);
  }

  show(now);
  return { view, step: () => now };
}

function legend(sources) {
  const list = html("ul", { class: "legend", "aria-label": "Colours" });
  for (const source of sources) {
    const name = source === "own" ? "from itself (disc)" : `from ${NAMES[source]}`;
    list.append(html("li", { class: `of-${source}` }, name));
  }
  list.append(html("li", { class: "of-read" }, "to the sentence"), html("li", { class: "of-change" }, "how much its state changed"));
  return list;
}

function describe(found, now, word) {
  if (now === 0) return "Before the first step: every word has its initial state, and nothing was exchanged yet.";
  const step = found.steps[now - 1];
  if (word === null) {
    const means = found.sources.map((_, k) => step.words.reduce((sum, shares) => sum + shares[k], 0) / step.words.length);
    const parts = found.sources.map((source, k) => `${percent(means[k])} from ${NAMES[source]}`);
    const most = step.sentence_read.indexOf(Math.max(...step.sentence_read));
    const even = Math.max(...step.sentence_read) - Math.min(...step.sentence_read) < 0.002;
    const reads = even ? "The sentence reads all words alike" : `The sentence reads “${found.words[most]}” most`;
    return `On average a word took ${parts.join(", ")}. ${reads} and keeps ${percent(step.sentence_kept)} of itself.`;
  }
  const beside = { left: found.words[word - 1], right: found.words[word + 1] };
  const parts = found.sources.map((source, k) => {
    const name = source in beside ? (beside[source] === undefined ? `${NAMES[source]}, where nothing stands` : `“${beside[source]}”`) : NAMES[source];
    return `${percent(step.words[word][k])} from ${name}`;
  });
  const changed = `its state changed by ${percent(step.words_moved[word])}`;
  return `“${found.words[word]}” took ${parts.join(", ")}; ${changed}. The sentence took ${percent(step.sentence_read[word])} from it.`;
}

function wouldSay(content, text, model) {
  if (content === null) return [];
  const said = content.prediction;
  const parts = [html("h3", {}, "Stopped here, the model would say")];
  if (said.label !== null && said.label !== undefined) parts.push(verdict(said));
  if (model.span_labels.length) parts.push(tagged(text, said.spans, model, true));
  return parts;
}

// Two answers are the same when label and spans are; scores may differ.
function saying(prediction) {
  return JSON.stringify([prediction.label, prediction.spans.map((span) => [span.start, span.end, span.label])]);
}

function table(found, step) {
  const head = ["word", ...found.sources, "to the sentence", "change"];
  const rows = found.words.map((word, i) => {
    const cells = [...step.words[i], step.sentence_read[i], step.words_moved[i]];
    return html("tr", {}, html("th", { scope: "row" }, word), ...cells.map((cell) => html("td", { class: "number" }, cell.toFixed(3))));
  });
  const names = head.map((name, k) => html("th", { scope: "col", class: k ? "number" : "" }, name));
  return html("table", {}, html("thead", {}, html("tr", {}, ...names)), html("tbody", {}, ...rows));
}
