// @ts-check
// One item of a trace: both sentences, the matrix, and what of all maps, layers and heads is shown. Pointing at one of
// them shows the same in all; a click or a key keeps it.
import { onTheme, packedMissing, stepOf, table } from "./colors.js";
import { greatest, planeOf, rolledThrough, weightsOf } from "./derive.js";
import { fill, make } from "./dom.js";
import { save, savePng, saveSvg } from "./download.js";
import { Matrix } from "./matrix.js";
import { Media } from "./media.js";
import { Sentence } from "./sentence.js";
import { isAborted } from "./server.js";
import { axisNamed, labelOf } from "./trace.js";
import { onLanguage, t, weight } from "./words.js";
/** @import {Plane, Shown} from "./derive.js" */
/** @import {Item} from "./trace.js" */

/** @typedef {{row: number | null, column: number | null}} Point */

const mostThumbnails = 64,
  mostThumbnailCells = 5e7,
  mostTableRows = 100,
  mostTableColumns = 60;

/** @param {string} name */
const named = (name) => (name === "cross" || name === "encoder" || name === "decoder" ? t(name) : name);
/** @param {string} name */
const axisName = (name) => (name === "source" || name === "target" || name === "written" ? t(name) : name);

/** Words from the right to the left turn nothing around them. @param {string} text */
const isolated = (text) => (/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(text) ? `\u2068${text}\u2069` : text);

export class Explorer {
  constructor() {
    this.columns = new Sentence();
    this.rows = new Sentence();
    this.media = new Media();
    this.matrix = new Matrix({ label: "" });
    const select = () => make("select", { onchange: () => this.chosen() });
    this.select = { map: select(), layer: select(), head: select(), measure: select() };
    this.words = make("input", { type: "checkbox", onchange: () => this.chosen() });
    this.alignment = make("button", {
      type: "button",
      class: "toggle",
      "aria-pressed": "true",
      onclick: () => this.align(),
    });
    this.value = make("p", { class: "value", "aria-live": "polite" });
    this.most = make("ol", { class: "most" });
    this.heads = make("div", { class: "heads", role: "group" });
    this.headsBox = make("details", { class: "box", open: true }, make("summary"), this.heads);
    this.table = make("div", { class: "numbers" });
    this.tableBox = make("details", { class: "box", ontoggle: () => this.fillTable() }, make("summary"), this.table);
    this.help = make("p", { class: "faint" });
    this.slot = make("div");
    /** @type {Record<string, HTMLElement>} */
    this.labels = {};
    const labelled = (/** @type {string} */ key, /** @type {HTMLElement} */ input) => {
      this.labels[key] = make("span");
      return make("label", {}, this.labels[key], input);
    };
    const button = (/** @type {string} */ text, /** @type {() => void} */ onclick) =>
      make("button", { type: "button", onclick }, text);
    this.zoom = [
      button("+", () => this.matrix.zoomBy(1.5)),
      button("−", () => this.matrix.zoomBy(1 / 1.5)),
      button("⤢", () => this.matrix.zoomBy(0)),
    ];
    this.saveTrace = button("", () => this.bytes && save("regard.trace", new Blob([this.bytes])));
    this.saves = make(
      "div",
      { class: "saves", role: "group" },
      button("SVG", () => saveSvg(this.matrix, this.caption())),
      button("PNG", () => void savePng(this.matrix, this.caption())),
      this.saveTrace,
    );
    this.element = make(
      "div",
      { class: "explorer", hidden: true },
      make("div", { class: "strips" }, this.columns.element, this.rows.element),
      make(
        "div",
        { class: "controls" },
        labelled("map", this.select.map),
        labelled("layer", this.select.layer),
        labelled("head", this.select.head),
        labelled("measure", this.select.measure),
        make("label", { class: "check" }, this.words, (this.labels["words"] = make("span"))),
        this.alignment,
      ),
      this.value,
      (this.body = make(
        "div",
        { class: "body" },
        make(
          "div",
          { class: "picture" },
          make("div", { class: "tools" }, ...this.zoom, this.saves),
          this.matrix.element,
          this.help,
        ),
        make("div", { class: "side" }, this.media.element, this.slot),
        make(
          "div",
          { class: "side" },
          make("section", { class: "box greatest" }, (this.labels["greatest"] = make("h3")), this.most),
          this.headsBox,
        ),
      )),
      this.tableBox,
    );

    /** @type {Item | null} */
    this.item = null;
    /** The item that is taken away from it. @type {Item | null} */
    this.minus = null;
    /** @type {Uint8Array<ArrayBuffer> | null} */
    this.bytes = null;
    /** @type {Plane | null} */
    this.plane = null;
    this.signed = false;
    /** @type {Shown} */
    this.shown = { map: "", layer: -1, head: -1, measure: "weights", words: false, shift: 0 };
    this.aligned = true;
    /** @type {Point} */
    this.selected = { row: null, column: null };
    /** @type {Point | null} */
    this.hover = null;
    this.work = new AbortController();
    /** What is selected or shown is another. */
    this.onchange = () => {};
    /** @type {(row: number, column: number) => void} */
    this.ondraw = () => {};
    /** @type {(layer: number, head: number) => boolean} */
    this.isMute = () => false;
    this.ready = Promise.resolve();

    this.matrix.onpoint = (row, column) => this.point(row === null && column === null ? null : { row, column });
    this.matrix.onpick = (row, column) => this.pick({ row, column });
    this.columns.onpoint = (column) => this.point(column === null ? null : { row: null, column });
    this.rows.onpoint = (row) => this.point(row === null ? null : { row, column: null });
    this.media.onpoint = (column) => this.point(column === null ? null : { row: this.selected.row, column });
    this.columns.onpick = (column) => this.pick({ row: this.selected.row, column });
    this.rows.onpick = (row) => this.pick({ row, column: this.selected.column });
    onTheme(() => this.refresh());
    onLanguage(() => this.say());
  }

