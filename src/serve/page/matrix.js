// @ts-check
// A map of numbers on a canvas: zoomed and moved, pointed at, walked through by keys. Only what is seen is painted, of
// large maps from copies that keep the greatest of 2 × 2 cells; pointing paints on a second canvas above.
import { colorOf, css, ink, onTheme, packedMissing, readable, stepOf, table } from "./colors.js";
import { make } from "./dom.js";

/**
 * @typedef {object} Sheet what is shown
 * @property {Float32Array} values
 * @property {number} rows
 * @property {number} columns
 * @property {(i: number) => string} rowLabel
 * @property {(i: number) => string} columnLabel
 * @property {boolean} signed from blue to orange, else from nothing to the heaviest
 * @property {number} [digits] in the cells, where they fit
 */
/** @typedef {{hidden: Set<number>, pins: {row: number, column: number}[]}} Marks */
/** @typedef {{left: number, top: number, cell: number, x: number, y: number, width: number, height: number,
 *    upright: boolean, right: number}} Layout */

const angle = (-50 * Math.PI) / 180;
const mostLabel = 130,
  fontSize = 13,
  mostMeasured = 2000;
const font = `${fontSize}px system-ui, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif`;

/** @param {number} value @param {number} low @param {number} high */
const clamp = (value, low, high) => Math.min(Math.max(value, low), Math.max(low, high));

export class Matrix {
  /** @param {{label: string, cell?: number, height?: number}} settings */
  constructor(settings) {
    this.main = make("canvas", { "aria-hidden": "true" });
    this.over = make("canvas", { "aria-hidden": "true", class: "over" });
    this.element = make(
      "div",
      { class: "matrix", tabindex: "0", role: "application", "aria-label": settings.label },
      this.main,
      this.over,
    );
    this.mostCell = settings.cell ?? 34;
    this.mostHeight = settings.height ?? 0;
    /** @type {Sheet | null} */
    this.sheet = null;
    /** @type {{values: Float32Array, rows: number, columns: number}[]} */
    this.levels = [];
    this.most = 1;
    this.zoom = 1;
    /** @type {Layout} */
    this.layout = { left: 0, top: 0, cell: 1, x: 0, y: 0, width: 0, height: 0, upright: false, right: 0 };
    /** @type {Marks} */
    this.marks = { hidden: new Set(), pins: [] };
    /** @type {number | null} */
    this.row = null;
    /** @type {number | null} */
    this.column = null;
    /** The pointer is at this cell; null, null: nowhere. @type {(row: number | null, column: number | null) => void} */
    this.onpoint = () => {};
    /** It was clicked, or walked to by keys. @type {(row: number | null, column: number | null) => void} */
    this.onpick = () => {};
    /** Drawn from one column of a row to another. @type {((row: number, column: number) => void) | null} */
    this.ondraw = null;
    this.listen();
    new ResizeObserver(() => this.arrange()).observe(this.element);
    onTheme(() => this.paint());
  }

  /** @param {Sheet} sheet @param {boolean} [keepPlace] */
  show(sheet, keepPlace = false) {
    const same = this.sheet?.rows === sheet.rows && this.sheet.columns === sheet.columns;
    this.sheet = sheet;
    this.levels = [{ values: sheet.values, rows: sheet.rows, columns: sheet.columns }];
    let most = 0;
    for (let i = 0; i < sheet.values.length; ++i) {
      const value = Math.abs(sheet.values[i]);
      if (value > most) most = value;
    }
    this.most = most || 1;
    if (!keepPlace || !same) {
      this.zoom = 1;
      this.layout.x = this.layout.y = 0;
    }
    if (this.row !== null && this.row >= sheet.rows) this.row = null;
    if (this.column !== null && this.column >= sheet.columns) this.column = null;
    this.measure();
    this.arrange();
  }

  measure() {
    const sheet = this.sheet,
      pen = this.main.getContext("2d");
    if (!sheet || !pen) return;
    pen.font = font;
    const widest = (/** @type {number} */ count, /** @type {(i: number) => string} */ label) => {
      let width = 0;
      for (let i = 0; i < Math.min(count, mostMeasured) && width < mostLabel; ++i) {
        width = Math.max(width, pen.measureText(label(i)).width);
      }
      return Math.min(width, mostLabel);
    };
    this.rowWidth = Math.ceil(widest(sheet.rows, sheet.rowLabel));
    this.columnWidth = Math.ceil(widest(sheet.columns, sheet.columnLabel));
  }

