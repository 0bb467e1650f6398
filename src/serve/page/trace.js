// @ts-check
// Reads a trace (docs/trace.md), as a stranger's file: every number has a range, every shape agrees with its axes, and
// an error says in one line what is where.

/** @typedef {{text: string, begin: number, end: number, word: number}} Token */
/** @typedef {{left: number, top: number, right: number, bottom: number, text: string}} Box */
/**
 * @typedef {object} Axis what one can look at
 * @property {string} name
 * @property {"tokens" | "grid" | "boxes" | "frames"} kind
 * @property {number} size
 * @property {string} text
 * @property {Token[]} tokens
 * @property {number} rows of a grid
 * @property {number} columns
 * @property {number} height of the picture in pixels
 * @property {number} width
 * @property {Box[]} boxes
 * @property {number} first seconds
 * @property {number} step
 * @property {Float32Array | null} picture [height, width, 3]
 * @property {Float32Array | null} sound
 * @property {Tensor | null} spectrum [times, bands]
 */
/** @typedef {{shape: number[], values: Float32Array}} Tensor */
/**
 * @typedef {object} WeightMap who looked where
 * @property {string} name
 * @property {string} rows
 * @property {string} columns
 * @property {number} layers
 * @property {number} heads
 * @property {Float32Array} weights [layers, heads, rows, columns]
 * @property {Float32Array | null} norms [layers, heads, columns]
 */
/** @typedef {{map: string, layer: number, head: number, shift: number}} Choice */
/**
 * @typedef {object} Item
 * @property {string} title
 * @property {Axis[]} axes
 * @property {WeightMap[]} maps
 * @property {Choice | null} choice
 * @property {number | null} logProbability
 * @property {{most: number, random: number, words: number} | null} erasure
 */
/** @typedef {{items: Item[], bytes: Uint8Array<ArrayBuffer>}} Trace */

export class TraceError extends Error {}

const mostBytes = 2 ** 30; // of a file; `regard view` reads larger ones
const mostHeader = 32 * 2 ** 20;
const mostValues = 2 ** 28;
const mostNames = 1000,
  mostSide = 65536,
  mostPlaces = 2 ** 24,
  mostHeads = 4096;
const sizes = /** @type {Record<string, number>} */ ({ F32: 4, F64: 8, BF16: 2, U8: 1 });

/** @param {string} place @param {string} why @returns {never} */
function fail(place, why) {
  throw new TraceError(place ? `${place}: ${why}` : why);
}

/** @param {unknown} value @param {string} place @returns {Record<string, unknown>} */
function object(value, place) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) fail(place, "expected an object");
  return /** @type {Record<string, unknown>} */ (value);
}
/** @param {unknown} value @param {string} place @returns {unknown[]} */
function list(value, place) {
  return Array.isArray(value) ? value : fail(place, "expected a list");
}
/** @param {unknown} value @param {string} place @returns {string} */
function text(value, place) {
  return typeof value === "string" ? value : fail(place, "expected a text");
}
/** @param {unknown} value @param {string} place @param {number} least @param {number} most @returns {number} */
function number(value, place, least, most) {
  if (typeof value !== "number" || !(value >= least && value <= most)) {
    fail(place, `${JSON.stringify(value)}, expected a number from ${least} to ${most}`);
  }
  return value;
}
/** @param {unknown} value @param {string} place @param {number} least @param {number} most @returns {number} */
function whole(value, place, least, most) {
  return Number.isInteger(value) ? number(value, place, least, most) : fail(place, "expected a whole number");
}
/** @param {string} value @param {string} place @returns {unknown} */
function json(value, place) {
  try {
    return JSON.parse(value);
  } catch {
    return fail(place, "this is no JSON");
  }
}

