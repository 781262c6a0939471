// Answers -> a file on the reader's disk, in the shape that `sentence-state predict --output` writes.

export function asJsonLines(results) {
  return results.map((result) => `${JSON.stringify(result)}\n`).join("");
}

export function asCsv(results, model) {
  const names = ["text", ...(model.labels.length ? ["label", "score"] : []), ...(model.span_labels.length ? ["spans"] : [])];
  if (results.some((result) => result.error)) names.push("error");
  const cells = (result) => names.map((name) => quoted(name === "spans" ? JSON.stringify(result.spans ?? []) : result[name]));
  return [names, ...results.map(cells)].map((row) => `${row.join(",")}\n`).join("");
}

function quoted(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function save(name, kind, content) {
  const address = URL.createObjectURL(new Blob([content], { type: `${kind};charset=utf-8` }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