  arrange() {
    const sheet = this.sheet,
      wide = this.element.clientWidth;
    if (!sheet || wide === 0) return;
    const layout = this.layout,
      rowWidth = Math.min(this.rowWidth ?? 0, wide * 0.3),
      columnWidth = this.columnWidth ?? 0;
    layout.left = rowWidth + 12;
    const cells = (/** @type {number} */ right, /** @type {number} */ top) => {
      const high = (this.mostHeight || Math.max(280, window.innerHeight * 0.72)) - top;
      const fit = Math.min(
        this.mostCell,
        (wide - layout.left - right - 2) / Math.max(1, sheet.columns),
        high / Math.max(1, sheet.rows),
      );
      if (fit >= 4) return { fit: Math.floor(fit), high };
      const least = Math.min(12, 120 / Math.max(1, Math.min(sheet.rows, sheet.columns))); // long and thin: scrolled
      return { fit: Math.max(fit, least), high };
    };
    layout.upright = cells(0, 24).fit * this.zoom >= columnWidth + 6;
    layout.top = layout.upright ? 24 : Math.ceil(columnWidth * Math.sin(-angle)) + 18;
    layout.right = layout.upright ? 2 : Math.ceil(columnWidth * Math.cos(angle)) + 8;
    const { fit, high } = cells(layout.right, layout.top);
    layout.cell = fit * this.zoom;
    layout.width = Math.min(sheet.columns * layout.cell, wide - layout.left - layout.right - 2);
    layout.height = Math.min(sheet.rows * layout.cell, high);
    this.clampPlace();
    const ratio = window.devicePixelRatio || 1,
      height = layout.top + layout.height + 3;
    for (const canvas of [this.main, this.over]) {
      canvas.width = Math.max(1, Math.round(wide * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${height}px`;
    }
    this.element.style.minHeight = `${height}px`;
    this.paint();
  }

  clampPlace() {
    const sheet = this.sheet,
      layout = this.layout;
    if (!sheet) return;
    layout.x = clamp(layout.x, 0, sheet.columns * layout.cell - layout.width);
    layout.y = clamp(layout.y, 0, sheet.rows * layout.cell - layout.height);
  }

  /** More than what fits. */
  overflows() {
    const { sheet, layout } = this;
    return !!sheet && (sheet.columns * layout.cell > layout.width + 1 || sheet.rows * layout.cell > layout.height + 1);
  }

  /** @param {number} factor 0: as all fits @param {{x: number, y: number}} [at] what stays where it is */
  zoomBy(factor, at) {
    const { sheet, layout } = this;
    if (!sheet) return;
    const fixed = at ?? { x: layout.left + layout.width / 2, y: layout.top + layout.height / 2 };
    const column = (fixed.x - layout.left + layout.x) / layout.cell,
      row = (fixed.y - layout.top + layout.y) / layout.cell;
    const before = this.zoom,
      fit = layout.cell / before;
    this.zoom = factor === 0 ? 1 : clamp(before * factor, 1, Math.max(1, 64 / fit));
    this.arrange();
    layout.x = column * layout.cell - (fixed.x - layout.left);
    layout.y = row * layout.cell - (fixed.y - layout.top);
    this.clampPlace();
    this.paint();
  }

  /** A copy of half the size has the greatest of 2 × 2 cells. @param {number} level */
  level(level) {
    while (this.levels.length <= level) {
      const from = this.levels[this.levels.length - 1];
      const rows = Math.ceil(from.rows / 2),
        columns = Math.ceil(from.columns / 2),
        values = new Float32Array(rows * columns);
      for (let row = 0; row < rows; ++row) {
        const second = 2 * row + 1 < from.rows ? from.columns : 0;
        for (let column = 0; column < columns; ++column) {
          const at = 2 * row * from.columns + 2 * column,
            right = 2 * column + 1 < from.columns ? 1 : 0;
          let best = from.values[at];
          for (const place of [at + right, at + second, at + second + right]) {
            const value = from.values[place];
            if (Math.abs(value) > Math.abs(best) || best !== best) best = value;
          }
          values[row * columns + column] = best;
        }
      }
      this.levels.push({ values, rows, columns });
    }
    return this.levels[level];
  }

  paint() {
    const { sheet, layout } = this,
      pen = this.main.getContext("2d");
    if (!sheet || !pen || this.element.clientWidth === 0) return;
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.main.width, this.main.height);
    if (sheet.rows * sheet.columns > 0) {
      pen.save();
      pen.beginPath();
      pen.rect(layout.left, layout.top, layout.width, layout.height);
      pen.clip();
      this.paintCells(pen, layout);
      this.paintMarks(pen);
      pen.restore();
      this.paintLabels(pen);
      pen.strokeStyle = ink("--line");
      pen.lineWidth = 1;
      pen.strokeRect(layout.left - 0.5, layout.top - 0.5, layout.width + 1, layout.height + 1);
    }
    this.paintOver();
  }

  /** @param {CanvasRenderingContext2D} pen @param {Layout} layout */
  paintCells(pen, layout) {
    const sheet = /** @type {Sheet} */ (this.sheet),
      { cell, left, top, x, y } = layout;
    const level = cell >= 1 ? 0 : Math.ceil(Math.log2(1 / cell)),
      from = this.level(level),
      size = cell * 2 ** level;
    const row0 = clamp(Math.floor(y / size), 0, from.rows - 1),
      column0 = clamp(Math.floor(x / size), 0, from.columns - 1);
    const row1 = Math.min(from.rows, Math.ceil((y + layout.height) / size) + 1);
    const column1 = Math.min(from.columns, Math.ceil((x + layout.width) / size) + 1);
    const wide = Math.max(1, column1 - column0),
      high = Math.max(1, row1 - row0);
    const image = new ImageData(wide, high),
      pixels = new Uint32Array(image.data.buffer);
    const { packed } = table(sheet.signed),
      unknown = packedMissing();
    for (let row = 0; row < high; ++row) {
      for (let column = 0; column < wide; ++column) {
        const value = from.values[(row0 + row) * from.columns + column0 + column];
        pixels[row * wide + column] = value !== value ? unknown : packed[stepOf(value, this.most, sheet.signed)];
      }
    }
    const picture = make("canvas", { width: wide, height: high });
    picture.getContext("2d")?.putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(picture, left + column0 * size - x, top + row0 * size - y, wide * size, high * size);
    if (cell >= 30 && sheet.digits !== undefined) this.paintNumbers(pen, row0, row1, column0, column1, sheet.digits);
    if (cell >= 12) {
      // cells apart
      pen.strokeStyle = ink("--ground");
      pen.lineWidth = 1;
      pen.beginPath();
      for (let row = row0; row <= row1; ++row) {
        pen.moveTo(left, top + row * cell - y + 0.5);
        pen.lineTo(left + layout.width, top + row * cell - y + 0.5);
      }
      for (let column = column0; column <= column1; ++column) {
        pen.moveTo(left + column * cell - x + 0.5, top);
        pen.lineTo(left + column * cell - x + 0.5, top + layout.height);
      }
      pen.stroke();
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} row0 @param {number} row1 @param {number} column0
   *  @param {number} column1 @param {number} digits */
  paintNumbers(pen, row0, row1, column0, column1, digits) {
    const sheet = /** @type {Sheet} */ (this.sheet),
      { cell, left, top, x, y } = this.layout;
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let row = row0; row < row1; ++row) {
      for (let column = column0; column < column1; ++column) {
        const value = sheet.values[row * sheet.columns + column];
        pen.fillStyle = readable(colorOf(value, this.most, sheet.signed));
        pen.fillText(
          Number.isNaN(value) ? "–" : value.toFixed(digits).replace("-", "−"),
          left + (column + 0.5) * cell - x,
          top + (row + 0.5) * cell - y + 0.5,
          cell - 2,
        );
      }
    }
  }

  /** @param {CanvasRenderingContext2D} pen */
  paintMarks(pen) {
    const sheet = /** @type {Sheet} */ (this.sheet),
      { cell, left, top, x, y } = this.layout;
    pen.fillStyle = ink("--cover");
    for (const column of this.marks.hidden)
      pen.fillRect(left + column * cell - x, top, Math.max(1, cell), sheet.rows * cell);
    pen.fillStyle = ink("--mark"); // a pin in the corner: the number stays to be read
    for (const { row, column } of this.marks.pins) {
      const size = Math.max(2, cell / 9);
      pen.beginPath();
      pen.arc(left + (column + 1) * cell - x - size - 2, top + row * cell - y + size + 2, size, 0, 2 * Math.PI);
      pen.fill();
    }
  }

  /** @param {CanvasRenderingContext2D} pen */
  paintLabels(pen) {
    const sheet = /** @type {Sheet} */ (this.sheet),
      { cell, left, top, x, y, width, height } = this.layout;
    const step = Math.max(1, Math.ceil((fontSize + 3) / cell));
    const from = (/** @type {number} */ offset) => Math.ceil(Math.floor(offset / cell) / step) * step;
    for (let row = from(y); row < sheet.rows && row * cell < y + height; row += step) {
      this.rowText(pen, row, ink("--text"));
    }
    for (let column = from(x); column < sheet.columns && column * cell < x + width; column += step) {
      this.columnText(pen, column, ink("--text"));
    }
    pen.textAlign = "left";
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} row @param {string} color */
  rowText(pen, row, color) {
    const sheet = /** @type {Sheet} */ (this.sheet),
      { cell, left, top, y, height } = this.layout;
    const at = clamp(top + (row + 0.5) * cell - y, top + 4, top + height - 2);
    pen.font = font;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.fillStyle = color;
    pen.fillText(shortened(pen, sheet.rowLabel(row), left - 10), left - 7, at);
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} column @param {string} color */
  columnText(pen, column, color) {
    const sheet = /** @type {Sheet} */ (this.sheet),
      { cell, left, top, x, width, upright } = this.layout;
    pen.save();
    pen.font = font;
    pen.textBaseline = "middle";
    pen.textAlign = upright ? "center" : "left";
    pen.fillStyle = color;
    pen.translate(clamp(left + (column + 0.5) * cell - x, left + 2, left + width - 2), top - (upright ? 10 : 8));
    if (!upright) pen.rotate(angle);
    pen.fillText(shortened(pen, sheet.columnLabel(column), mostLabel), 0, 0);
    pen.restore();
  }

  /** Which row and column the others show, too. @param {number | null} row @param {number | null} column */
  point(row, column) {
    this.row = row;
    this.column = column;
    this.paintOver();
  }

  paintOver() {
    const { sheet, layout, row, column } = this,
      pen = this.over.getContext("2d");
    if (!sheet || !pen) return;
    const ratio = window.devicePixelRatio || 1,
      { cell, left, top, x, y, width, height } = layout;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.over.width, this.over.height);
    if (row === null && column === null) return;
    const mark = ink("--mark"),
      ground = ink("--ground"),
      size = Math.max(cell, 2);
    pen.save();
    pen.beginPath();
    pen.rect(left - 1, top - 1, width + 2, height + 2);
    pen.clip();
    pen.strokeStyle = mark;
    pen.lineWidth = 1;
    if (row !== null) pen.strokeRect(left, top + row * cell - y, width, size);
    if (column !== null) pen.strokeRect(left + column * cell - x, top, size, height);
    pen.lineWidth = 2;
    if (row !== null && column !== null) pen.strokeRect(left + column * cell - x, top + row * cell - y, size, size);
    pen.restore();
    if (row !== null) {
      const at = clamp(top + (row + 0.5) * cell - y, top + 4, top + height - 2);
      pen.fillStyle = ground;
      pen.fillRect(0, at - 9, left - 3, 18);
      this.rowText(pen, row, mark);
    }
    if (column !== null) {
      pen.save();
      pen.translate(
        clamp(left + (column + 0.5) * cell - x, left + 2, left + width - 2),
        top - (layout.upright ? 10 : 8),
      );
      if (!layout.upright) pen.rotate(angle);
      pen.font = font;
      const wide = Math.min(mostLabel, pen.measureText(sheet.columnLabel(column)).width) + 6;
      pen.fillStyle = ground;
      pen.fillRect(layout.upright ? -wide / 2 : -3, -9, wide, 17);
      pen.restore();
      this.columnText(pen, column, mark);
    }
  }

  /** @param {MouseEvent} event @returns {{row: number | null, column: number | null, x: number, y: number}} */
  at(event) {
    const box = this.over.getBoundingClientRect(),
      x = event.clientX - box.left,
      y = event.clientY - box.top;
    const { sheet, layout } = this;
    const along = (
      /** @type {number} */ place,
      /** @type {number} */ begin,
      /** @type {number} */ size,
      /** @type {number} */ offset,
      /** @type {number} */ count,
    ) =>
      place < begin || place >= begin + size
        ? null
        : clamp(Math.floor((place - begin + offset) / layout.cell), 0, count - 1);
    if (!sheet || sheet.rows * sheet.columns === 0) return { row: null, column: null, x, y };
    const row = along(y, layout.top, layout.height, layout.y, sheet.rows);
    const column = along(x, layout.left, layout.width, layout.x, sheet.columns);
    // Right of the map and below it is nothing; left of it are the rows' names, above it the columns'.
    if ((row === null && y > layout.top) || (column === null && x > layout.left))
      return { row: null, column: null, x, y };
    return { row, column, x, y };
  }

  listen() {
    const { over, element, layout } = this;
    /** @type {{x: number, y: number, left: number, top: number, row: number | null, column: number | null} | null} */
    let held = null;
    over.addEventListener("pointermove", (event) => {
      const place = this.at(event);
      if (held && this.overflows() && event.buttons & 1) {
        layout.x = held.left + held.x - event.clientX;
        layout.y = held.top + held.y - event.clientY;
        this.clampPlace();
        this.paint();
        return;
      }
      const row = held && this.ondraw ? held.row : place.row;
      if (row !== this.row || place.column !== this.column) this.onpoint(row, place.column);
    });
    over.addEventListener("pointerleave", () => this.onpoint(null, null));
    over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const place = this.at(event);
      held = {
        x: event.clientX,
        y: event.clientY,
        left: layout.x,
        top: layout.y,
        row: place.row,
        column: place.column,
      };
      if (event.pointerType === "mouse") over.setPointerCapture(event.pointerId);
    });
    over.addEventListener("pointerup", (event) => {
      const place = this.at(event),
        from = held;
      held = null;
      if (!from || Math.hypot(event.clientX - from.x, event.clientY - from.y) < 4) {
        if (place.row !== null || place.column !== null) this.onpick(place.row, place.column);
      } else if (
        this.ondraw &&
        !this.overflows() &&
        from.row !== null &&
        from.column !== null &&
        place.column !== null &&
        place.column !== from.column
      ) {
        this.ondraw(from.row, place.column);
      }
    });
    over.addEventListener("pointercancel", () => (held = null));
    over.addEventListener(
      "wheel",
      (event) => {
        const by = (/** @type {number} */ delta) => delta * (event.deltaMode === 1 ? 20 : 1);
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          this.zoomBy(Math.exp(-by(event.deltaY) / 300), this.at(event));
        } else if (this.overflows()) {
          const { x, y } = layout;
          layout.x += event.shiftKey ? by(event.deltaY) : by(event.deltaX);
          layout.y += event.shiftKey ? 0 : by(event.deltaY);
          this.clampPlace();
          if (layout.x === x && layout.y === y) return; // at its end the page goes on
          event.preventDefault();
          this.paint();
          const place = this.at(event);
          this.onpoint(place.row, place.column);
        }
      },
      { passive: false },
    );
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { sheet, layout } = this;
    if (!sheet || sheet.rows * sheet.columns === 0 || event.altKey) return;
    const row = this.row ?? 0,
      column = this.column ?? 0,
      all = event.ctrlKey || event.metaKey;
    const page = Math.max(1, Math.floor(layout.height / layout.cell) - 1);
    /** @type {Record<string, [number, number]>} */
    const steps = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [all ? 0 : row, 0],
      End: [all ? sheet.rows - 1 : row, sheet.columns - 1],
      PageUp: [row - page, column],
      PageDown: [row + page, column],
    };
    const zooms = /** @type {Record<string, number>} */ ({ "+": 1.5, "=": 1.5, "-": 1 / 1.5, 0: 0 });
    if (event.key in steps) {
      const begun = this.row === null || this.column === null;
      const [to, along] = begun && event.key.startsWith("Arrow") ? [row, column] : steps[event.key];
      event.preventDefault();
      this.walk(clamp(to, 0, sheet.rows - 1), clamp(along, 0, sheet.columns - 1));
    } else if (event.key in zooms && !all) {
      event.preventDefault();
      this.zoomBy(zooms[event.key]);
    }
  }

  /** @param {number} row @param {number} column */
  walk(row, column) {
    const { layout } = this,
      { x, y } = layout;
    layout.x = clamp(layout.x, (column + 1) * layout.cell - layout.width, column * layout.cell);
    layout.y = clamp(layout.y, (row + 1) * layout.cell - layout.height, row * layout.cell);
    this.clampPlace();
    if (layout.x !== x || layout.y !== y) this.paint();
    this.onpick(row, column);
  }
}

/** @param {CanvasRenderingContext2D} pen @param {string} text @param {number} width */
function shortened(pen, text, width) {
  const letters = text.length > 60 ? text.slice(0, 60) : text;
  if (pen.measureText(letters).width <= width) return letters;
  let low = 0,
    high = letters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (pen.measureText(letters.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return letters.slice(0, low) + "…";
}
