// @ts-check
// What a row looked at where columns are no words: cells or boxes of a picture, frames of a sound.
import { ink } from "./colors.js";
import { make } from "./dom.js";
/** @import {Axis} from "./trace.js" */

const wide = 420;

export class Media {
  constructor() {
    this.canvas = make("canvas", { class: "media", "aria-hidden": "true" });
    this.element = make("figure", { hidden: true }, this.canvas);
    /** @type {Axis | null} */
    this.axis = null;
    /** @type {HTMLCanvasElement | null} */
    this.ground = null;
    /** @type {(i: number | null) => void} */
    this.onpoint = () => {};
    this.canvas.addEventListener("pointermove", (event) => this.onpoint(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => this.onpoint(null));
  }

  /** @param {Axis} axis */
  show(axis) {
    this.element.hidden = axis.kind === "tokens";
    if (this.axis === axis || this.element.hidden) return;
    this.axis = axis;
    const high = axis.kind === "frames" ? 120 : (wide * pictureHeight(axis)) / pictureWidth(axis);
    const factor = Math.min(1, 420 / high);
    this.canvas.width = Math.max(1, Math.round(wide * (axis.kind === "frames" ? 1 : factor)));
    this.canvas.height = Math.max(1, Math.round(axis.kind === "frames" ? high : high * factor));
    this.ground = make("canvas", { width: this.canvas.width, height: this.canvas.height });
    const pen = this.ground.getContext("2d");
    if (pen) paintGround(pen, axis, this.canvas.width, this.canvas.height);
  }

  /** @param {(i: number) => number} value @param {number | null} here */
  shade(value, here) {
    const { axis, canvas, ground } = this,
      pen = canvas.getContext("2d");
    if (!axis || !pen || !ground || this.element.hidden) return;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(ground, 0, 0);
    let most = 1e-12;
    for (let i = 0; i < axis.size; ++i) most = Math.max(most, Math.abs(value(i)) || 0);
    const pooled = Math.max(1, Math.ceil(axis.size / 65536)); // a grid may have millions of cells
    for (let i = 0; i < axis.size; i += pooled) {
      const part = Math.abs(value(i)) / most;
      if (!(part > 0.004) && i !== here) continue;
      const [x, y, width, height] = this.box(axis, i);
      pen.fillStyle = `rgba(255, 130, 0, ${0.75 * (part || 0)})`;
      pen.fillRect(x, y, Math.max(1, width), height);
      if (i !== here) continue;
      pen.strokeStyle = ink("--mark");
      pen.lineWidth = 2;
      pen.strokeRect(x, y, width, height);
    }
  }

  /** @param {Axis} axis @param {number} i @returns {[number, number, number, number]} */
  box(axis, i) {
    const { width, height } = this.canvas;
    if (axis.kind === "frames") return [(i * width) / axis.size, 0, width / axis.size, height];
    if (axis.kind === "grid") {
      const across = width / axis.columns,
        down = height / axis.rows;
      return [(i % axis.columns) * across, Math.floor(i / axis.columns) * down, across, down];
    }
    const box = axis.boxes[i],
      x = width / pictureWidth(axis),
      y = height / pictureHeight(axis);
    return [box.left * x, box.top * y, (box.right - box.left) * x, (box.bottom - box.top) * y];
  }

  /** @param {MouseEvent} event @returns {number | null} */
  at(event) {
    const { axis, canvas } = this,
      place = canvas.getBoundingClientRect();
    if (!axis || axis.size === 0 || place.width === 0) return null;
    const x = (event.clientX - place.left) / place.width,
      y = (event.clientY - place.top) / place.height;
    if (axis.kind === "frames") return Math.min(axis.size - 1, Math.max(0, Math.floor(x * axis.size)));
    if (axis.kind === "grid") {
      const row = Math.min(axis.rows - 1, Math.max(0, Math.floor(y * axis.rows)));
      return row * axis.columns + Math.min(axis.columns - 1, Math.max(0, Math.floor(x * axis.columns)));
    }
    const within = axis.boxes.findIndex(
      (box) =>
        box.left <= x * pictureWidth(axis) &&
        x * pictureWidth(axis) <= box.right &&
        box.top <= y * pictureHeight(axis) &&
        y * pictureHeight(axis) <= box.bottom,
    );
    return within < 0 ? null : within;
  }
}

/** @param {Axis} axis */
const pictureWidth = (axis) => axis.width || axis.columns || 1;
/** @param {Axis} axis */
const pictureHeight = (axis) => axis.height || axis.rows || 1;

/** @param {CanvasRenderingContext2D} pen @param {Axis} axis @param {number} width @param {number} height */
function paintGround(pen, axis, width, height) {
  const { picture, spectrum, sound } = axis;
  /** @param {(x: number, y: number) => [number, number, number]} color from 0 to 1 */
  const pixels = (color) => {
    const image = pen.createImageData(width, height);
    for (let y = 0; y < height; ++y) {
      for (let x = 0; x < width; ++x) {
        const [red, green, blue] = color(x / width, y / height);
        image.data.set([255 * red, 255 * green, 255 * blue, 255], 4 * (y * width + x));
      }
    }
    pen.putImageData(image, 0, 0);
  };
  if (picture && axis.kind !== "frames") {
    pixels((x, y) => {
      const at = 3 * (Math.floor(y * axis.height) * axis.width + Math.floor(x * axis.width));
      return [picture[at], picture[at + 1], picture[at + 2]];
    });
  } else if (spectrum && spectrum.values.length > 0) {
    const [times, bands] = spectrum.shape;
    let low = Infinity,
      high = -Infinity;
    for (const value of spectrum.values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    pixels((x, y) => {
      const value = spectrum.values[Math.floor(x * times) * bands + Math.floor((1 - y) * bands - 1e-9)];
      const part = high > low ? (value - low) / (high - low) : 0;
      return [0.1 + 0.6 * part, 0.12 + 0.65 * part, 0.2 + 0.6 * part];
    });
  } else if (sound && sound.length > 0) {
    pen.strokeStyle = ink("--faint");
    pen.beginPath();
    const each = sound.length / width;
    for (let x = 0; x < width; ++x) {
      let low = 0,
        high = 0;
      const step = Math.max(1, Math.floor(each / 200));
      for (let i = Math.floor(x * each); i < (x + 1) * each && i < sound.length; i += step) {
        low = Math.min(low, sound[i]);
        high = Math.max(high, sound[i]);
      }
      pen.moveTo(x + 0.5, ((1 - high) * height) / 2);
      pen.lineTo(x + 0.5, ((1 - low) * height) / 2 + 1);
    }
    pen.stroke();
  } else {
    pen.fillStyle = ink("--cover");
    pen.fillRect(0, 0, width, height);
  }
  if (axis.kind === "boxes" && axis.boxes.length < 2000) {
    pen.strokeStyle = ink("--faint");
    for (const box of axis.boxes) {
      const x = width / pictureWidth(axis),
        y = height / pictureHeight(axis);
      pen.strokeRect(box.left * x, box.top * y, (box.right - box.left) * x, (box.bottom - box.top) * y);
    }
  }
}