  say() {
    for (const key of /** @type {const} */ (["map", "layer", "head", "measure", "words", "greatest"]))
      this.labels[key].textContent = t(key);
    this.alignment.textContent = t("alignment");
    this.alignment.title = t("alignmentHint");
    this.saveTrace.textContent = t("saveTrace");
    this.saves.setAttribute("aria-label", t("download"));
    this.help.textContent = t("matrixHelp");
    /** @type {const} */ (["zoomIn", "zoomOut", "zoomAll"]).forEach((key, i) => {
      this.zoom[i].title = t(key);
      this.zoom[i].setAttribute("aria-label", t(key));
    });
    for (const [box, key] of /** @type {const} */ ([
      [this.headsBox, "heads"],
      [this.tableBox, "numbers"],
    ])) {
      if (box.firstElementChild) box.firstElementChild.textContent = t(key);
    }
    this.heads.setAttribute("aria-label", t("heads"));
    this.matrix.element.setAttribute("aria-label", t("matrix", 0, 0));
    if (this.item) this.refresh();
  }

  /** @param {Item} item @param {{minus?: Item | null, bytes: Uint8Array<ArrayBuffer>, keep?: boolean}} how */
  show(item, { minus = null, bytes, keep = false }) {
    this.item = item;
    this.minus = minus;
    this.bytes = bytes;
    this.element.hidden = false;
    if (!keep) this.selected = { row: null, column: null };
    this.hover = null;
    if (this.aligned || !item.maps.some((map) => map.name === this.shown.map)) this.toChoice();
    return this.refresh();
  }

  /** What the writer of the trace would show. */
  toChoice() {
    const { item } = this,
      map = item?.maps[0];
    if (!item || !map) return;
    const choice = item.choice ?? { map: map.name, layer: map.layers - 1, head: -1, shift: 0 };
    this.aligned = true;
    this.shown = { ...this.shown, ...choice, measure: "weights" };
  }
  align() {
    this.toChoice();
    void this.refresh();
  }

  chosen() {
    const { map, layer, head, measure } = this.select,
      same = map.value === this.shown.map;
    this.aligned =
      this.aligned &&
      same &&
      Number(layer.value) === this.shown.layer &&
      Number(head.value) === this.shown.head &&
      measure.value === this.shown.measure;
    if (!same || this.words.checked !== this.shown.words) this.selected = { row: null, column: null };
    this.shown = {
      map: map.value,
      layer: Number(layer.value),
      head: Number(head.value),
      words: this.words.checked,
      measure: /** @type {Shown["measure"]} */ (measure.value),
      shift: this.aligned ? this.shown.shift : 0,
    };
    void this.refresh();
  }

  /** @param {number} layer @param {number} head */
  chooseHead(layer, head) {
    this.aligned = false;
    this.shown = {
      ...this.shown,
      layer,
      head,
      shift: 0,
      measure: this.shown.measure === "rollout" ? "weights" : this.shown.measure,
    };
    void this.refresh();
  }

  refresh() {
    this.ready = this.update();
    return this.ready;
  }