class Tensors {
  /** @param {Uint8Array<ArrayBuffer>} bytes */
  constructor(bytes) {
    if (bytes.length < 8) fail("", `a file of ${bytes.length} bytes is no trace`);
    const length = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
    if (length > BigInt(Math.min(mostHeader, bytes.length - 8))) {
      fail("", "this is no trace: it does not begin with a header of safetensors");
    }
    this.data = bytes.subarray(8 + Number(length));
    let header = "";
    try {
      header = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, 8 + Number(length)));
    } catch {
      fail("header", "this is no UTF-8");
    }
    this.header = object(json(header, "header"), "header");
    this.metadata = object(this.header["__metadata__"] ?? fail("header", "no __metadata__"), "__metadata__");
    /** @type {Set<string>} */
    this.taken = new Set();
    this.values = 0;
  }

  /** Each may be named once: a small file cannot become a large trace. @param {unknown} named @param {string} place */
  take(named, place) {
    const name = text(named, place);
    if (name === "__metadata__" || !Object.hasOwn(this.header, name)) fail(place, `no tensor ${JSON.stringify(name)}`);
    if (this.taken.has(name)) fail(place, `the tensor ${JSON.stringify(name)} is named twice`);
    this.taken.add(name);
    const entry = object(this.header[name], name);
    const type = text(entry["dtype"], `${name}.dtype`);
    const shape = list(entry["shape"], `${name}.shape`).map((n) => whole(n, `${name}.shape`, 0, 2 ** 40));
    const offsets = list(entry["data_offsets"], `${name}.data_offsets`);
    const begin = whole(offsets[0], `${name}.data_offsets`, 0, this.data.length);
    const end = whole(offsets[1], `${name}.data_offsets`, begin, this.data.length);
    if (!Object.hasOwn(sizes, type)) fail(name, `${type}, expected F32, F64, BF16 or U8`);
    if (shape.length > 4) fail(name, `${shape.length} dimensions, expected 4 at most`);
    const count = shape.reduce((a, b) => a * b, 1);
    if (count * sizes[type] !== end - begin) fail(name, `${type} [${shape}] in ${end - begin} bytes`);
    this.values += count;
    if (this.values > mostValues) fail(name, `more than ${mostValues} numbers; regard view shows larger traces`);
    return { shape, values: floats(this.data.subarray(begin, end), type, count) };
  }
}

