// @ts-check
// The tab where one types: translation and map at once, other translations, and what if.
import { placeOf } from "./derive.js";
import { delayed, fill, get, make } from "./dom.js";
import { Explorer } from "./explorer.js";
import { getJson, isAborted, post, ServerError, setKey } from "./server.js";
import { readTrace } from "./trace.js";
import { WhatIf } from "./whatif.js";
import { logProbability, onLanguage, t } from "./words.js";
/** @import {Item, Trace} from "./trace.js" */

/** @typedef {{name: string, source: string, target: string}} Model */
/** @typedef {"before" | "after" | "difference"} Side */

const pauseAfterTyping = 250; // milliseconds
/** @type {Record<string, string[]>} */
const examples = {
  zh: ["他每天早上六点起床。", "我不知道她为什么这么生气。"],
  en: ["I do not know why she is so angry.", "The old man is reading a book in the park."],
};

/** @param {string} text */
const hasHan = (text) => /\p{Script=Han}/u.test(text);
/** @param {Item} item */
const targetOf = (item) => item.axes.find((axis) => axis.name === "target")?.text ?? "";

export function startTranslate() {
  const text = /** @type {HTMLTextAreaElement} */ (get("text")),
    form = /** @type {HTMLFormElement} */ (get("ask"));
  const model = /** @type {HTMLSelectElement} */ (get("model")),
    count = /** @type {HTMLSelectElement} */ (get("alternatives"));
  const status = get("status"),
    translation = get("translation"),
    others = get("n-best");
  const keyField = /** @type {HTMLInputElement} */ (get("key"));
  const explorer = new Explorer(),
    whatIf = new WhatIf(explorer);
  /** @type {Model[]} */
  let models = [];
  /** @type {Trace | null} */
  let trace = null;
  /** @type {Trace | null} */
  let edited = null;
  let rank = 0,
    request = new AbortController(),
    editing = new AbortController(),
    said = () => {};
  /** What the translation that is shown was asked with. @type {{q: string, model?: string}} */
  let asked = { q: "" };
  /** @type {Side} */
  let side = "after";

  const sides = make("div", { class: "sides", role: "group", hidden: true });
  whatIf.result.after(sides);
  explorer.slot.append(whatIf.element);
  get("translate-view").append(explorer.element);

  /** @param {() => string} words kept, so that another language can say it again */
  const tell = (words, bad = false) => {
    said = () => (status.textContent = words());
    status.classList.toggle("bad", bad);
    said();
  };
  /** @param {unknown} error */
  const complain = (error) => {
    if (error instanceof ServerError && error.status === 403) {
      get("key-label").hidden = false;
      keyField.focus();
    }
    const words = error instanceof Error ? error.message : String(error);
    tell(() => words, true);
  };

  const show = (keep = false) => {
    if (!trace) return;
    const [before, after] = edited?.items ?? [];
    const item = before && after ? (side === "before" ? before : after) : trace.items[rank];
    translation.textContent = targetOf(item);
    listOthers();
    sides.hidden = !edited;
    sides.replaceChildren(
      .../** @type {Side[]} */ (["before", "after", "difference"]).map((each) =>
        make(
          "button",
          {
            type: "button",
            class: "toggle",
            "aria-pressed": String(each === side),
            onclick: () => {
              side = each;
              show(true);
              /** @type {HTMLElement | null} */ (sides.querySelector("[aria-pressed=true]"))?.focus();
            },
          },
          t(each),
        ),
      ),
    );
    void explorer.show(item, {
      minus: side === "difference" && before ? before : null,
      bytes: (edited ?? trace).bytes,
      keep,
    });
  };

  const listOthers = () => {
    const items = trace?.items ?? [];
    get("n-best-box").hidden = items.length < 2;
    others.replaceChildren(
      ...items.map((item, i) =>
        make(
          "li",
          {},
          make(
            "button",
            {
              type: "button",
              dir: "auto",
              "aria-pressed": String(!edited && i === rank),
              onclick: () => {
                rank = i;
                edited = null;
                whatIf.forget();
                show();
                /** @type {HTMLElement | null} */ (others.querySelectorAll("button")[i])?.focus();
              },
            },
            make("span", {}, targetOf(item) || "∅"),
            make("span", { class: "number" }, logProbability(item.logProbability)),
          ),
        ),
      ),
    );
  };

  async function translate() {
    typing.stop();
    const line = text.value.replace(/\s*[\r\n\u2028\u2029]+\s*/g, " ").trim();
    request.abort();
    if (!line) {
      editing.abort();
      trace = edited = null;
      form.removeAttribute("aria-busy");
      translation.textContent = "";
      explorer.element.hidden = get("n-best-box").hidden = true;
      whatIf.forget();
      return tell(() => t("nothing"));
    }
    const mine = (request = new AbortController()),
      since = performance.now();
    const question = { q: line, ...(model.value ? { model: model.value } : {}) };
    form.setAttribute("aria-busy", "true");
    const slow = setTimeout(() => tell(() => t("translating")), 150);
    try {
      const answer = await post(
        "/translate",
        { ...question, alternatives: Number(count.value), trace: true },
        mine.signal,
      );
      const made = readTrace(await answer.arrayBuffer());
      if (mine.signal.aborted) return;
      editing.abort();
      trace = made;
      asked = question;
      edited = null;
      rank = 0;
      side = "after";
      whatIf.forget();
      const spent = Math.round(performance.now() - since),
        from = answer.headers.get("X-Regard-Language");
      const used = models.find((each) => (model.value ? each.name === model.value : each.source === from)) ?? models[0];
      clearTimeout(slow);
      tell(() =>
        used
          ? t("translated", used.source, used.target, used.name, spent, logProbability(made.items[0].logProbability))
          : `${spent} ms`,
      );
      show();
    } catch (error) {
      if (isAborted(error)) return;
      clearTimeout(slow);
      complain(error);
    } finally {
      clearTimeout(slow);
      if (!mine.signal.aborted) form.removeAttribute("aria-busy");
    }
  }

  async function edit() {
    editing.abort();
    whatIf.element.removeAttribute("aria-busy");
    if (whatIf.changes.length === 0) {
      edited = null;
      whatIf.result.replaceChildren();
      return show(true);
    }
    const mine = (editing = new AbortController());
    whatIf.element.setAttribute("aria-busy", "true");
    try {
      const answer = await post("/edit", { ...asked, ...whatIf.body(), trace: true }, mine.signal);
      const made = readTrace(await answer.arrayBuffer());
      if (mine.signal.aborted) return;
      edited = made;
      if (side === "before") side = "after";
      whatIf.tell(made.items[0], made.items[1] ?? made.items[0]);
      show(true);
    } catch (error) {
      if (isAborted(error)) return;
      whatIf.complain(
        error instanceof ServerError && error.status === 404
          ? t("noEdit")
          : error instanceof Error
            ? error.message
            : String(error),
      );
    } finally {
      if (editing === mine) whatIf.element.removeAttribute("aria-busy");
    }
  }

  const typing = delayed(() => void translate(), pauseAfterTyping);
  text.addEventListener("input", (event) => {
    if (!(/** @type {InputEvent} */ (event).isComposing)) typing.later(); // not the letters of an unfinished word
  });
  text.addEventListener("compositionend", () => typing.later());
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    void translate();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void translate();
  });
  keyField.addEventListener("change", () => {
    setKey(keyField.value);
    void translate();
  });
  for (const select of [model, count]) select.addEventListener("change", () => void translate());

  whatIf.onchange = () => void edit();
  explorer.isMute = (layer, head) => whatIf.isMute(explorer.shown.map, layer, head);
  explorer.onchange = () => {
    whatIf.offer();
    const { plane, matrix } = explorer,
      isSource = plane?.columns.name === "source";
    const hidden = new Set(
      plane && isSource
        ? whatIf.changes.flatMap((each) =>
            each.kind === "hide" ? each.tokens.map((token) => placeOf(plane.columnTokens, token)) : [],
          )
        : [],
    );
    explorer.columns.cover((i) => hidden.has(i));
    matrix.ondraw =
      plane && isSource && plane.rows.name === "target" ? (row, column) => whatIf.pinAt(row, column) : null;
    matrix.marks = {
      hidden,
      pins:
        !plane || !matrix.ondraw || !edited
          ? []
          : whatIf.changes.flatMap((each) => {
              if (each.kind !== "pin") return [];
              const row = placeOf(plane.rowTokens, each.target),
                column = placeOf(plane.columnTokens, each.sources[0]);
              return row >= 0 && row < plane.rows.size && column >= 0 ? [{ row, column }] : [];
            }),
    };
    matrix.paint();
  };
  explorer.element.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target instanceof HTMLSelectElement) return;
    const actions = /** @type {Record<string, () => void>} */ ({
      p: () => whatIf.addPin(),
      b: () => whatIf.addHide(),
      m: () => whatIf.addMute(),
      z: () => whatIf.undo(whatIf.changes.length - 1),
    });
    const action = actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  });

  const offerExamples = () => {
    const sources = new Set(models.map((each) => each.source));
    const some = Object.entries(examples).flatMap(([source, lines]) => (sources.has(source) ? lines : []));
    get("examples").hidden = some.length === 0;
    get("examples-list").replaceChildren(
      ...some.map((line) =>
        make(
          "button",
          {
            type: "button",
            lang: hasHan(line) ? "zh" : "en",
            onclick: () => {
              text.value = line;
              void translate();
            },
          },
          line,
        ),
      ),
    );
  };

  onLanguage(() => {
    fill(model, [
      ["", t("modelAuto")],
      ...models.map(
        (each) => /** @type {[string, string]} */ ([each.name, `${each.source} → ${each.target} (${each.name})`]),
      ),
    ]);
    said();
    if (trace) show(true);
    if (edited && edited.items[1]) whatIf.tell(edited.items[0], edited.items[1]);
  });
  tell(() => t("nothing"));
  text.value ||= new URLSearchParams(location.search).get("q")?.slice(0, 2000) ?? ""; // a link to a sentence: /?q=…
  getJson("/models").then((found) => {
    models = /** @type {Model[]} */ (found);
    fill(model, [
      ["", t("modelAuto")],
      ...models.map(
        (each) => /** @type {[string, string]} */ ([each.name, `${each.source} → ${each.target} (${each.name})`]),
      ),
    ]);
    offerExamples();
    if (text.value.trim()) void translate();
  }, complain);
}