  async update() {
    const { item, shown, select } = this;
    if (!item) return;
    const map = item.maps.find((each) => each.name === shown.map);
    this.value.classList.remove("bad");
    if (!map) {
      this.plane = null;
      this.value.textContent = t("noMaps");
      this.element.classList.add("empty");
      this.onchange();
      return;
    }
    this.element.classList.remove("empty");
    fill(
      select.map,
      item.maps.map((each) => [each.name, named(each.name)]),
      shown.map,
    );
    /** @type {[string, string][]} */
    const measures = [["weights", t("weights")]];
    if (map.norms) measures.push(["norms", t("norms")]);
    const through = rolledThrough(item, map);
    if (through) measures.push(["rollout", t("rollout")]);
    fill(select.measure, measures, shown.measure);
    shown.measure = /** @type {Shown["measure"]} */ (select.measure.value);
    const numbers = (/** @type {number} */ count) =>
      Array.from({ length: count }, (_, i) => /** @type {[string, string]} */ ([String(i), String(i)]));
    fill(select.layer, [...numbers(map.layers), ["-1", t("allLayers")]], String(Math.min(shown.layer, map.layers - 1)));
    fill(select.head, [...numbers(map.heads), ["-1", t("mean")]], String(Math.min(shown.head, map.heads - 1)));
    shown.layer = Number(select.layer.value);
    shown.head = Number(select.head.value);
    if (shown.measure === "rollout" && through === map) select.layer.disabled = select.head.disabled = true;
    this.words.checked = shown.words;
    this.alignment.setAttribute("aria-pressed", String(this.aligned));
    this.alignment.hidden = !item.choice;
    this.saveTrace.hidden = !this.bytes;
    this.work.abort();
    const work = (this.work = new AbortController());
    const slow = setTimeout(() => (this.value.textContent = t("computing")), 200);
    try {
      const plane = await planeOf(item, shown, work.signal);
      const minus = this.minus ? await planeOf(this.minus, shown, work.signal) : null;
      if (work.signal.aborted) return;
      if (minus && minus.values.length === plane.values.length && minus.rows.size === plane.rows.size) {
        plane.values = plane.values.map((value, i) => value - minus.values[i]);
      } else if (minus) {
        this.minus = null;
        this.tell(t("noDifference"));
      }
      this.put(plane);
    } catch (error) {
      if (isAborted(error)) return;
      this.value.textContent = error instanceof Error ? error.message : String(error);
      this.value.classList.add("bad");
    } finally {
      clearTimeout(slow);
    }
    if (!work.signal.aborted) this.onchange();
  }

  /** Something that is not about a cell. @param {string} text */
  tell(text) {
    this.value.textContent = text;
  }

  /** @param {Plane} plane */
  put(plane) {
    const { rows, columns } = plane;
    this.plane = plane;
    this.signed = plane.values.some((value) => value < 0);
    if ((this.selected.row ?? -1) >= rows.size) this.selected.row = null;
    if ((this.selected.column ?? -1) >= columns.size) this.selected.column = null;
    this.columns.show(t("looked", axisName(columns.name)), columns);
    this.rows.show(t("looks", axisName(rows.name)), rows);
    this.media.show(columns);
    this.body.classList.toggle("plain", this.media.element.hidden && this.slot.childElementCount === 0);
    this.matrix.show(
      {
        values: plane.values,
        rows: rows.size,
        columns: columns.size,
        signed: this.signed,
        digits: 2,
        rowLabel: (i) => labelOf(rows, i),
        columnLabel: (i) => labelOf(columns, i),
      },
      true,
    );
    this.matrix.element.setAttribute("aria-label", t("matrix", rows.size, columns.size));
    this.paintHeads();
    this.fillTable();
    this.shade();
  }

  /** @param {Point | null} point */
  point(point) {
    this.hover = point;
    this.shade();
  }
  /** @param {Point} point */
  pick(point) {
    this.selected = point;
    this.hover = null;
    this.shade();
    this.onchange();
  }

  shade() {
    const { plane, signed } = this;
    if (!plane) return;
    const { row, column } = this.hover ?? this.selected,
      { values } = plane,
      wide = plane.columns.size,
      { most } = this.matrix;
    this.matrix.point(row, column);
    this.columns.shade(column, row === null ? null : (i) => values[row * wide + i], most, signed);
    this.rows.shade(row, column === null ? null : (i) => values[i * wide + column], most, signed);
    this.media.shade((i) => (row === null ? 0 : values[row * wide + i]), column);
    this.most.replaceChildren();
    if (row === null && column === null) {
      this.value.textContent = plane.values.length ? t("pointHint") : "";
      return;
    }
    const list = greatest(plane, row, column, 6),
      other = row !== null ? plane.columns : plane.rows;
    const label = (/** @type {number} */ i) => labelOf(other, i);
    const told = list
      .slice(0, 3)
      .map((each) => `${isolated(label(each.place))} ${weight(each.value)}`)
      .join(", ");
    const who = isolated(row !== null ? labelOf(plane.rows, row) : labelOf(plane.columns, column ?? 0));
    this.value.textContent =
      row !== null && column !== null
        ? t("cellIs", who, isolated(labelOf(plane.columns, column)), weight(values[row * wide + column]))
        : t(row !== null ? "rowIs" : "columnIs", who, told);
    this.most.append(
      ...list.map(({ place, value }) => {
        const bar = make("span", { class: "bar" });
        bar.style.width = `${Math.round((90 * Math.abs(value)) / most)}px`;
        return make(
          "li",
          {},
          make("bdi", {}, label(place)),
          " ",
          make("span", { class: "number" }, weight(value)),
          bar,
        );
      }),
    );
  }