/** @param {Uint8Array<ArrayBuffer>} bytes @param {string} type @param {number} count @returns {Float32Array} */
function floats(bytes, type, count) {
  if (type === "F32") {
    const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
    return new Float32Array(aligned.buffer, aligned.byteOffset, count);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
    made = new Float32Array(count);
  if (type === "U8") {
    for (let i = 0; i < count; ++i) made[i] = bytes[i] / 255;
  } else if (type === "F64") {
    for (let i = 0; i < count; ++i) made[i] = view.getFloat64(8 * i, true);
  } else {
    const bits = new Uint32Array(made.buffer);
    for (let i = 0; i < count; ++i) bits[i] = view.getUint16(2 * i, true) << 16;
  }
  return made;
}

/** @param {Float32Array} values @param {number} least @param {boolean} unknown not-a-number is allowed */
function within(values, least, unknown) {
  for (let i = 0; i < values.length; ++i) {
    const value = values[i];
    if (!(value >= least && value < Infinity) && !(unknown && value !== value)) return false;
  }
  return true;
}

/** @param {number[]} shape @param {number[]} wanted */
const same = (shape, wanted) => shape.length === wanted.length && shape.every((size, i) => size === wanted[i]);

/** @param {unknown} value @param {string} place */
function nameOf(value, place) {
  const name = text(value, place);
  if (!/^[^\s.\x00-\x20\x7f]+$/u.test(name) || new TextEncoder().encode(name).length > 64) {
    fail(place, `a name ${JSON.stringify(name).slice(0, 80)}, expected 1 to 64 bytes without blanks and dots`);
  }
  return name;
}

/** @param {unknown} value @param {string} place @param {Tensors} tensors @returns {Axis} */
function axisOf(value, place, tensors) {
  const said = object(value, place);
  const kind = text(said["kind"], `${place}.kind`);
  /** @type {Axis} */
  const made = {
    name: nameOf(said["name"], `${place}.name`),
    kind: "tokens",
    size: 0,
    text: "",
    tokens: [],
    rows: 0,
    columns: 0,
    height: 0,
    width: 0,
    boxes: [],
    first: 0,
    step: 1,
    picture: null,
    sound: null,
    spectrum: null,
  };
  if (kind === "tokens") {
    readTokens(said, made, place);
  } else if (kind === "grid") {
    made.kind = kind;
    made.rows = whole(said["rows"], `${place}.rows`, 1, mostSide);
    made.columns = whole(said["columns"], `${place}.columns`, 1, mostSide);
    made.size = made.rows * made.columns;
    if (made.size > mostPlaces)
      fail(place, `a grid of ${made.rows} × ${made.columns}, expected at most ${mostPlaces} cells`);
    readPicture(said, made, place, tensors, 0);
  } else if (kind === "boxes") {
    made.kind = kind;
    readPicture(said, made, place, tensors, 1);
    made.boxes = list(said["boxes"], `${place}.boxes`).map((each, i) => {
      const at = `${place}.boxes[${i}]`,
        parts = list(each, at);
      if (parts.length < 4 || parts.length > 5) fail(at, "expected [left, top, right, bottom, text]");
      const left = number(parts[0], at, 0, made.width),
        top = number(parts[1], at, 0, made.height);
      return {
        left,
        top,
        right: number(parts[2], at, left, made.width),
        bottom: number(parts[3], at, top, made.height),
        text: parts.length > 4 ? text(parts[4], at) : "",
      };
    });
    made.size = made.boxes.length;
  } else if (kind === "frames") {
    made.kind = kind;
    made.size = whole(said["frames"], `${place}.frames`, 0, mostPlaces);
    made.first = said["first"] === undefined ? 0 : number(said["first"], `${place}.first`, -1e9, 1e9);
    made.step = number(said["step"], `${place}.step`, Number.MIN_VALUE, 1e9);
    if (said["sound"] !== undefined) made.sound = tensors.take(said["sound"], `${place}.sound`).values;
    if (said["spectrum"] !== undefined) {
      made.spectrum = tensors.take(said["spectrum"], `${place}.spectrum`);
      if (made.spectrum.shape.length !== 2) fail(`${place}.spectrum`, "expected [times, bands]");
    }
  } else {
    fail(`${place}.kind`, `${JSON.stringify(kind)}, expected tokens, grid, boxes or frames`);
  }
  return made;
}

/** @param {Record<string, unknown>} said @param {Axis} made @param {string} place */
function readTokens(said, made, place) {
  made.text = said["text"] === undefined ? "" : text(said["text"], `${place}.text`);
  const bytes = new TextEncoder().encode(made.text);
  const inside = (/** @type {number} */ at) => (bytes[at] & 0xc0) === 0x80;
  made.tokens = list(said["tokens"], `${place}.tokens`).map((each, i) => {
    if (typeof each === "string") return { text: each, begin: 0, end: 0, word: -1 };
    const at = `${place}.tokens[${i}]`,
      parts = list(each, at);
    if (parts.length < 3 || parts.length > 4) fail(at, "expected a text or [text, begin, end, word]");
    const begin = whole(parts[1], at, 0, Number.MAX_SAFE_INTEGER),
      end = whole(parts[2], at, 0, Number.MAX_SAFE_INTEGER);
    if (begin > end || end > bytes.length) fail(at, `bytes ${begin} to ${end} of a text of ${bytes.length}`);
    if (inside(begin) || inside(end)) fail(at, `bytes ${begin} to ${end} cut a letter in two`);
    const word = parts.length > 3 ? whole(parts[3], at, -1, Number.MAX_SAFE_INTEGER) : -1;
    return { text: text(parts[0], at), begin, end, word };
  });
  made.size = made.tokens.length;
}

/** @param {Record<string, unknown>} said @param {Axis} made @param {string} place @param {Tensors} tensors
 *  @param {number} least */
function readPicture(said, made, place, tensors, least) {
  const picture = said["picture"] === undefined ? null : tensors.take(said["picture"], `${place}.picture`);
  const size = (/** @type {string} */ key, /** @type {number} */ i) =>
    said[key] === undefined && !picture ? 0 : whole(said[key] ?? picture?.shape[i], `${place}.${key}`, least, mostSide);
  made.height = size("height", 0);
  made.width = size("width", 1);
  if (!picture) return;
  if (!same(picture.shape, [made.height, made.width, 3])) {
    fail(`${place}.picture`, `[${picture.shape}], expected [${made.height}, ${made.width}, 3]`);
  }
  made.picture = picture.values;
}

/** @param {unknown} value @param {string} place @param {Axis[]} axes @param {Tensors} tensors @returns {WeightMap} */
function mapOf(value, place, axes, tensors) {
  const said = object(value, place);
  const axis = (/** @type {string} */ key) => {
    const name = text(said[key], `${place}.${key}`);
    return axes.find((each) => each.name === name) ?? fail(place, `there is no axis ${JSON.stringify(name)}`);
  };
  const rows = axis("rows"),
    columns = axis("columns"),
    weights = tensors.take(said["weights"], `${place}.weights`);
  const [layers, heads] = weights.shape;
  if (
    !same(weights.shape, [layers, heads, rows.size, columns.size]) ||
    layers < 1 ||
    heads < 1 ||
    layers > mostHeads ||
    heads > mostHeads
  ) {
    fail(`${place}.weights`, `[${weights.shape}], expected [layers, heads, ${rows.size}, ${columns.size}]`);
  }
  if (!within(weights.values, -Infinity, true) || weights.values.includes(-Infinity)) fail(place, "an infinite weight");
  let norms = null;
  if (said["norms"] !== undefined) {
    const found = tensors.take(said["norms"], `${place}.norms`);
    if (!same(found.shape, [layers, heads, columns.size])) {
      fail(`${place}.norms`, `[${found.shape}], expected [${layers}, ${heads}, ${columns.size}]`);
    }
    if (!within(found.values, 0, true)) fail(`${place}.norms`, "a norm that is not a finite number from 0");
    norms = found.values;
  }
  return {
    name: nameOf(said["name"], `${place}.name`),
    rows: rows.name,
    columns: columns.name,
    layers,
    heads,
    weights: weights.values,
    norms,
  };
}

/** @template {{name: string}} T @param {T[]} all @param {string} place @returns {T[]} */
function unique(all, place) {
  if (new Set(all.map((each) => each.name)).size < all.length) fail(place, "a name stands twice");
  return all;
}
/** @param {unknown} value @param {string} place */
function names(value, place) {
  const all = list(value, place);
  if (all.length > mostNames) fail(place, `${all.length}, expected at most ${mostNames}`);
  return all;
}

/** @param {unknown} value @param {string} place @param {Tensors} tensors @returns {Item} */
function itemOf(value, place, tensors) {
  const said = object(value, place);
  const axes = unique(
    names(said["axes"], `${place}.axes`).map((each, i) => axisOf(each, `${place}.axes[${i}]`, tensors)),
    `${place}.axes`,
  );
  const maps = unique(
    names(said["maps"], `${place}.maps`).map((each, i) => mapOf(each, `${place}.maps[${i}]`, axes, tensors)),
    `${place}.maps`,
  );
  /** @type {Choice | null} */
  let choice = null;
  if (said["choice"] !== undefined) {
    const at = `${place}.choice`,
      chosen = object(said["choice"], at),
      name = text(chosen["map"], at);
    const map = maps.find((each) => each.name === name) ?? fail(at, `there is no map ${JSON.stringify(name)}`);
    choice = {
      map: name,
      layer: whole(chosen["layer"], `${at}.layer`, 0, map.layers - 1),
      head: whole(chosen["head"] ?? -1, `${at}.head`, -1, map.heads - 1),
      shift: whole(chosen["shift"] ?? 0, at, 0, 1),
    };
  }
  const most = Number.MAX_VALUE;
  let erasure = null;
  if (said["erasure"] !== undefined) {
    const at = `${place}.erasure`,
      told = object(said["erasure"], at);
    erasure = {
      most: number(told["most"], at, -most, most),
      random: number(told["random"], at, -most, most),
      words: whole(told["words"], at, 0, most),
    };
  }
  return {
    title: said["title"] === undefined ? "" : text(said["title"], `${place}.title`),
    axes,
    maps,
    choice,
    erasure,
    logProbability:
      said["log_probability"] === undefined
        ? null
        : number(said["log_probability"], `${place}.log_probability`, -most, most),
  };
}

/** @param {ArrayBuffer} buffer @returns {Trace} */
export function readTrace(buffer) {
  if (buffer.byteLength > mostBytes)
    fail("", `a file of ${buffer.byteLength} bytes; regard view shows larger ones than 1 GiB`);
  const bytes = new Uint8Array(buffer),
    tensors = new Tensors(bytes);
  const format = /^regard-trace (\d+)\.\d+$/.exec(text(tensors.metadata["format"] ?? "", "format"));
  if (!format) fail("", "this is a safetensors file, but no trace: it has no format 'regard-trace 1.0'");
  if (Number(format[1]) !== 1) fail("format", `${format[0]} is newer than this page, which reads regard-trace 1`);
  const trace = object(json(text(tensors.metadata["trace"], "trace"), "trace"), "trace");
  const items = list(trace["items"], "items").map((each, i) => itemOf(each, `items[${i}]`, tensors));
  if (items.length === 0) fail("items", "the trace has none");
  return { items, bytes };
}

/** @param {Item} item @param {string} name @returns {Axis} */
export const axisNamed = (item, name) => item.axes.find((each) => each.name === name) ?? fail("", `no axis ${name}`);

/** What stands at a row or column. @param {Axis} axis @param {number} i @returns {string} */
export function labelOf(axis, i) {
  if (axis.kind === "tokens") return axis.tokens[i].text.replace(/^▁(?=.)/u, "");
  if (axis.kind === "grid") return `${Math.floor(i / axis.columns)},${i % axis.columns}`;
  if (axis.kind === "boxes") return axis.boxes[i].text || String(i);
  return `${Number((axis.first + axis.step * i).toPrecision(6))} s`;
}
