// Values of znodes: bytes as text, JSON, XML or hex, decompressed if they are gzip or snappy. Everything is bounded.

/** The longest value that is decompressed. Unit: bytes. */
const DECODED_MAX = 4 << 20;

/** The longest text that is shown. Unit: characters. */
const SHOWN_MAX = 256 << 10;

export const FORMATS = ["auto", "text", "json", "xml", "hex"];
export const CODINGS = ["auto", "stored", "gzip", "snappy"];

const SNAPPY_JAVA = [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00];
const SNAPPY_FRAMES = [0xff, 0x06, 0x00, 0x00, 0x73, 0x4e, 0x61, 0x50, 0x70, 0x59];

/** Returns the data in an answer as bytes, or null. */
export function bytesOf({ data, data_base64: encoded }) {
  if (encoded !== undefined) return fromBase64(encoded);
  return data === null || data === undefined ? null : new TextEncoder().encode(data);
}

/** Returns the fields of a call for these bytes. */
export function fieldsOf(bytes) {
  const text = utf8(bytes);
  return text === null ? { data_base64: toBase64(bytes) } : { data: text };
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function toBase64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}

/** Returns bytes as text, or null if they are not UTF-8. */
export function utf8(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Decompresses bytes. Returns `{bytes, note}`; the bytes as they are, with the reason, if that fails. */
export async function decoded(bytes, coding) {
  const found = coding === "auto" ? codingOf(bytes) : coding;
  if (found === "stored") return { bytes, note: "" };
  try {
    const plain = found === "gzip" ? await gunzip(bytes) : unsnap(bytes);
    return { bytes: plain, note: `${found} of ${plain.length} B` };
  } catch (error) {
    return { bytes, note: `not ${found}: ${error.message}` };
  }
}

function codingOf(bytes) {
  const begins = (magic) => magic.every((byte, at) => bytes[at] === byte);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return "gzip";
  return begins(SNAPPY_JAVA) || begins(SNAPPY_FRAMES) ? "snappy" : "stored";
}

const tooLong = () => new Error(`the value has more than ${DECODED_MAX >> 20} MiB when decompressed`);

async function gunzip(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch {
      throw new Error("the compressed data is damaged");
    }
    if (part.done) return joined(parts, length);
    parts.push(part.value);
    length += part.value.length;
    if (length > DECODED_MAX) {
      reader.cancel();
      throw tooLong();
    }
  }
}

function joined(parts, length) {
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Decompresses snappy: the streams of snappy-java, the framing format, or one raw block. */
export function unsnap(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const parts = [];
  let length = 0;
  const add = (part) => {
    length += part.length;
    if (length > DECODED_MAX) throw tooLong();
    parts.push(part);
  };
  const piece = (from, size) => {
    if (from + size > bytes.length) throw new Error("the compressed data ends early");
    return bytes.subarray(from, from + size);
  };
  if (SNAPPY_JAVA.every((byte, at) => bytes[at] === byte)) {
    for (let at = 16; at + 4 <= bytes.length; ) {
      const size = view.getUint32(at);
      add(block(piece(at + 4, size)));
      at += 4 + size;
    }
  } else if (SNAPPY_FRAMES.every((byte, at) => bytes[at] === byte)) {
    for (let at = 0; at + 4 <= bytes.length; ) {
      const kind = bytes[at];
      const size = bytes[at + 1] | (bytes[at + 2] << 8) | (bytes[at + 3] << 16);
      const body = piece(at + 4, size);
      // A checksum of four bytes comes first.
      if (kind === 0x00) add(block(body.subarray(4)));
      else if (kind === 0x01) add(body.subarray(4));
      else if (kind < 0x80) throw new Error(`unknown chunk type ${kind}`);
      at += 4 + size;
    }
  } else {
    add(block(bytes));
  }
  return joined(parts, length);
}

/** Decompresses one raw block. */
function block(bytes) {
  const damaged = () => new Error("the compressed data is damaged");
  let at = 0;
  const next = () => {
    if (at >= bytes.length) throw damaged();
    return bytes[at++];
  };
  const little = (count) => {
    let value = 0;
    for (let index = 0; index < count; index += 1) value += next() * 2 ** (8 * index);
    return value;
  };
  let size = 0;
  for (let shift = 0; ; shift += 7) {
    if (shift > 28) throw damaged();
    const byte = next();
    size += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) break;
  }
  if (size > DECODED_MAX) throw tooLong();
  const out = new Uint8Array(size);
  let end = 0;
  while (at < bytes.length) {
    const tag = next();
    const kind = tag & 3;
    if (kind === 0) {
      const short = tag >> 2;
      const count = (short < 60 ? short : little(short - 59)) + 1;
      if (at + count > bytes.length || end + count > size) throw damaged();
      out.set(bytes.subarray(at, at + count), end);
      at += count;
      end += count;
      continue;
    }
    const count = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
    const back = kind === 1 ? ((tag >> 5) << 8) | next() : little(kind === 2 ? 2 : 4);
    if (back === 0 || back > end || end + count > size) throw damaged();
    for (let index = 0; index < count; index += 1, end += 1) out[end] = out[end - back];
  }
  if (end !== size) throw damaged();
  return out;
}

