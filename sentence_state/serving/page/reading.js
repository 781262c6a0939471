// A file as people have it -> { kind, columns, rows }: CSV, TSV, JSON lines, CoNLL columns, or one sentence a line.

// The names that `predict --input` knows, too.
const TEXT_NAMES = ["text", "sentence", "review", "content", "comment", "tweet", "utterance", "message", "body", "document",
  "question", "query", "phrase", "description", "headline", "input", "title"];
const LABEL_NAMES = ["label", "labels", "class", "category", "sentiment", "intent", "target", "polarity", "topic", "rating",
  "stars", "emotion", "gold", "output", "score", "y"];
const SHORT_NAME = /^[\p{L}_][\p{L}\p{N}_-]{0,30}( [\p{L}\p{N}_-]+){0,2}$/u;
const NUMBER = /^[-+]?[\d.,]*\d%?$/;
const ENOUGH_ROWS = 10; // to tell a name from the values below it by these alone

// UTF-8, UTF-16 with its mark, or what older programs of Windows write.
export function decoded(buffer) {
  const [first, second] = new Uint8Array(buffer);
  const mark = { "255,254": "utf-16le", "254,255": "utf-16be" }[[first, second]];
  try {
    return new TextDecoder(mark ?? "utf-8", { fatal: true }).decode(buffer);
  } catch {
    return new TextDecoder(mark ?? "windows-1252").decode(buffer);
  }
}

export function readFile(name, content) {
  const text = content.replace(/^\uFEFF/, "");
  const end = name.toLowerCase().replace(/.*\./, "");
  if (["jsonl", "ndjson", "json"].includes(end)) return jsonLines(text);
  if (end === "csv") return delimited(text, mostOf(text, [",", ";", "\t"]));
  if (end === "tsv") return delimited(text, "\t");
  if (["conll", "conllu", "iob", "bio"].includes(end)) return columns(text);
  return { kind: "one sentence a line", columns: ["text"], rows: lines(text).filter((line) => line.trim()).map((line) => [line]) };
}

export function guessColumn(file) {
  const named = file.columns.findIndex((name) => TEXT_NAMES.includes(String(name).trim().toLowerCase()));
  if (named >= 0) return named;
  const lengths = file.columns.map((_, k) => file.rows.slice(0, 200).reduce((sum, row) => sum + String(row[k] ?? "").length, 0));
  return lengths.indexOf(Math.max(...lengths));
}

const lines = (text) => text.split(/\r\n|\n|\r/);

function mostOf(text, marks) {
  const first = lines(text)[0];
  const counts = marks.map((mark) => first.split(mark).length);
  return marks[counts.indexOf(Math.max(...counts))];
}

// RFC 4180: cells in quotes may hold the mark, line ends and doubled quotes.
export function delimited(text, mark) {
  const rows = [];
  let row = [], cell = "", quoted = false, position = 0;
  const endCell = () => { row.push(cell); cell = ""; };
  const endRow = () => { endCell(); if (row.length > 1 || row[0] !== "") rows.push(row); row = []; };
  while (position < text.length) {
    const character = text[position++];
    if (quoted) {
      if (character !== '"') cell += character;
      else if (text[position] === '"') { cell += '"'; position++; }
      else quoted = false;
    } else if (character === '"' && cell === "") quoted = true;
    else if (character === mark) endCell();
    else if (character === "\n" || character === "\r") { if (character === "\r" && text[position] === "\n") position++; endRow(); }
    else cell += character;
  }
  if (cell !== "" || row.length) endRow();
  if (!rows.length) throw new Error("The file is empty.");
  const kind = { ",": "CSV", ";": "CSV with semicolons", "\t": "TSV" }[mark];
  if (rows[0].length === 1 && rows.every((one) => one.length === 1) && !TEXT_NAMES.includes(rows[0][0].trim().toLowerCase())) {
    return { kind: `${kind}, one column without a name`, columns: ["text"], rows };
  }
  if (!isHeader(rows)) return { kind: `${kind} without a header`, columns: rows[0].map((_, k) => `column ${k + 1}`), rows };
  const [names, ...rest] = rows;
  return { kind, columns: names.map((name, k) => name.trim() || `column ${k + 1}`), rows: rest };
}

const isKnown = (name) => [name, name.replace(/.*_/, "")].some((one) => [...TEXT_NAMES, ...LABEL_NAMES].includes(one.toLowerCase()));

// As `predict --input` decides: a usual name, or names that never come again and look like names.
function isHeader([first, ...rest]) {
  const names = first.map((cell) => cell.trim());
  const below = names.map((_, k) => counted(rest.map((row) => (row[k] ?? "").trim())));
  const fresh = names.map((name, k) => !below[k].has(name));
  if (names.some((name, k) => fresh[k] && isKnown(name))) return true;
  return fresh.every(Boolean) && looksLikeNames(names, below, rest.length);
}

// Short names above a column whose values repeat, or any that do not fit what is below them.
function looksLikeNames(names, below, size) {
  if (below.some((values) => 2 * values.size <= size) && names.every((name) => SHORT_NAME.test(name))) return true;
  return size >= ENOUGH_ROWS && !names.some((name) => NUMBER.test(name)) && below.some(isUniform);
}

// Labels of which every one comes again, or numbers: a cell that is neither is a name.
function isUniform(values) {
  return [...values.values()].every((count) => count > 1) || [...values.keys()].every((value) => NUMBER.test(value));
}

function counted(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

function jsonLines(text) {
  const objects = text.trimStart().startsWith("[") ? parseWhole(text) : lines(text).map((line, i) => [line, i]).filter(([line]) => line.trim()).map(([line, i]) => parseLine(line, i));
  if (!objects.length) throw new Error("The file is empty.");
  const names = [...new Set(objects.slice(0, 200).flatMap((one) => Object.keys(one)))];
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
