// @ts-check
// The colours of src/view/colors.cc: lightness alone tells weights apart, differences go from blue to orange.

/** @typedef {[number, number, number]} Color */

const ramps = {
  light: ["#f6f7f9", "#cfdcea", "#93b5d3", "#4f86b5", "#265a8e", "#0b2a56"],
  dark: ["#181b22", "#1b3a6b", "#575d6d", "#8d8a76", "#c8b866", "#ffea46"],
  lightSigned: ["#084081", "#4e8ec4", "#f6f7f9", "#e68c3c", "#994404"],
  darkSigned: ["#8cc8ff", "#2d69af", "#181b22", "#b05c18", "#ffb85c"],
};
/** @type {Record<"light" | "dark", Color>} */
const missing = { light: [226, 205, 216], dark: [92, 60, 80] };

const system = window.matchMedia("(prefers-color-scheme: dark)");
/** @type {Set<() => void>} */
const listeners = new Set();

/** @returns {"light" | "dark"} */
export function theme() {
  const said = document.documentElement.dataset.theme;
  return said === "light" || said === "dark" ? said : system.matches ? "dark" : "light";
}
/** @param {"light" | "dark" | null} wanted null: as the system */
export function setTheme(wanted) {
  if (wanted) document.documentElement.dataset.theme = wanted;
  else delete document.documentElement.dataset.theme;
  for (const each of listeners) each();
}
/** @param {() => void} listener */
export const onTheme = (listener) => listeners.add(listener);
system.addEventListener("change", () => {
  for (const each of listeners) each();
});

/** A colour of app.css. @param {string} name */
export const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @param {string} hex @returns {Color} */
const channels = (hex) => [parseInt(hex.slice(1, 3), 16), parseInt(hex.slice(3, 5), 16), parseInt(hex.slice(5, 7), 16)];

const steps = 512;
/** @type {Map<string, {colors: Color[], packed: Uint32Array}>} */
const tables = new Map();

/** 512 steps of a ramp, also as pixels. @param {boolean} signed */
export function table(signed) {
  const name = /** @type {keyof typeof ramps} */ (theme() + (signed ? "Signed" : ""));
  let found = tables.get(name);
  if (!found) {
    const ramp = ramps[name].map(channels);
    /** @type {Color[]} */
    const colors = [];
    for (let i = 0; i < steps; ++i) {
      const place = (i / (steps - 1)) * (ramp.length - 1);
      const below = Math.min(Math.floor(place), ramp.length - 2);
      colors.push(mix(ramp[below], ramp[below + 1], place - below));
    }
    found = { colors, packed: Uint32Array.from(colors, packedOf) };
    tables.set(name, found);
  }
  return found;
}

/** @param {Color} a @param {Color} b @param {number} part @returns {Color} */
function mix(a, b, part) {
  /** @param {0 | 1 | 2} k */
  const between = (k) => Math.round(a[k] + part * (b[k] - a[k]));
  return [between(0), between(1), between(2)];
}

/** Pixels are red, green, blue, alpha in this order of bytes. @param {Color} c */
const packedOf = (c) => ((255 << 24) | (c[2] << 16) | (c[1] << 8) | c[0]) >>> 0;
export const packedMissing = () => packedOf(missing[theme()]);

/** Which step of the table. @param {number} value @param {number} most @param {boolean} signed */
export function stepOf(value, most, signed) {
  const part = signed ? (value / most + 1) / 2 : value / most;
  return Math.round(Math.min(Math.max(part, 0), 1) * (steps - 1));
}
/** @param {number} value @param {number} most @param {boolean} signed @returns {Color} */
export const colorOf = (value, most, signed) =>
  Number.isNaN(value) ? missing[theme()] : table(signed).colors[stepOf(value, most, signed)];
/** @param {Color} c */
export const css = (c) => `rgb(${c[0]}, ${c[1]}, ${c[2]})`;
/** Black or white. @param {Color} c */
export const readable = (c) => (0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] > 140 ? "#141418" : "#fafafc");
