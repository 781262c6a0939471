// A text as people have it in files -> { kind, columns, rows }: CSV, TSV, JSON lines, CoNLL columns, or one sentence a line.

import { delimited, lastPart } from "./delimited.js";

// The names that `predict --input` knows, in its order.
const TEXT_NAMES = ["text", "sentence", "review", "content", "comment", "tweet", "utterance", "message", "body", "document",
  "question", "query", "phrase", "description", "headline", "input", "title"];
const LABEL_NAMES = ["label", "labels", "class", "category", "sentiment", "intent", "target", "polarity", "topic", "rating",
  "stars", "emotion", "gold", "output", "score", "y"];

export function readFile(name, text) {
  if (!text.trim()) throw new Error("The file is empty.");
  const end = name.toLowerCase().replace(/.*\./, "");
  const isTable = ["csv", "tsv"].includes(end);
  if (["jsonl", "ndjson", "json"].includes(end) || (isTable && text.trimStart().startsWith('{"'))) return jsonLines(text);
  if (isTable) return delimited(text, end === "tsv", [...TEXT_NAMES, ...LABEL_NAMES]);
  if (["conll", "conllu", "iob", "bio"].includes(end)) return columns(text);
  return { kind: "one sentence a line", columns: ["text"], rows: lines(text).filter((line) => line.trim()).map((line) => [line]) };
}

// By its name, whole before a part such as tweet_text, else the column with the longest cells that is not called as labels are: as data/tables.py does.
export function guessColumn(file) {
  const whole = file.columns.map((name) => name.toLowerCase());
  for (const given of [whole, file.columns.map(lastPart)]) {
    const name = TEXT_NAMES.find((one) => given.includes(one));
    if (name) return given.indexOf(name);
  }
  const isLabel = (name) => LABEL_NAMES.includes(name.toLowerCase()) || LABEL_NAMES.includes(lastPart(name));
  const all = [...file.columns.keys()], others = all.filter((k) => !isLabel(file.columns[k]));
  const length = (k) => file.rows.reduce((sum, row) => sum + String(row[k] ?? "").length, 0);
  return (others.length ? others : all).reduce((best, k) => (length(k) > length(best) ? k : best));
}

const lines = (text) => text.split("\n");

function jsonLines(text) {
  const objects = text.trimStart().startsWith("[") ? parseWhole(text) : lines(text).map((line, i) => [line, i]).filter(([line]) => line.trim()).map(([line, i]) => parseLine(line, i));
  const names = [...new Set(objects.flatMap((one) => Object.keys(one)))];
  return { kind: "JSON lines", columns: names, rows: objects.map((one) => names.map((name) => asCell(one[name]))) };
}

function parseWhole(text) {
  try {
    return JSON.parse(text).map((one) => (typeof one === "string" ? { text: one } : Object(one)));
  } catch (error) {
    throw new Error(`The file is no JSON: ${error.message}.`);
  }
}

function parseLine(line, i) {
  try {
    const one = JSON.parse(line);
    return typeof one === "string" ? { text: one } : Object(one);
  } catch {
    throw new Error(`Line ${i + 1} is no JSON.`);
  }
}

function asCell(value) {
  if (value === undefined || value === null) return "";
  const isText = typeof value === "string" || (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string"));
  return isText ? value : JSON.stringify(value); // a list of strings is a text that is cut into words already
}

// One word a line, its first column (the second where the first is a number, as in CoNLL-U); a blank line ends a sentence.
function columns(text) {
  const sentences = [];
  let words = [];
  const end = () => { if (words.length) sentences.push([words]); words = []; };
  for (const line of lines(text)) {
    if (!line.trim()) end();
    else if (!line.startsWith("#") && !line.startsWith("-DOCSTART-")) {
      const cells = line.includes("\t") ? line.split("\t") : line.trim().split(/\s+/);
      const numbered = cells.length >= 8 && /^\d+([-.]\d+)?$/.test(cells[0]);
      if (!numbered || /^\d+$/.test(cells[0])) words.push(numbered ? cells[1] : cells[0]);
    }
  }
  end();
  return { kind: "CoNLL columns", columns: ["words"], rows: sentences };
}
