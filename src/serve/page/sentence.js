// @ts-check
// The tokens of an axis as a sentence: every token can be pointed at and walked to, and is shaded by a weight.
import { colorOf, css, readable } from "./colors.js";
import { make } from "./dom.js";
import { labelOf } from "./trace.js";
/** @import {Axis} from "./trace.js" */

const most = 600; // longer ones are shown by the matrix alone

export class Sentence {
  constructor() {
    this.name = make("h3", { class: "axis" });
    this.place = make("p", { class: "sentence", dir: "auto", role: "toolbar" });
    this.element = make("section", { class: "strip" }, this.name, this.place);
    /** @type {HTMLElement[]} */
    this.tokens = [];
    /** The colours they have. @type {string[]} */
    this.grounds = [];
    /** @type {number | null} */
    this.here = null;
    /** @type {(i: number | null) => void} */
    this.onpoint = () => {};
    /** @type {(i: number) => void} */
    this.onpick = () => {};
    this.place.addEventListener("pointerover", (event) => {
      const at = this.numberOf(event.target);
      if (at >= 0 && event.pointerType !== "touch") this.onpoint(at);
    });
    this.place.addEventListener("pointerleave", () => this.onpoint(null));
    this.place.addEventListener("click", (event) => {
      const at = this.numberOf(event.target);
      if (at >= 0) this.pick(at);
    });
    this.place.addEventListener("focusin", (event) => {
      const at = this.numberOf(event.target);
      if (at >= 0 && this.tokens[at].matches(":focus-visible")) this.onpick(at);
    });
    this.place.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {EventTarget | null} target */
  numberOf(target) {
    return target instanceof HTMLElement ? this.tokens.indexOf(target) : -1;
  }

  /** @param {string} name @param {Axis} axis */
  show(name, axis) {
    this.name.textContent = name;
    this.place.setAttribute("aria-label", name);
    this.element.hidden = axis.kind !== "tokens" || axis.size > most;
    this.place.replaceChildren();
    this.tokens = [];
    this.grounds = [];
    this.here = null;
    if (this.element.hidden) return;
    const bytes = new TextEncoder().encode(axis.text),
      decoder = new TextDecoder();
    let end = 0;
    axis.tokens.forEach((token, i) => {
      const real = token.begin < token.end;
      if (real && token.begin > end) this.place.append(decoder.decode(bytes.subarray(end, token.begin)));
      else if (!axis.text && i > 0) this.place.append(" ");
      const all = real ? decoder.decode(bytes.subarray(token.begin, token.end)) : labelOf(axis, i);
      const text = all.trimStart() || all || "∅"; // blanks before a word stay before it
      if (text.length < all.length) this.place.append(all.slice(0, all.length - text.length));
      const made = make(
        "span",
        { role: "button", tabindex: i === 0 ? "0" : "-1", class: real || !axis.text ? "token" : "token none" },
        text,
      );
      this.tokens.push(made);
      this.place.append(made);
      if (real) end = token.end;
    });
  }

  /** @param {number} at */
  pick(at) {
    this.rove(at);
    this.onpick(at);
  }
  /** @param {number} at */
  rove(at) {
    this.tokens.forEach((token, i) => (token.tabIndex = i === at ? 0 : -1));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = this.numberOf(event.target),
      last = this.tokens.length - 1;
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const forth = getComputedStyle(this.place).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const back = forth === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const to = /** @type {Record<string, number>} */ ({ [forth]: at + 1, [back]: at - 1, Home: 0, End: last })[
      event.key
    ];
    if (to !== undefined) {
      event.preventDefault();
      if (to < 0 || to > last) return;
      this.rove(to);
      this.tokens[to].focus();
      this.onpick(to);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.onpick(at);
    }
  }

  /** @param {number | null} here @param {((i: number) => number) | null} value null: no shades
   *  @param {number} greatest @param {boolean} signed */
  shade(here, value, greatest, signed) {
    this.tokens.forEach((token, i) => {
      const color = value ? colorOf(value(i), greatest, signed) : null,
        ground = color ? css(color) : "";
      if (this.grounds[i] !== ground) {
        // of many words few change: styles are dear
        this.grounds[i] = ground;
        token.style.backgroundColor = ground;
        token.style.color = color ? readable(color) : "";
      }
    });
    if (this.here !== here) {
      if (this.here !== null) this.tokens[this.here]?.classList.remove("here");
      if (here !== null) this.tokens[here]?.classList.add("here");
      this.here = here;
    }
  }

  /** @param {(i: number) => boolean} isHidden */
  cover(isHidden) {
    this.tokens.forEach((token, i) => token.classList.toggle("covered", isHidden(i)));
  }
}
