// The bytes of a file -> its text, lines ended by "\n"; what is no text is refused as data/text_files.py refuses it.

const SIGNATURES = [
  ["PK\x03\x04", "an Excel workbook or a zip archive"],
  ["\xd0\xcf\x11\xe0", "an old Excel or Word file"],
  ["%PDF", "a PDF"],
  ["\x89PNG", "an image"],
  ["\xff\xd8\xff", "an image"],
  ["PAR1", "a Parquet file"],
  ["BZh", "a bzip2 archive"],
  ["\xfd7zXZ", "an xz archive"],
  ["\x28\xb5\x2f\xfd", "a zstd archive"],
];
const GZIP = "\x1f\x8b";
const MARKS = [["\xef\xbb\xbf", "utf-8"], ["\xff\xfe", "utf-16le"], ["\xfe\xff", "utf-16be"]];
const NOT_CP1252 = [0x81, 0x8d, 0x8f, 0x90, 0x9d, 0xff]; // five bytes without a character, and one that text hardly ever holds
const MAY_CONTROL = [9, 10, 11, 12, 13, 0x1a];

// UTF-8, UTF-16 with its mark, or what older programs of Windows write, where it is plausible.
export function decoded(buffer) {
  const bytes = new Uint8Array(buffer);
  const start = String.fromCharCode(...bytes.subarray(0, 8));
  if (start.startsWith(GZIP)) throw new Error("This is a gzip archive: unpack it first. sentence-state predict --input reads it as it is.");
  const [, kind] = SIGNATURES.find(([signature]) => start.startsWith(signature)) ?? [];
  if (kind) throw new Error(`This is ${kind}, not text: export it as CSV, TSV, JSON lines or CoNLL columns.`);
  const [, marked] = MARKS.find(([mark]) => start.startsWith(mark)) ?? [];
  const encoding = marked ?? "utf-8";
  if (encoding === "utf-8") refuseNul(bytes.indexOf(0), (end) => new TextDecoder().decode(bytes.subarray(0, end)), "UTF-16 without its mark");
  const text = decodedAs(bytes, encoding, marked);
  refuseNul(text.indexOf("\0"), (end) => text.slice(0, end), `not ${encoding.toUpperCase()}`);
  return unifyNewlines(text);
}

function refuseNul(position, before, otherwise) {
  if (position < 0) return;
  throw new Error(`Line ${lineAtEnd(before(position))} holds a NUL character: this is a binary file, or ${otherwise}.`);
}

function decodedAs(bytes, encoding, marked) {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    if (!marked && isPlausiblyCp1252(bytes)) return new TextDecoder("windows-1252").decode(bytes);
    const [sound] = new TextDecoder(encoding).decode(bytes).split("\uFFFD", 1);
    throw new Error(`Line ${lineAtEnd(sound)} is not ${encoding.toUpperCase()}: save the file as UTF-8.`);
  }
}

// Western text of an older program, rather than something binary or UTF-8 with a damaged place.
function isPlausiblyCp1252(bytes) {
  let high = 0;
  for (const byte of bytes) {
    if (NOT_CP1252.includes(byte) || (byte < 32 && !MAY_CONTROL.includes(byte))) return false;
    if (byte > 127) high++;
  }
  const sound = new TextDecoder().decode(bytes).replaceAll("\uFFFD", "");
  const valid = new TextEncoder().encode(sound).length - (bytes.length - high); // bytes of sound UTF-8 characters
  return high < 0.3 * bytes.length && valid < 0.5 * high;
}

const lineAtEnd = (text) => text.split("\n").length;

function unifyNewlines(text) {
  if (!text.includes("\n")) return text.replaceAll("\r", "\n"); // Mac OS 9
  return text.replace(/\r+\n/g, "\n").replaceAll("\r", " ");
}
