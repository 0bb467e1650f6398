// @ts-check
// The tab of trace files: one that was dropped on the page or chosen, item by item.
import { fill, get } from "./dom.js";
import { Explorer } from "./explorer.js";
import { readTrace, TraceError } from "./trace.js";
import { onLanguage, t } from "./words.js";
/** @import {Trace} from "./trace.js" */

/** @param {() => void} open shows this tab */
export function startFile(open) {
  const explorer = new Explorer(),
    input = /** @type {HTMLInputElement} */ (get("file-input"));
  const choose = /** @type {HTMLSelectElement} */ (get("item")),
    status = get("file-status"),
    about = get("file-about");
  /** @type {Trace | null} */
  let trace = null;
  let said = () => {};
  get("file-view").append(explorer.element);

  /** @param {() => string} words @param {boolean} bad */
  const tell = (words, bad) => {
    said = () => (status.textContent = words());
    status.classList.toggle("bad", bad);
    said();
  };
  const show = () => {
    const item = trace?.items[Number(choose.value)];
    if (!trace || !item) return;
    const { erasure } = item;
    about.textContent = [
      item.title,
      item.logProbability === null ? "" : t("logProbability", item.logProbability.toFixed(2)),
      erasure ? t("erasure", erasure.words, erasure.most.toFixed(2), erasure.random.toFixed(2)) : "",
    ]
      .filter(Boolean)
      .join(" · ");
    void explorer.show(item, { bytes: trace.bytes });
  };
  const names = () =>
    fill(
      choose,
      (trace?.items ?? [])
        .slice(0, 10000)
        .map((item, i) => [String(i), `${i + 1}${item.title ? `: ${item.title.slice(0, 60)}` : ""}`]),
    );

  /** @param {File} file */
  async function read(file) {
    open();
    try {
      if (file.size > 2 ** 30) throw new TraceError("more than 1 GiB; regard view shows larger ones");
      trace = readTrace(await file.arrayBuffer());
      const { length } = trace.items;
      tell(() => t("shownFile", file.name, length), false);
      choose.value = "0";
      names();
      get("item-label").hidden = length < 2;
      explorer.aligned = true;
      show();
    } catch (error) {
      trace = null;
      explorer.element.hidden = get("item-label").hidden = true;
      about.textContent = "";
      const why = error instanceof TraceError ? error.message : error instanceof Error ? error.message : String(error);
      tell(() => t("badFile", why.length > 300 ? `${why.slice(0, 300)}…` : why), true);
    }
  }

  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file) void read(file);
    input.value = "";
  });
  choose.addEventListener("change", show);
  document.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    void read(file);
  });
  onLanguage(() => {
    said();
    if (trace) show();
  });
}
