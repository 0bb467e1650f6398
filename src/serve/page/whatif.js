// @ts-check
// What if: heads that are mute, source words that nobody sees, target words that look where we say. A list of changes,
// each of which can be undone, and what the server makes of them.
import { tokensAt } from "./derive.js";
import { make } from "./dom.js";
import { labelOf } from "./trace.js";
import { change, logProbability, onLanguage, t } from "./words.js";
/** @import {Explorer} from "./explorer.js" */
/** @import {Item} from "./trace.js" */

/** @typedef {{kind: "mute", map: string, layer: number, head: number}} Mute */
/** @typedef {{kind: "hide", tokens: number[], text: string}} Hide */
/** @typedef {{kind: "pin", target: number, sources: number[], columns: number, prefix: string[], from: string,
 *    to: string}} Pin */
/** @typedef {Mute | Hide | Pin} Change */

export class WhatIf {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    /** @type {Change[]} */
    this.changes = [];
    /** Something was changed: ask the server. */
    this.onchange = () => {};
    const button = (/** @type {() => void} */ onclick) => make("button", { type: "button", class: "toggle", onclick });
    this.mute = button(() => this.addMute());
    this.hide = button(() => this.addHide());
    this.pin = button(() => this.addPin());
    this.reset = button(() => this.clear());
    this.title = make("h3");
    this.hint = make("p", { class: "faint" });
    this.help = make("p", { class: "faint" });
    this.list = make("ul", { class: "changes" });
    this.result = make("div", { class: "result", role: "status", "aria-live": "polite" });
    this.element = make(
      "section",
      { class: "box what-if" },
      this.title,
      this.hint,
      make("div", { class: "actions" }, this.mute, this.hide, this.pin),
      this.list,
      this.reset,
      this.result,
      this.help,
    );
    onLanguage(() => this.say());
  }

  say() {
    this.title.textContent = t("whatIf");
    this.hint.textContent = t("whatIfHint");
    this.help.textContent = t("pinHelp");
    this.reset.textContent = t("reset");
    this.offer();
  }

  /** What is selected decides what can be done. */
  target() {
    const { plane, shown, selected, item } = this.explorer;
    const map = item?.maps.find((each) => each.name === shown.map);
    const isSource = plane?.columns.name === "source",
      isCross = isSource && plane?.rows.name === "target";
    return {
      mute:
        map &&
        ["cross", "encoder", "decoder"].includes(shown.map) &&
        shown.layer >= 0 &&
        shown.head >= 0 &&
        shown.measure !== "rollout"
          ? { map: shown.map, layer: shown.layer, head: shown.head }
          : null,
      hide:
        plane && isSource && selected.column !== null
          ? { tokens: tokensAt(plane.columnTokens, selected.column), text: labelOf(plane.columns, selected.column) }
          : null,
      pin:
        plane && isCross && selected.row !== null && selected.column !== null
          ? { row: selected.row, column: selected.column }
          : null,
    };
  }

  offer() {
    const { mute, hide, pin } = this.target(),
      { plane } = this.explorer;
    /** @param {HTMLButtonElement} button @param {boolean} done @param {string | null} text @param {string} none */
    const put = (button, done, text, none) => {
      button.textContent = text ?? none;
      button.disabled = text === null;
      button.setAttribute("aria-pressed", String(done));
    };
    put(
      this.mute,
      !!mute && this.isMute(mute.map, mute.layer, mute.head),
      mute && t("mute", mute.layer, mute.head),
      t("muteNone"),
    );
    put(
      this.hide,
      !!hide && hide.tokens.every((token) => this.isHidden(token)),
      hide && t("hide", hide.text),
      t("hideNone"),
    );
    put(
      this.pin,
      false,
      pin && plane && t("pin", labelOf(plane.rows, pin.row), labelOf(plane.columns, pin.column)),
      t("pinNone"),
    );
    this.reset.hidden = this.changes.length === 0;
    this.list.replaceChildren(
      ...this.changes.map((each, i) =>
        make(
          "li",
          {},
          make("span", {}, wordsOf(each)),
          make(
            "button",
            {
              type: "button",
              title: t("undo"),
              "aria-label": `${t("undo")}: ${wordsOf(each)}`,
              onclick: () => this.undo(i),
            },
            "✕",
          ),
        ),
      ),
    );
  }

  addMute() {
    const found = this.target().mute;
    if (!found) return;
    const at = this.changes.findIndex(
      (each) =>
        each.kind === "mute" && each.map === found.map && each.layer === found.layer && each.head === found.head,
    );
    if (at >= 0) this.undo(at);
    else this.add({ kind: "mute", ...found });
  }
  addHide() {
    const found = this.target().hide;
    if (!found) return;
    const at = this.changes.findIndex((each) => each.kind === "hide" && each.tokens.join() === found.tokens.join());
    if (at >= 0) this.undo(at);
    else this.add({ kind: "hide", ...found });
  }
  addPin() {
    const found = this.target().pin;
    if (found) this.pinAt(found.row, found.column);
  }
  /** @param {number} row @param {number} column */
  pinAt(row, column) {
    const { plane, item } = this.explorer,
      axis = item?.axes.find((each) => each.name === "target");
    const source = item?.axes.find((each) => each.name === "source");
    if (!plane || !axis || !source) return;
    const target = tokensAt(plane.rowTokens, row)[0];
    this.changes = this.changes.filter((each) => each.kind !== "pin" || each.target !== target);
    this.add({
      kind: "pin",
      target,
      sources: tokensAt(plane.columnTokens, column),
      columns: source.size,
      prefix: axis.tokens.slice(0, target).map((token) => token.text),
      from: labelOf(plane.rows, row),
      to: labelOf(plane.columns, column),
    });
  }

  /** @param {Change} made */
  add(made) {
    this.changes.push(made);
    this.offer();
    this.onchange();
  }
  /** @param {number} i */
  undo(i) {
    if (i < 0) return;
    this.changes.splice(i, 1);
    this.offer();
    this.onchange();
  }
  clear() {
    if (this.changes.length === 0) return;
    this.changes = [];
    this.offer();
    this.onchange();
  }
  /** Without asking anybody: the text is another one. */
  forget() {
    this.changes = [];
    this.result.replaceChildren();
    this.offer();
  }

  /** As POST /edit wants them. */
  body() {
    const pins = this.changes.filter((each) => each.kind === "pin"),
      last = pins[pins.length - 1];
    return {
      mute: this.changes.filter((each) => each.kind === "mute").map(({ map, layer, head }) => ({ map, layer, head })),
      hide: [...new Set(this.changes.flatMap((each) => (each.kind === "hide" ? each.tokens : [])))].sort(
        (a, b) => a - b,
      ),
      pin: pins.map(({ target, sources, columns }) =>
        sources.length === 1
          ? { target, source: sources[0] }
          : {
              target,
              weights: Array.from({ length: columns }, (_, i) => (sources.includes(i) ? 1 / sources.length : 0)),
            },
      ),
      ...(last && last.prefix.length > 0 ? { prefix: last.prefix } : {}),
    };
  }

  /** @param {number} token of the source */
  isHidden(token) {
    return this.changes.some((each) => each.kind === "hide" && each.tokens.includes(token));
  }
  /** @param {string} map @param {number} layer @param {number} head */
  isMute(map, layer, head) {
    return this.changes.some(
      (each) => each.kind === "mute" && each.map === map && each.layer === layer && each.head === head,
    );
  }

  /** @param {Item} before @param {Item} after */
  tell(before, after) {
    const texts = [before, after].map((item) => item.axes.find((axis) => axis.name === "target")?.text ?? "");
    const fall = (after.logProbability ?? 0) - (before.logProbability ?? 0);
    this.result.replaceChildren(
      make("p", {}, make("strong", {}, t(texts[0] === texts[1] ? "sameText" : "otherText"))),
      make("p", { class: "texts", dir: "auto" }, ...compared(texts[0], texts[1])),
      make(
        "p",
        { class: "score" },
        t("scoreChange", logProbability(before.logProbability), logProbability(after.logProbability), change(fall)),
      ),
    );
  }
  /** @param {string} text */
  complain(text) {
    this.result.replaceChildren(make("p", { class: "bad" }, text));
  }
}