  paintHeads() {
    const { item, shown } = this,
      map = item?.maps.find((each) => each.name === shown.map);
    this.headsBox.hidden = !item || !map || map.layers * map.heads < 2 || map.weights.length > mostThumbnailCells;
    if (!item || !map || this.headsBox.hidden) return;
    const rows = axisNamed(item, map.rows).size,
      columns = axisNamed(item, map.columns).size;
    /** @type {HTMLElement[]} */
    const made = [];
    for (let layer = 0; layer < map.layers; ++layer) {
      const line = make("div", { class: "layer" }, make("span", { class: "faint" }, String(layer)));
      for (let head = 0; head < map.heads && layer * map.heads + head < mostThumbnails; ++head) {
        const canvas = make("canvas", { width: 44, height: 44 });
        thumbnail(canvas, weightsOf(map, layer, head, shown.measure === "norms"), rows, columns);
        const here = shown.layer === layer && (shown.head === head || shown.head < 0) && shown.measure !== "rollout";
        line.append(
          make(
            "button",
            {
              type: "button",
              "aria-label": t("headName", layer, head),
              title: t("headName", layer, head),
              "aria-pressed": String(here),
              class: this.isMute(layer, head) ? "mute" : null,
              onclick: () => {
                const at = layer * map.heads + head;
                this.chooseHead(layer, head);
                void this.ready.then(() => this.heads.querySelectorAll("button")[at]?.focus());
              },
            },
            canvas,
          ),
        );
      }
      if (line.childElementCount > 1) made.push(line);
    }
    const left = map.layers * map.heads - mostThumbnails;
    this.heads.replaceChildren(...made, ...(left > 0 ? [make("p", { class: "faint" }, t("headsLeft", left))] : []));
  }

  fillTable() {
    const { plane } = this;
    if (!plane || !this.tableBox.open) return this.table.replaceChildren();
    const { rows, columns, values } = plane;
    if (rows.size > mostTableRows || columns.size > mostTableColumns)
      return this.table.replaceChildren(t("numbersLarge"));
    const cells = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => i);
    this.table.replaceChildren(
      make(
        "table",
        {},
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            make("td"),
            ...cells(columns.size).map((i) => make("th", { scope: "col" }, labelOf(columns, i))),
          ),
        ),
        make(
          "tbody",
          {},
          ...cells(rows.size).map((row) =>
            make(
              "tr",
              {},
              make("th", { scope: "row" }, labelOf(rows, row)),
              ...cells(columns.size).map((i) => make("td", {}, weight(values[row * columns.size + i]))),
            ),
          ),
        ),
      ),
    );
  }

  caption() {
    const { shown } = this;
    const number = (/** @type {number} */ which) => (which < 0 ? t("mean") : which);
    const place = `${t("layer")} ${number(shown.layer)}, ${t("head")} ${number(shown.head)}`;
    const parts = [shown.map, shown.measure === "rollout" ? t("rollout") : place];
    if (shown.measure === "norms") parts.push(t("norms"));
    if (this.minus) parts.push(t("difference"));
    return parts.join(", ");
  }
}

/** @param {HTMLCanvasElement} canvas @param {Float32Array} values @param {number} rows @param {number} columns */
function thumbnail(canvas, values, rows, columns) {
  const pen = canvas.getContext("2d"),
    high = Math.min(rows, 44),
    wide = Math.min(columns, 44);
  if (!pen || high * wide === 0) return;
  const pooled = new Float32Array(high * wide).fill(NaN);
  let most = 0,
    signed = false;
  for (let row = 0; row < rows; ++row) {
    const to = Math.floor((row * high) / rows) * wide;
    for (let column = 0; column < columns; ++column) {
      const value = values[row * columns + column],
        at = to + Math.floor((column * wide) / columns);
      if (!(Math.abs(value) <= Math.abs(pooled[at])) && value === value) pooled[at] = value;
      if (Math.abs(value) > most) most = Math.abs(value);
      if (value < 0) signed = true;
    }
  }
  const image = new ImageData(wide, high),
    pixels = new Uint32Array(image.data.buffer),
    { packed } = table(signed),
    none = packedMissing();
  pooled.forEach((value, i) => (pixels[i] = value === value ? packed[stepOf(value, most || 1, signed)] : none));
  const picture = make("canvas", { width: wide, height: high });
  picture.getContext("2d")?.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
}