/** Returns bytes as text in a format, `{text, format, isCut}`. `auto` takes JSON, XML, text or hex, whatever fits. */
export function shown(bytes, format) {
  const plain = utf8(bytes);
  const isText = plain !== null && !/[\0-\x08\x0b\x0c\x0e-\x1f]/.test(plain);
  if (format === "hex" || (format === "auto" && !isText)) return cut(hex(bytes.subarray(0, SHOWN_MAX / 4)), "hex", bytes.length > SHOWN_MAX / 4);
  const text = plain ?? new TextDecoder().decode(bytes);
  if (text.length > SHOWN_MAX) return cut(text, "text");
  if ((format === "auto" && /^\s*[[{]/.test(text)) || format === "json") {
    const pretty = json(text);
    if (pretty !== null) return cut(pretty, "json");
  }
  if ((format === "auto" && /^\s*<[?!\w]/.test(text)) || format === "xml") {
    const pretty = xml(text);
    if (pretty !== null) return cut(pretty, "xml");
  }
  return cut(text, "text");
}

function cut(text, format, isCut = false) {
  return { text: text.slice(0, SHOWN_MAX), format, isCut: isCut || text.length > SHOWN_MAX };
}

/** Indents JSON. Keeps each number and text as written, which `JSON.stringify` would not; null if it is no JSON. Stops when
 * there is more than is shown. */
export function json(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const out = lines();
  let wasStart = false;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"[\]{},:]+|[[\]{},:]/g)) {
    const isStart = token === "{" || token === "[";
    const isEnd = token === "}" || token === "]";
    if (isEnd) out.depth -= 1;
    // An empty object or list stays on its line.
    if (wasStart !== isEnd) out.line();
    out.add(token === ":" ? ": " : token);
    if (isStart) out.depth += 1;
    wasStart = isStart;
    if (token === ",") out.line();
    if (out.length > SHOWN_MAX) break;
  }
  return out.text();
}

/** Indents XML: a line for each tag, unless it holds text alone. Null if an element does not end where it should. Stops when
 * there is more than is shown. */
export function xml(text) {
  const out = lines();
  const open = [];
  let was = "";
  for (let at = 0, end; at < text.length; at = end) {
    const ends = text[at] !== "<" ? "<" : text.startsWith("<!--", at) ? "-->" : text.startsWith("<![CDATA[", at) ? "]]>" : ">";
    end = text.indexOf(ends, at + 1);
    if (end < 0 && ends !== "<") return null;
    end = end < 0 ? text.length : ends === "<" ? end : end + ends.length;
    const token = text.slice(at, end);
    const kind = ends === "<" ? "text" : token[1] === "/" ? "end" : /^<[?!]|\/>$/.test(token) ? "empty" : "start";
    if (kind === "text" && !token.trim()) continue;
    if (kind === "end" && open.pop() !== token.slice(2, -1).trim()) return null;
    out.depth = open.length;
    if (was && kind !== "text" && !(kind === "end" && (was === "text" || was === "start"))) out.line();
    out.add(kind === "text" ? token.trim() : token);
    if (kind === "start") open.push(token.match(/^<([^\s>]*)/)[1]);
    was = kind;
    if (out.length > SHOWN_MAX) return out.text();
  }
  return open.length || !was ? null : out.text();
}

/** Collects indented lines. */
function lines() {
  const parts = [];
  return {
    depth: 0,
    length: 0,
    add(part) {
      parts.push(part);
      this.length += part.length;
    },
    line() {
      this.add(`\n${"  ".repeat(Math.max(0, Math.min(this.depth, 100)))}`);
    },
    text: () => parts.join(""),
  };
}

/** Returns bytes as lines with their place, in hexadecimal and as ASCII. */
export function hex(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const digits = row.map((byte, index) => byte.toString(16).padStart(2, "0") + (index === 7 ? " " : "")).join(" ");
    const ascii = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits.padEnd(49)}  ${ascii}`);
  }
  return lines.join("\n");
}

/** Returns bytes as hexadecimal digits to edit. */
export function digits(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

/** Reads hexadecimal digits; null if they are not. */
export function fromDigits(text) {
  const all = text.replace(/\s+/g, "");
  if (all.length % 2 || /[^0-9a-f]/i.test(all)) return null;
  return Uint8Array.from(all.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}