/** @param {Change} each */
function wordsOf(each) {
  if (each.kind === "mute") return t("changeMute", each.map, each.layer, each.head);
  return each.kind === "hide" ? t("changeHide", each.text) : t("changePin", each.from, each.to);
}

/** What went and what came, by words (Chinese: by letters). @param {string} a @param {string} b @returns {Node[]} */
export function compared(a, b) {
  const cut = (/** @type {string} */ text) =>
    (text.match(/[\p{Script=Han}]|[^\s\p{Script=Han}]+|\s+/gu) ?? []).slice(0, 1000);
  const from = cut(a),
    to = cut(b),
    wide = to.length + 1,
    common = new Uint16Array((from.length + 1) * wide);
  for (let i = from.length - 1; i >= 0; --i) {
    for (let j = to.length - 1; j >= 0; --j) {
      common[i * wide + j] =
        from[i] === to[j]
          ? common[(i + 1) * wide + j + 1] + 1
          : Math.max(common[(i + 1) * wide + j], common[i * wide + j + 1]);
    }
  }
  /** @type {{tag: "span" | "del" | "ins", text: string}[]} */
  const parts = [];
  const put = (/** @type {"span" | "del" | "ins"} */ tag, /** @type {string} */ text) => {
    const last = parts[parts.length - 1];
    if (last?.tag === tag) last.text += text;
    else parts.push({ tag, text });
  };
  for (let i = 0, j = 0; i < from.length || j < to.length;) {
    if (i < from.length && j < to.length && from[i] === to[j]) {
      put("span", from[i++]);
      ++j;
    } else if (i < from.length && (j === to.length || common[(i + 1) * wide + j] >= common[i * wide + j + 1])) {
      put("del", from[i++]);
    } else {
      put("ins", to[j++]);
    }
  }
  return parts.map(({ tag, text }) => make(tag, {}, text));
}
