// One model beside the sentence: its answer and its exchange of states.

import { predict, trace } from "./api.js";
import { answerView } from "./answer.js";
import { html } from "./elements.js";
import { exchangeView } from "./exchange.js";

export function panel(model) {
  const content = html("div", {});
  const view = html("article", { class: "panel", "aria-label": model.name }, html("h2", {}, model.name), html("p", { class: "about" }, about(model)), content);
  const live = html("p", { class: "away", role: "status" });
  view.append(live);
  let asking = null;
  let step = () => null;

  async function ask(text) {
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    if (!text.trim()) {
      content.replaceChildren(html("p", { class: "note" }, "Type a sentence above."));
      return;
    }
    view.classList.add("busy");
    try {
      const answers = [predict([text], model.name, signal)];
      if (model.trace) answers.push(trace(text, model.name, signal).catch(unlessAborted));
      const [answered, traced] = await Promise.all(answers);
      const [prediction] = answered.predictions;
      content.replaceChildren(answerView(text, prediction, model), exchange(traced));
      live.textContent = summary(prediction);
    } catch (error) {
      if (error.name === "AbortError") return;
      content.replaceChildren(html("p", { class: "trouble" }, error.message));
      live.textContent = error.message;
    }
    view.classList.remove("busy");
  }

  function exchange(traced) {
    if (model.runtime === "onnx") return without("This model is an exported graph: it answers, but keeps no states to show.");
    if (!model.trace) return without(`${model.encoder} is no S-LSTM: its words exchange no states step by step, so there is nothing to show here.`);
    if (traced instanceof Error) return without(`The exchange is not shown: ${traced.message}.`);
    const atEnd = step() === null || step() === traced.steps.length;
    const shown = exchangeView(traced, model, view.clientWidth, atEnd ? null : step());
    step = shown.step;
    return shown.view;
  }

  return { view, ask, stop: () => asking?.abort() };
}

function without(words) {
  return html("section", { class: "exchange" }, html("h3", {}, "The exchange of states"), html("p", { class: "reading" }, words));
}

function unlessAborted(error) {
  if (error.name === "AbortError") throw error;
  return error;
}

function about(model) {
  const kinds = [model.labels.length ? `${model.labels.length} labels` : "", model.span_labels.length ? `${model.span_labels.length} kinds of spans` : ""];
  const steps = model.num_steps ? `${model.num_steps} steps` : "";
  const parameters = model.parameters ? `${model.parameters.toLocaleString("en")} parameters` : "exported as ONNX";
  return [model.encoder, steps, ...kinds, parameters].filter(Boolean).join(", ");
}

function summary(prediction) {
  const label = prediction.label === null || prediction.label === undefined ? "" : `${prediction.label}. `;
  return label + prediction.spans.map((span) => `${span.label}: ${span.text}`).join(", ");
}
