// @ts-check
// What is shown of the maps of a trace, as src/view/derive.cc does: means, rollout, weights times norms, words.
import { axisNamed, TraceError } from "./trace.js";
/** @import {Axis, Item, WeightMap} from "./trace.js" */

/** @typedef {"weights" | "norms" | "rollout"} Measure */
/** @typedef {{map: string, layer: number, head: number, measure: Measure, words: boolean, shift: number}} Shown */
/**
 * @typedef {object} Plane one map as it is shown
 * @property {Float32Array} values [rows, columns]; not-a-number: not known
 * @property {Axis} rows
 * @property {Axis} columns
 * @property {Groups} rowTokens which tokens of the trace a row stands for
 * @property {Groups} columnTokens
 */
/** @typedef {number[][] | null} Groups null: each for itself, of which there may be millions */

/** @param {Groups} groups @param {number} i */
export const tokensAt = (groups, i) => (groups ? groups[i] : [i]);
/** Where a token went. @param {Groups} groups @param {number} token */
export const placeOf = (groups, token) => (groups ? groups.findIndex((group) => group.includes(token)) : token);

const mostProducts = 4e10;

/** Layer or head −1: the mean of all. @param {WeightMap} map @param {number} layer @param {number} head
 *  @param {boolean} byNorms @returns {Float32Array} */
export function weightsOf(map, layer, head, byNorms) {
  const size = map.weights.length / (map.layers * map.heads);
  const some = (/** @type {number} */ which, /** @type {number} */ count) =>
    which >= 0 ? [which] : Array.from({ length: count }, (_, i) => i);
  const places = some(layer, map.layers).flatMap((l) => some(head, map.heads).map((h) => l * map.heads + h));
  const plane = (/** @type {number} */ place) => {
    const values = map.weights.subarray(place * size, (place + 1) * size);
    return byNorms && map.norms ? timesNorms(values, map.norms, place, map) : values;
  };
  if (places.length === 1) return plane(places[0]);
  const sums = new Float64Array(size);
  for (const place of places) {
    const values = plane(place);
    for (let i = 0; i < size; ++i) sums[i] += values[i];
  }
  return Float32Array.from(sums, (sum) => sum / places.length);
}

/** Kobayashi et al. 2020. @param {Float32Array} values @param {Float32Array} norms @param {number} place
 *  @param {WeightMap} map */
function timesNorms(values, norms, place, map) {
  const columns = norms.length / (map.layers * map.heads),
    made = new Float32Array(values.length);
  for (let begin = 0; begin < values.length; begin += columns) {
    let sum = 0;
    for (let i = 0; i < columns; ++i) {
      const value = values[begin + i];
      made[begin + i] = value === 0 ? 0 : value * norms[place * columns + i];
      sum += made[begin + i];
    }
    if (sum === 0) continue;
    for (let i = 0; i < columns; ++i) made[begin + i] /= sum;
  }
  return made;
}

const pause = () => new Promise((done) => setTimeout(done));

/** Which map a rollout goes through: itself, or the one over its columns. @param {Item} item @param {WeightMap} map */
export const rolledThrough = (item, map) =>
  map.rows === map.columns ? map : item.maps.find((each) => each.rows === map.columns && each.columns === map.columns);

/** Abnar and Zuidema 2020: times ½·W + ½·I of every layer, from the last to the first. The page stays alive.
 *  @param {WeightMap} through @param {Float32Array | null} from null: of all @param {AbortSignal} signal */
async function rollout(through, from, signal) {
  const n = Math.sqrt(through.weights.length / (through.layers * through.heads));
  let made = from ? Float64Array.from(from) : new Float64Array(n * n);
  if (!from) for (let i = 0; i < n; ++i) made[i * n + i] = 1;
  const rows = n === 0 ? 0 : made.length / n;
  if (rows * n * n * through.layers > mostProducts) throw new TraceError("this map is too large to be rolled out here");
  let since = performance.now();
  for (let layer = through.layers - 1; layer >= 0; --layer) {
    const weights = weightsOf(through, layer, -1, false).slice();
    for (let row = 0; row < n; ++row) {
      const values = weights.subarray(row * n, (row + 1) * n),
        empty = values.every((value) => value === 0);
      for (let i = 0; i < n; ++i) values[i] *= 0.5;
      values[row] += empty ? 1 : 0.5;
    }
    const next = new Float64Array(made.length);
    for (let row = 0; row < rows; ++row) {
      const out = next.subarray(row * n, (row + 1) * n);
      for (let k = 0; k < n; ++k) {
        const factor = made[row * n + k];
        if (factor === 0) continue;
        const base = k * n;
        for (let i = 0; i < n; ++i) out[i] += factor * weights[base + i];
      }
      if (performance.now() - since > 25) {
        await pause();
        if (signal.aborted) throw new DOMException("", "AbortError");
        since = performance.now();
      }
    }
    made = next;
  }
  return Float32Array.from(made);
}

