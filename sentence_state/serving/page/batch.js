// A whole file: read it here, ask for its texts in portions, show a table, save it.

import { predict } from "./api.js";
import { tagged } from "./answer.js";
import { byId, html, percent } from "./elements.js";
import { guessColumn, readFile } from "./reading.js";
import { asCsv, asJsonLines, save } from "./saving.js";
import { decoded } from "./text.js";

const PORTION = 32; // texts in one request
const SHOWN = 200; // rows of the table
const LARGEST = 64 * 1024 * 1024; // bytes of a file
let known = [];
let file = null;
let results = [];
let answering = null; // the model that gave `results`
let stopping = null;

export function batchView(answer) {
  const first = !known.length;
  known = answer.models;
  byId("batch-model").replaceChildren(...known.map((model) => html("option", { value: model.name }, model.name)));
  if (!first) return;
  const drop = byId("drop");
  byId("file").addEventListener("change", (event) => open(event.target.files[0]));
  for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  drop.addEventListener("drop", (event) => open(event.dataTransfer.files[0]));
  byId("start").addEventListener("click", start);
  byId("cancel").addEventListener("click", () => stopping?.abort());
  byId("save-csv").addEventListener("click", () => save(`${file.base}.answers.csv`, "text/csv", asCsv(results, answering)));
  byId("save-jsonl").addEventListener("click", () => save(`${file.base}.answers.jsonl`, "application/x-ndjson", asJsonLines(results)));
}

const chosenModel = () => known.find((model) => model.name === byId("batch-model").value);
const say = (words) => { byId("batch-state").textContent = words; };

async function open(chosen) {
  if (!chosen) return;
  stopping?.abort();
  byId("batch").hidden = false;
  for (const id of ["downloads", "table-region", "batch-progress"]) byId(id).hidden = true;
  byId("start").disabled = true;
  try {
    if (chosen.size > LARGEST) throw new Error("The file is larger than 64 MB; sentence-state predict --input reads it in a terminal.");
    file = { ...readFile(chosen.name, decoded(await chosen.arrayBuffer())), base: chosen.name.replace(/\.[^.]*$/, "") };
    if (!file.rows.length) throw new Error("The file has no texts.");
  } catch (error) {
    byId("column-choice").hidden = true;
    return say(error.message);
  }
  byId("column-choice").hidden = file.columns.length < 2;
  byId("column").replaceChildren(...file.columns.map((name, k) => html("option", { value: k }, String(name))));
  byId("column").value = guessColumn(file);
  byId("start").disabled = false;
  say(`${chosen.name}: ${file.kind}, ${file.rows.length.toLocaleString("en")} texts.`);
  start();
}

async function start() {
  stopping?.abort();
  const mine = new AbortController();
  stopping = mine;
  const model = (answering = chosenModel());
  const column = Number(byId("column").value);
  const texts = file.rows.map((row) => row[column] ?? "");
  results = [];
  byId("cancel").hidden = byId("batch-progress").hidden = byId("table-region").hidden = false;
  byId("downloads").hidden = true;
  const body = html("tbody");
  byId("answers").replaceChildren(head(model), body);
  try {
    for (let from = 0; from < texts.length; from += PORTION) {
      const portion = texts.slice(from, from + PORTION);
      const answers = await askFor(portion, model, mine.signal);
      portion.forEach((text, i) => {
        const result = { text: Array.isArray(text) ? text.join(" ") : text, ...answers[i] };
        results.push(result);
        if (results.length <= SHOWN) body.append(row(results.length, result, model));
      });
      byId("batch-progress").value = results.length / texts.length;
      say(`${results.length.toLocaleString("en")} of ${texts.length.toLocaleString("en")} texts are answered.`);
    }
  } catch (error) {
    if (stopping !== mine) return;
    say(error.name === "AbortError" ? `Stopped after ${results.length} texts.` : error.message);
  }
  if (stopping !== mine) return;
  byId("cancel").hidden = byId("batch-progress").hidden = true;
  byId("downloads").hidden = !results.length;
  if (results.length === texts.length) {
    const refused = results.filter((result) => result.error).length;
    const shown = results.length > SHOWN ? ` The first ${SHOWN} are shown.` : "";
    const answered = results.length === 1 ? "1 text is" : `${results.length.toLocaleString("en")} texts are`;
    say(`${answered} answered${refused ? `, ${refused} of them could not be read` : ""}.${shown}`);
  }
}

// A text that is refused must not take its portion with it: then each is asked for alone.
async function askFor(texts, model, signal) {
  try {
    return (await patiently(texts, model, signal)).predictions;
  } catch (error) {
    if (![413, 422].includes(error.status)) throw error;
    if (texts.length === 1) return [{ error: error.message }];
    const answers = [];
    for (const text of texts) answers.push(...(await askFor([text], model, signal)));
    return answers;
  }
}

async function patiently(texts, model, signal) {
  for (;;) {
    try {
      return await predict(texts, model.name, signal);
    } catch (error) {
      if (error.status !== 429) throw error;
      say("The server is busy; waiting.");
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.after));
      signal.throwIfAborted();
    }
  }
}

function head(model) {
  const names = ["", "text", ...(model.labels.length ? ["label", "score"] : [])];
  return html("thead", {}, html("tr", {}, ...names.map((name) => html("th", { scope: "col", class: name === "score" || !name ? "number" : "" }, name))));
}

function row(number, result, model) {
  const cells = [html("td", { class: "number" }, String(number))];
  if (result.error) {
    cells.push(html("td", { colspan: model.labels.length ? 3 : 1 }, html("span", { class: "trouble" }, result.error)));
  } else {
    cells.push(html("td", {}, tagged(result.text, result.spans, model, true)));
    if (model.labels.length) cells.push(html("td", {}, result.label), html("td", { class: "number" }, percent(result.score)));
  }
  return html("tr", {}, ...cells);
}
