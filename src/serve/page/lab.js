// @ts-check
// The lab: any mechanism on a sentence or on numbers of one's own, in its three steps.
import { delayed, get, make } from "./dom.js";
import { Matrix } from "./matrix.js";
import { getJson, isAborted, jsonOf, post } from "./server.js";
import { language, onLanguage, t, weight } from "./words.js";
/** @import {Key} from "./words.js" */

/** @typedef {{name: string, family: string, formula: string, paper: string, usage: string,
 *    arguments: {key: string, required: boolean, values: string, meaning: string}[]}} Card */
/** @typedef {(number | null)[][]} Rows */
/** @typedef {{line: string, tokens?: string[], q: number[][], k: number[][], v: number[][], scores: Rows[],
 *    weights: Rows[], context: number[][], learned?: {name: string, shape: number[]}[]}} Answer */

const families = /** @type {const} */ (["score", "scope", "align", "read"]);
/** @type {Record<string, string>} */
const usual = { score: "scaled_dot", scope: "", align: "", read: "" };
/** Values of arguments that have none of their own; some names of the registry need a score within. */
const samples = /** @type {Record<string, string>} */ ({ length: "16", distance: "2", a: "4", b: "4" });
const mostSide = 12;

/** How a card is written with what it needs. @param {Card} card */
function termOf(card) {
  if (card.usage.includes("(score, score")) return `${card.name}(dot, scaled_dot)`;
  if (card.usage.includes("(score)")) return `${card.name}(scaled_dot)`;
  const needed = card.arguments.filter((each) => each.required).map((each) => samples[each.key] ?? "1");
  return needed.length ? `${card.name}:${needed.join(",")}` : card.name;
}

/** @param {Rows} rows */
const flat = (rows) => Float32Array.from(rows.flat(), (value) => value ?? NaN);
/** @param {number} value */
const short = (value) => Number(value.toFixed(3));