/** Tokens of one word become one place. @param {Axis} axis @returns {{axis: Axis, tokens: Groups}} */
function wordsOf(axis) {
  /** @type {number[][]} */
  const groups = [];
  if (axis.kind !== "tokens") return { axis, tokens: null };
  /** @type {Map<number, number[]>} */
  const words = new Map();
  axis.tokens.forEach((token, i) => {
    const known = token.word < 0 ? undefined : words.get(token.word);
    if (known) return void known.push(i);
    const group = [i];
    groups.push(group);
    if (token.word >= 0) words.set(token.word, group);
  });
  const bytes = new TextEncoder().encode(axis.text),
    decoder = new TextDecoder();
  const tokens = groups.map((group) => {
    const parts = group.map((i) => axis.tokens[i]),
      some = parts.filter((each) => each.begin < each.end);
    const begin = Math.min(...(some.length ? some : parts).map((each) => each.begin));
    const end = Math.max(...(some.length ? some : parts).map((each) => each.end));
    const text =
      begin < end && parts[0].word >= 0
        ? decoder.decode(bytes.subarray(begin, end))
        : parts.map((each) => each.text).join("");
    return { text, begin, end, word: parts[0].word };
  });
  return { axis: { ...axis, tokens, size: tokens.length }, tokens: groups };
}

/** Summed over the columns of a word, averaged over its rows. @param {Plane} plane @returns {Plane} */
function byWords(plane) {
  const down = wordsOf(plane.rows),
    across = wordsOf(plane.columns),
    columns = plane.columns.size;
  const wide = across.axis.size,
    values = new Float32Array(down.axis.size * wide);
  for (let i = 0; i < down.axis.size; ++i) {
    const rows = tokensAt(down.tokens, i);
    for (let j = 0; j < wide; ++j) {
      let sum = 0;
      for (const row of rows)
        for (const column of tokensAt(across.tokens, j)) sum += plane.values[row * columns + column];
      values[i * wide + j] = sum / rows.length;
    }
  }
  return { values, rows: down.axis, columns: across.axis, rowTokens: down.tokens, columnTokens: across.tokens };
}

/** @param {Item} item @param {Shown} shown @param {AbortSignal} signal @returns {Promise<Plane>} */
export async function planeOf(item, shown, signal) {
  const map = item.maps.find((one) => one.name === shown.map);
  if (!map) throw new TraceError("the trace has no maps: a model without attention looks nowhere");
  const rows = axisNamed(item, map.rows),
    columns = axisNamed(item, map.columns);
  const through = shown.measure === "rollout" ? rolledThrough(item, map) : undefined;
  let values = through === map ? null : weightsOf(map, shown.layer, shown.head, shown.measure === "norms");
  if (through) values = await rollout(through, values, signal);
  if (!values) throw new TraceError("this map cannot be rolled out");
  if (shown.shift > 0) {
    // row i is told by step i + 1
    const moved = new Float32Array(values.length).fill(NaN);
    moved.set(values.subarray(columns.size));
    values = moved;
  }
  const plane = { values, rows, columns, rowTokens: null, columnTokens: null };
  return shown.words ? byWords(plane) : plane;
}

/** The greatest of a row or column, greatest first. @param {Plane} plane @param {number | null} row
 *  @param {number | null} column @param {number} count @returns {{place: number, value: number}[]} */
export function greatest(plane, row, column, count) {
  const columns = plane.columns.size,
    length = row !== null ? columns : plane.rows.size;
  /** @type {{place: number, value: number}[]} */
  const found = [];
  for (let place = 0; place < length; ++place) {
    const value = plane.values[row !== null ? row * columns + place : place * columns + (column ?? 0)];
    if (Number.isNaN(value)) continue;
    if (found.length === count && Math.abs(value) <= Math.abs(found[count - 1].value)) continue;
    let at = found.length;
    while (at > 0 && Math.abs(found[at - 1].value) < Math.abs(value)) --at;
    found.splice(at, 0, { place, value });
    if (found.length > count) found.pop();
  }
  return found;
}
