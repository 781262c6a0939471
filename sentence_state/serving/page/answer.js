// A prediction: the label with its probabilities, the text with its spans in colour.

import { html, percent } from "./elements.js";

const SHOWN = 6; // labels
const COLOURS = 8;

export function answerView(text, prediction, model) {
  const hasLabel = prediction.label !== null && prediction.label !== undefined;
  const hasSpans = model.span_labels.length > 0;
  const view = html("div", { class: hasLabel && hasSpans ? "answer both" : "answer" });
  if (hasLabel) view.append(html("div", {}, verdict(prediction), bars(prediction.probabilities)));
  if (hasSpans) view.append(html("div", {}, html("h3", {}, "In the sentence"), tagged(text, prediction.spans, model)));
  return view;
}

export function verdict(prediction) {
  const share = html("span", { class: "share" }, ` ${percent(prediction.score)}`);
  return html("p", { class: "verdict" }, prediction.label, share);
}

function bars(probabilities) {
  const sorted = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  const list = html("ul", { class: "bars", "aria-label": "Probabilities of the labels" });
  for (const [label, share] of sorted.slice(0, SHOWN)) {
    const fill = html("div", { class: "fill" });
    fill.style.transform = `scaleX(${share})`;
    const track = html("div", { class: "track", "aria-hidden": "true" }, fill);
    list.append(html("li", {}, html("span", { class: "name" }, label), track, html("span", { class: "number" }, percent(share))));
  }
  const rest = sorted.slice(SHOWN).reduce((sum, [, share]) => sum + share, 0);
  if (sorted.length <= SHOWN) return list;
  const more = html("p", { class: "note" }, `and ${sorted.length - SHOWN} more labels with ${percent(rest)} together`);
  return html("div", {}, list, more);
}

// Spans are counted in code points, as Python counts; JavaScript counts in halves of them.
export function tagged(text, spans, model, small = false) {
  const characters = Array.from(text);
  const slice = (from, to) => characters.slice(from, to).join("");
  const view = html("p", { class: small ? "tagged small" : "tagged", dir: "auto" });
  let position = 0;
  for (const span of spans) {
    view.append(slice(position, span.start));
    const colour = model.span_labels.indexOf(span.label) % COLOURS;
    const tag = html("span", { class: "tag" }, span.label);
    const title = `${span.label}, ${percent(span.score)}`;
    view.append(html("mark", { class: `span-${colour}`, title, dir: "auto" }, slice(span.start, span.end), tag));
    position = span.end;
  }
  view.append(slice(position));
  return view;
}