/** @returns {(name: string) => void} to be called when a tab is opened */
export function startLab() {
  const host = get("lab-view");
  /** @type {Card[]} */
  let cards = [];
  /** @type {Answer | null} */
  let answer = null;
  let head = 0,
    started = false,
    request = new AbortController();
  /** @type {{q: string[][], k: string[][], v: string[][]}} */
  const numbers = {
    q: [
      ["1", "0", "0.5"],
      ["0", "1", "-0.5"],
    ],
    k: [
      ["1", "0", "0"],
      ["0", "1", "0"],
      ["0.5", "0.5", "1"],
      ["-1", "0", "1"],
    ],
    v: [
      ["1", "0"],
      ["0", "1"],
      ["1", "1"],
      ["-1", "2"],
    ],
  };

  /** @type {(() => void)[]} what is said again in another language */
  const said = [];
  /** @param {Key} key @param {HTMLElement} element */
  const say = (key, element) => {
    said.push(() => (element.textContent = t(key)));
    return element;
  };
  /** @param {Key} key @param {HTMLElement} input @param {...HTMLElement} more */
  const field = (key, input, ...more) =>
    make("label", { class: input.className === "line" ? "wide" : null }, say(key, make("span")), input, ...more);

  const line = make("input", {
    type: "text",
    class: "line",
    value: "scaled_dot",
    spellcheck: "false",
    autocapitalize: "off",
    maxlength: "1024",
    oninput: () => soon.later(),
  });
  const picks = families.map(() => make("select", { onchange: () => compose() }));
  const about = make("div", { class: "cards" });
  const writtenOut = make("p", { class: "faint" }),
    status = make("p", { role: "status", class: "lab-status" });
  const kind = make(
    "select",
    {
      onchange: () => {
        arrange();
        soon.later();
      },
    },
    new Option("", "sentence"),
    new Option("", "numbers"),
  );
  const sentence = make("input", {
    type: "text",
    value: "the cat sat on the mat",
    class: "line",
    dir: "auto",
    oninput: () => soon.later(),
  });
  const width = make("input", { type: "number", min: "1", max: "64", value: "8", oninput: () => soon.later() });
  const seed = make("input", { type: "number", min: "0", max: "1000000", value: "1", oninput: () => soon.later() });
  const grids = make("div", { class: "grids" });
  const sentenceBox = make("div", { class: "controls" }, field("sentence", sentence), field("width", width));
  const take = make("button", { type: "button", onclick: () => takeNumbers() });
  const scale = slider("scale", 0.02, 8),
    temperature = slider("temperature", 0.05, 8);
  const headSelect = make("select", {
    onchange: () => {
      head = Number(headSelect.value);
      show();
    },
  });
  const headLabel = field("head", headSelect);
  headLabel.hidden = true;
  const told = make("p", { class: "value", "aria-live": "polite" });
  const list = make("div", { class: "mechanisms" });
  const steps = /** @type {const} */ (["stepScores", "stepWeights", "stepContext"]).map((key) => {
    const matrix = new Matrix({ label: "", cell: 50, height: 460 });
    said.push(() => matrix.element.setAttribute("aria-label", t(key)));
    return { key, matrix };
  });

  host.append(
    make(
      "div",
      { class: "lab-top" },
      make(
        "section",
        { class: "box" },
        say("mechanism", make("h2", { class: "label" })),
        make(
          "div",
          { class: "controls" },
          ...families.map((family, i) => {
            const label = field(family, picks[i]);
            said.push(() => (label.title = t(/** @type {Key} */ (`${family}Is`))));
            return label;
          }),
        ),
        make("div", { class: "controls" }, field("line", line)),
        writtenOut,
        about,
      ),
      make(
        "section",
        { class: "box" },
        say("input", make("h2", { class: "label" })),
        make("div", { class: "controls" }, field("input", kind), field("seed", seed), take),
        sentenceBox,
        grids,
        make("div", { class: "controls" }, scale.element, temperature.element, headLabel),
      ),
    ),
    status,
    told,
    make(
      "div",
      { class: "steps" },
      ...steps.map(({ key, matrix }) =>
        make(
          "section",
          {},
          say(key, make("h3")),
          say(/** @type {Key} */ (`${key}Is`), make("p", { class: "faint" })),
          matrix.element,
        ),
      ),
    ),
    make("details", { class: "box" }, say("allMechanisms", make("summary")), list),
  );

  /** @param {"scale" | "temperature"} key @param {number} least @param {number} most on a logarithmic slider */
  function slider(key, least, most) {
    const own = make("input", { type: "checkbox", checked: true }),
      shown = make("output", { class: "small" });
    const input = make("input", { type: "range", min: "0", max: "1000", value: "500", disabled: true });
    const value = () => Number((least * (most / least) ** (Number(input.value) / 1000)).toPrecision(3));
    input.value = String(Math.round((1000 * Math.log(1 / least)) / Math.log(most / least)));
    const put = () => {
      input.disabled = own.checked;
      shown.textContent = own.checked ? "" : String(value());
      input.setAttribute("aria-valuetext", String(value()));
    };
    for (const each of [own, input])
      each.addEventListener("input", () => {
        put();
        soon.later();
      });
    said.push(() => input.setAttribute("aria-label", t(key)));
    put();
    return {
      element: make(
        "div",
        { class: "slider", role: "group" },
        say(key, make("span", { class: "faint" })),
        input,
        shown,
        make("label", { class: "check" }, own, say("own", make("span"))),
      ),
      value: () => (own.checked ? undefined : value()),
    };
  }

  const soon = delayed(() => void attend(), 200);

  /** The line of what is picked. */
  function compose() {
    const terms = picks.map((pick) => pick.value).filter(Boolean);
    line.value = terms.join(" | ");
    describe();
    void attend();
  }

  /** Cards of the names in the line. */
  function describe() {
    const names = new Set(line.value.match(/[a-z_0-9]+/g) ?? []);
    const found = cards.filter((card) => names.has(card.name));
    about.replaceChildren(
      ...found.map((card) =>
        make(
          "div",
          { class: "card" },
          make("strong", {}, card.name),
          " ",
          make("span", { class: "faint" }, t(/** @type {Key} */ (card.family))),
          make("code", { class: "formula" }, card.formula),
          make("span", { class: "faint" }, [card.paper, `${t("usage")}: ${card.usage}`].filter(Boolean).join(" · ")),
        ),
      ),
    );
    for (const [i, family] of families.entries()) {
      const here = found.filter((card) => card.family === family).at(0);
      const option = here && [...picks[i].options].find((each) => each.dataset["name"] === here.name);
      picks[i].value = option ? option.value : "";
    }
  }

  function offer() {
    families.forEach((family, i) => {
      const before = picks[i].value;
      picks[i].replaceChildren(
        ...(family === "score" ? [] : [new Option(`(${t("usual")})`, "")]),
        ...cards
          .filter((card) => card.family === family)
          .map((card) => {
            const option = new Option(card.name, termOf(card));
            option.dataset["name"] = card.name;
            option.title = card.formula;
            return option;
          }),
      );
      picks[i].value = before || usual[family];
    });
    list.replaceChildren(
      ...families.map((family) =>
        make(
          "section",
          {},
          make("h3", {}, `${t(family)}: ${t(/** @type {Key} */ (`${family}Is`))}`),
          make(
            "table",
            {},
            make(
              "thead",
              {},
              make(
                "tr",
                {},
                .../** @type {Key[]} */ (["usage", "formula", "paper"]).map((key) =>
                  make("th", { scope: "col" }, t(key)),
                ),
                make("td"),
              ),
            ),
            make(
              "tbody",
              {},
              ...cards
                .filter((card) => card.family === family)
                .map((card) =>
                  make(
                    "tr",
                    {},
                    make("th", { scope: "row" }, make("code", {}, card.usage)),
                    make("td", { class: "text" }, card.formula),
                    make("td", { class: "text" }, card.paper),
                    make(
                      "td",
                      {},
                      make(
                        "button",
                        {
                          type: "button",
                          "aria-label": `${t("use")}: ${card.name}`,
                          onclick: () => {
                            const at = families.indexOf(family);
                            picks[at].value = termOf(card);
                            compose();
                            line.scrollIntoView({ block: "center" });
                            line.focus();
                          },
                        },
                        t("use"),
                      ),
                    ),
                  ),
                ),
            ),
          ),
        ),
      ),
    );
    describe();
  }

  function arrange() {
    const byNumbers = kind.value === "numbers";
    sentenceBox.hidden = byNumbers;
    take.hidden = byNumbers || !answer;
    grids.hidden = !byNumbers;
    if (byNumbers) paintGrids();
  }

  function takeNumbers() {
    if (!answer) return;
    for (const name of /** @type {const} */ (["q", "k", "v"])) {
      numbers[name] = answer[name]
        .slice(0, mostSide)
        .map((row) => row.slice(0, mostSide).map((value) => String(short(value))));
    }
    kind.value = "numbers";
    arrange();
    void attend();
  }

  function paintGrids() {
    const names = /** @type {const} */ ({ q: "queries", k: "keys", v: "values" });
    grids.replaceChildren(
      .../** @type {const} */ (["q", "k", "v"]).map((name) => {
        const rows = numbers[name],
          columns = rows[0]?.length ?? 0;
        const inputs = rows.map((row, i) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, String(i)),
            ...row.map((value, j) =>
              make(
                "td",
                {},
                make("input", {
                  type: "text",
                  inputmode: "decimal",
                  value,
                  "aria-label": `${t(names[name])} ${i}, ${j}`,
                  oninput: (/** @type {Event} */ event) => {
                    row[j] = /** @type {HTMLInputElement} */ (event.target).value;
                    soon.later();
                  },
                }),
              ),
            ),
          ),
        );
        /** @param {Key} key @param {() => void} work @param {boolean} able */
        const button = (key, work, able) =>
          make(
            "button",
            {
              type: "button",
              disabled: !able,
              onclick: () => {
                work();
                paintGrids();
                void attend();
              },
            },
            t(key),
          );
        // Queries and keys are equally wide; every key has a value.
        const together = (/** @type {"rows" | "columns"} */ what) =>
          what === "rows"
            ? name === "q"
              ? [numbers.q]
              : [numbers.k, numbers.v]
            : name === "v"
              ? [numbers.v]
              : [numbers.q, numbers.k];
        return make(
          "section",
          {},
          make("h3", {}, t(names[name])),
          make("table", { class: "edit" }, make("tbody", {}, ...inputs)),
          make(
            "div",
            { class: "tools" },
            button(
              "addRow",
              () => together("rows").forEach((all) => all.push((all[0] ?? ["0"]).map(() => "0"))),
              rows.length < mostSide,
            ),
            button("dropRow", () => together("rows").forEach((all) => all.pop()), rows.length > 1),
            button(
              "addColumn",
              () => together("columns").forEach((all) => all.forEach((row) => row.push("0"))),
              columns < mostSide,
            ),
            button(
              "dropColumn",
              () => together("columns").forEach((all) => all.forEach((row) => row.pop())),
              columns > 1,
            ),
          ),
        );
      }),
    );
  }

  /** @param {string[][]} rows @returns {number[][]} */
  function numbersOf(rows) {
    return rows.map((row) =>
      row.map((text) => {
        const value = Number(text.replace("−", "-"));
        if (!text.trim() || !Number.isFinite(value)) throw new Error(t("labBad", text || "∅"));
        return value;
      }),
    );
  }

  async function attend() {
    soon.stop();
    describe();
    request.abort();
    const mine = (request = new AbortController());
    try {
      const input =
        kind.value === "sentence"
          ? { sentence: sentence.value, width: Number(width.value) }
          : { q: numbersOf(numbers.q), k: numbersOf(numbers.k), v: numbersOf(numbers.v) };
      const body = {
        line: line.value,
        ...input,
        seed: Number(seed.value),
        scale: scale.value(),
        temperature: temperature.value(),
      };
      const made = /** @type {Answer} */ (await jsonOf(await post("/attend", body, mine.signal)));
      if (mine.signal.aborted) return;
      answer = made;
      status.textContent = "";
      status.classList.remove("bad");
      show();
    } catch (error) {
      if (isAborted(error)) return;
      status.textContent = error instanceof Error ? error.message : String(error);
      status.classList.add("bad");
    }
  }

  /** @param {"query" | "keyName"} key @param {number} i @param {number} count */
  const nameOf = (key, i, count) =>
    answer?.tokens && answer.tokens.length === count ? answer.tokens[i] : `${t(key)} ${i}`;

  function show() {
    if (!answer) return;
    const { scores, weights, context } = answer;
    head = Math.min(head, Math.max(scores.length, weights.length) - 1);
    headLabel.hidden = scores.length < 2;
    headSelect.replaceChildren(...scores.map((_, i) => new Option(String(i), String(i))));
    headSelect.value = String(head);
    writtenOut.textContent = [
      t("written_out", answer.line),
      answer.learned?.length
        ? t("learned", answer.learned.map((each) => `${each.name} [${each.shape.join(", ")}]`).join(", "))
        : "",
    ]
      .filter(Boolean)
      .join(" · ");
    take.hidden = kind.value === "numbers";
    const queries = weights[head]?.length ?? 0,
      keys = weights[head]?.[0]?.length ?? 0;
    const rowLabel = (/** @type {number} */ i) => nameOf("query", i, queries),
      columnLabel = (/** @type {number} */ i) => nameOf("keyName", i, keys);
    const sheets = [scores[head] ?? [], weights[head] ?? [], context];
    steps.forEach(({ matrix }, i) => {
      const rows = sheets[i],
        columns = rows[0]?.length ?? 0,
        values = flat(rows);
      matrix.show(
        {
          values,
          rows: rows.length,
          columns,
          rowLabel,
          columnLabel: i === 2 ? String : columnLabel,
          digits: 2,
          signed: i !== 1 && values.some((value) => value < 0),
        },
        true,
      );
    });
    point(selected.step, selected.row, selected.column);
  }

  /** @type {{step: number, row: number | null, column: number | null}} */
  let selected = { step: 1, row: null, column: null };

  /** A query is marked in all three; a key in the first two. @param {number} step @param {number | null} row
   *  @param {number | null} column */
  function point(step, row, column) {
    steps.forEach(({ matrix }, i) => {
      const { sheet } = matrix,
        fits = (/** @type {number | null} */ at, /** @type {number} */ count) =>
          at !== null && at < count ? at : null;
      if (sheet) matrix.point(fits(row, sheet.rows), (step === 2) === (i === 2) ? fits(column, sheet.columns) : null);
    });
    if (!answer || row === null || column === null) return void (told.textContent = t("pointHint"));
    const { scores, weights, context, v } = answer,
      keys = weights[head]?.[row]?.length ?? 0;
    if (step === 2) {
      const parts = (weights[head]?.[row] ?? [])
        .map((p, j) => ({ p: p ?? 0, value: v[j]?.[column] }))
        .filter((each) => each.p !== 0 && each.value !== undefined);
      const sum =
        parts
          .slice(0, 12)
          .map((each) => `${short(each.p)}·${short(each.value ?? 0)}`)
          .join(" + ") + (parts.length > 12 ? " + …" : "");
      told.textContent = t(
        "labContext",
        nameOf("query", row, context.length),
        column,
        weight(context[row]?.[column] ?? NaN),
        sum || "–",
      );
    } else {
      const score = scores[head]?.[row]?.[column],
        p = weights[head]?.[row]?.[column];
      told.textContent = t(
        "labTell",
        nameOf("query", row, weights[head]?.length ?? 0),
        nameOf("keyName", column, keys),
        score === null || score === undefined ? t("masked") : weight(score),
        weight(p ?? 0),
      );
    }
  }
  steps.forEach(({ matrix }, step) => {
    matrix.onpoint = (row, column) =>
      row === null && column === null ? point(selected.step, selected.row, selected.column) : point(step, row, column);
    matrix.onpick = (row, column) => {
      selected = { step, row, column };
      point(step, row, column);
    };
  });

  onLanguage(() => {
    for (const each of said) each();
    kind.options[0].text = t("inputSentence");
    kind.options[1].text = t("inputNumbers");
    take.textContent = t("editNumbers");
    line.placeholder = t("lineHint");
    if (cards.length) offer();
    if (kind.value === "numbers") paintGrids();
    if (answer) show();
    list.lang = language() === "zh" ? "zh-Hans" : "en";
  });
  arrange();

  return (name) => {
    if (name !== "lab" || started) return;
    started = true;
    getJson("/mechanisms").then(
      (found) => {
        cards = /** @type {Card[]} */ (found);
        offer();
        void attend();
      },
      (error) => {
        started = false;
        status.textContent = error instanceof Error ? error.message : String(error);
        status.classList.add("bad");
      },
    );
  };
}
