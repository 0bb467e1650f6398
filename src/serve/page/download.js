// @ts-check
// What is shown, as a file: SVG, the same as PNG, or the trace itself.
import { colorOf, css, ink, packedMissing, stepOf, table } from "./colors.js";
import { make } from "./dom.js";
/** @import {Matrix} from "./matrix.js" */

const mostRectangles = 40000,
  mostSide = 2048;

/** @param {string} name @param {Blob} content */
export function save(name, content) {
  const link = make("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** @param {string} text */
const escaped = (text) =>
  text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, " ").replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
/** @param {string} text */
const shortened = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
/** About how wide it is: Chinese letters are square. @param {string} text @param {number} size */
const widthOf = (text, size) => [...text].reduce((sum, letter) => sum + (letter > "ᄀ" ? 1 : 0.58) * size, 0);

/** @param {string} name @param {Record<string, string | number>} attributes @param {string} [inside] */
function tag(name, attributes, inside) {
  const said = Object.entries(attributes).map(
    ([key, value]) => ` ${key}="${typeof value === "number" ? Number(value.toFixed(2)) : escaped(value)}"`,
  );
  return `<${name}${said.join("")}${inside === undefined ? "/>" : `>${inside}</${name}>`}`;
}

/** @param {Matrix} matrix @param {string} caption @returns {{text: string, width: number, height: number}} */
export function svgOf(matrix, caption) {
  const sheet = matrix.sheet;
  if (!sheet) return { text: "", width: 1, height: 1 };
  const longest = Math.max(1, sheet.rows, sheet.columns);
  const cell = Math.min(22, Math.max(1, Math.floor(1600 / longest)), mostSide / longest);
  const size = Math.max(9, Math.min(13, cell * 0.62));
  const step = Math.ceil((size + 2) / cell);
  /** @param {number} count @param {(i: number) => string} label */
  const labels = (count, label) =>
    Array.from({ length: Math.ceil(count / step) }, (_, k) => ({ at: k * step, text: shortened(label(k * step)) }));
  const rows = labels(sheet.rows, sheet.rowLabel);
  const columns = labels(sheet.columns, sheet.columnLabel);
  const left = Math.max(0, ...rows.map((each) => widthOf(each.text, size))) + 14;
  const high = Math.max(0, ...columns.map((each) => widthOf(each.text, size)));
  const top = 26 + high * 0.77 + 8;
  const map = { x: left, y: top, width: sheet.columns * cell, height: sheet.rows * cell };
  const width = left + map.width + high * 0.64 + 10;
  const height = top + map.height + 10;
  const parts = [
    tag("title", {}, escaped(caption)),
    tag("rect", { width: "100%", height: "100%", fill: ink("--ground") }),
    tag("text", { x: 8, y: 17, fill: ink("--faint"), "font-size": 12 }, escaped(caption)),
  ];
  if (sheet.rows * sheet.columns <= mostRectangles) {
    for (let row = 0; row < sheet.rows; ++row) {
      for (let column = 0; column < sheet.columns; ++column) {
        const fill = css(colorOf(sheet.values[row * sheet.columns + column], matrix.most, sheet.signed));
        parts.push(tag("rect", { x: left + column * cell, y: top + row * cell, width: cell, height: cell, fill }));
      }
    }
  } else {
    const how = { preserveAspectRatio: "none", "image-rendering": "pixelated", href: pictureOf(matrix) };
    parts.push(tag("image", { ...map, ...how }));
  }
  const style = { "dominant-baseline": "central", fill: ink("--text") };
  for (const { at, text } of rows) {
    parts.push(tag("text", { x: left - 6, y: top + (at + 0.5) * cell, "text-anchor": "end", ...style }, escaped(text)));
  }
  for (const { at, text } of columns) {
    const transform = `translate(${(left + (at + 0.5) * cell).toFixed(2)} ${(top - 7).toFixed(2)}) rotate(-50)`;
    parts.push(tag("text", { transform, ...style }, escaped(text)));
  }
  parts.push(tag("rect", { ...map, fill: "none", stroke: ink("--line") }));
  const frame = {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width.toFixed(2)} ${height.toFixed(2)}`,
  };
  const text = tag("svg", { ...frame, "font-family": "sans-serif", "font-size": size }, `\n${parts.join("\n")}\n`);
  return { text: `${text}\n`, width, height };
}

/** The cells of a large map, the greatest of those that fall together. @param {Matrix} matrix */
function pictureOf(matrix) {
  const sheet = matrix.sheet;
  if (!sheet) return "";
  let level = 0;
  while (Math.max(sheet.rows, sheet.columns) / 2 ** level > mostSide) ++level;
  const { values, rows, columns } = matrix.level(level),
    image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer),
    { packed } = table(sheet.signed),
    unknown = packedMissing();
  for (let i = 0; i < values.length; ++i) {
    pixels[i] = Number.isNaN(values[i]) ? unknown : packed[stepOf(values[i], matrix.most, sheet.signed)];
  }
  const canvas = make("canvas", { width: columns, height: rows });
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas.toDataURL("image/png");
}

/** @param {Matrix} matrix @param {string} caption */
export const saveSvg = (matrix, caption) =>
  save("regard.svg", new Blob([svgOf(matrix, caption).text], { type: "image/svg+xml" }));

/** @param {Matrix} matrix @param {string} caption */
export async function savePng(matrix, caption) {
  const { text, width, height } = svgOf(matrix, caption),
    factor = Math.min(2, 4096 / Math.max(width, height));
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = make("canvas", { width: Math.ceil(width * factor), height: Math.ceil(height * factor) });
    canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const made = await new Promise((/** @type {(made: Blob | null) => void} */ done) =>
      canvas.toBlob(done, "image/png"),
    );
    if (made) save("regard.png", made);
  } finally {
    URL.revokeObjectURL(address);
  }
}
