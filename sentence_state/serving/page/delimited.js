// CSV and TSV -> { kind, columns, rows }: delimiter, quoting and header are found out as data/delimited.py does.

const DELIMITERS = { "\t": "TSV", ",": "CSV", ";": "CSV with semicolons", "|": "CSV with bars" };
const SEPARATOR = /^"?sep=([^\n"])"?\n/i; // a first line for Excel alone
const SNIFFED_LINES = 200;
const SHORT_NAME = /^[\p{L}_][\p{L}\p{N}_-]{0,30}( [\p{L}\p{N}_-]+){0,2}$/u;
const NUMBER = /^[-+]?[\p{Nd}.,]*\p{Nd}%?$/u;
const ENOUGH_ROWS = 10; // to tell a name from the values below it by these alone
const ORDINARY = { strict: true };
const QUOTINGS = [
  [ORDINARY, ""],
  [{ strict: true, escape: "\\" }, '\\"'],
  [{ strict: true, skipSpaces: true }, ' "'],
  [{ unquoted: true }, '"'],
]; // and the sign without which there is no use in trying

// `names` are those that a header may hold.
export function delimited(content, isTsv, names) {
  const [line, given] = content.match(SEPARATOR) ?? [""];
  const text = content.slice(line.length);
  const mark = given ?? sniffDelimiter(text, isTsv, names);
  const rows = parse(text, mark);
  const kind = DELIMITERS[mark] ?? `CSV with ${mark}`;
  const hasHeader = isHeader(rows, names);
  const width = hasHeader ? rows[0].length : usualWidth(rows);
  checkWidths(rows, width);
  if (!hasHeader) return { kind: `${kind} without a header`, columns: rows[0].map((_, k) => `column ${k + 1}`), rows };
  const [header, ...rest] = rows;
  return { kind, columns: header.map((name, k) => name.trim() || `column ${k + 1}`), rows: rest };
}

// airline_sentiment -> sentiment
export const lastPart = (name) => name.trim().toLowerCase().split("_").at(-1);

// The delimiter under which most of the first rows have the same number of columns, two or more.
function sniffDelimiter(text, isTsv, names) {
  const sample = text.split("\n", SNIFFED_LINES).join("\n");
  if (isTsv && sample.includes("\t")) return "\t";
  const scores = Object.keys(DELIMITERS).map((mark) => {
    const rows = splitRows(sample, mark, {});
    const width = usualWidth(rows);
    if (width < 2) return [mark, 0, 0];
    return [mark, rows.filter((row) => row.length === width).length / rows.length, rows[0].filter((cell) => names.includes(lastPart(cell))).length];
  });
  return scores.reduce((best, one) => (one[1] > best[1] || (one[1] === best[1] && one[2] > best[2]) ? one : best))[0];
}

// Rows by the first way of quoting that makes them all equally wide, or by the ordinary one.
function parse(text, mark) {
  const attempts = [];
  let failure = null;
  for (const [quoting, sign] of QUOTINGS) {
    if (!text.includes(sign)) continue;
    try {
      attempts.push([splitRows(text, mark, quoting), quoting]);
    } catch (error) {
      failure ??= error;
    }
  }
  const even = attempts.map(([rows]) => rows).filter((rows) => rows.every((row) => row.length === rows[0].length));
  // two stray quotes in a TSV must not swallow the rows between them
  const found = mark === "\t" && even.length ? even.reduce((best, one) => (one.length > best.length ? one : best)) : even[0];
  if (found) return found;
  if (attempts[0][1] === ORDINARY) return attempts[0][0];
  throw failure;
}

// Rows that hold anything. Cells in quotes may hold the mark, line ends, and quotes: doubled, or behind `escape`.
function splitRows(text, mark, { strict = false, escape = null, skipSpaces = false, unquoted = false }) {
  const rows = [];
  let row = [], cell = "", quoted = false, closed = false, fresh = true, position = 0;
  const endCell = () => { row.push(cell); cell = ""; closed = false; fresh = true; };
  const endRow = () => { endCell(); if (row.some((one) => one.trim())) rows.push(row); row = []; };
  while (position < text.length) {
    const character = text[position++];
    if (character === escape) {
      if (/^\n?$/.test(text.slice(position, position + 2))) throw new Error(`Row ${rows.length + 1} ends with a backslash.`);
      cell += text[position++];
      fresh = false;
    } else if (quoted) {
      if (character !== '"') cell += character;
      else if (text[position] === '"' && !escape) cell += text[position++];
      else [quoted, closed] = [false, !escape]; // with an escape the csv module reads on
    } else if (character === mark) endCell();
    else if (character === "\n") endRow();
    else if (closed && strict) throw new Error(`Row ${rows.length + 1} has text behind a closing quote.`);
    else if (character === '"' && fresh && !unquoted) [quoted, fresh] = [true, false];
    else if (!(character === " " && fresh && skipSpaces)) [cell, fresh] = [cell + character, false];
  }
  if (quoted && strict) throw new Error(`In row ${rows.length + 1} a quote is opened and never closed.`);
  if (!fresh || row.length) endRow();
  return rows;
}

function usualWidth(rows) {
  const [usual] = [...counted(rows.map((row) => row.length))].reduce((best, one) => (one[1] > best[1] ? one : best), [0, 0]);
  return usual;
}

function checkWidths(rows, width) {
  const k = rows.findIndex((row) => row.length !== width);
  if (k < 0) return;
  const hint = rows[k].length > width ? "; a cell with the delimiter inside must be quoted" : "";
  throw new Error(`Row ${k + 1} should have ${width} columns, it has ${rows[k].length}${hint}.`);
}

// A usual name, or names that never come again and look like names.
function isHeader([first, ...rest], names) {
  const cells = first.map((cell) => cell.trim());
  const values = cells.map((_, k) => counted(rest.filter((row) => k < row.length).map((row) => row[k].trim())));
  // commas at the end of every row: a column that has no name, and cells as empty, says nothing
  const told = cells.map((_, k) => k).filter((k) => cells[k] || !values[k].has(""));
  const [header, below] = [told.map((k) => cells[k]), told.map((k) => values[k])];
  const fresh = header.map((name, k) => !below[k].has(name));
  if (header.some((name, k) => fresh[k] && (names.includes(name.toLowerCase()) || names.includes(lastPart(name))))) return true;
  if (rest.length && isIndex([first, ...rest].map((row) => row[0].trim()))) return true;
  return fresh.every(Boolean) && looksLikeNames(header, below, rest.length);
}

// Numbers of rows that pandas has written, above which it leaves the header empty.
const isIndex = (column) => column.every((cell, k) => cell === (k ? String(k - 1) : ""));

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
