// @ts-check
// The page: tabs, colours, language.
import { setTheme } from "./colors.js";
import { get, recall, remember } from "./dom.js";
import { startFile } from "./file.js";
import { startLab } from "./lab.js";
import { startTranslate } from "./translate.js";
import { language, onLanguage, sayAll, setLanguage } from "./words.js";

const tabs = [...document.querySelectorAll("[role=tab]")].filter((each) => each instanceof HTMLElement);
/** @type {Set<(name: string) => void>} */
const opened = new Set();

/** @param {HTMLElement} tab */
function open(tab) {
  for (const each of tabs) {
    const here = each === tab;
    each.setAttribute("aria-selected", String(here));
    each.tabIndex = here ? 0 : -1;
    get(each.getAttribute("aria-controls") ?? "").hidden = !here;
  }
  const name = tab.id.replace("-tab", "");
  history.replaceState(null, "", `#${name}`);
  for (const each of opened) each(name);
}
tabs.forEach((tab, i) => {
  tab.addEventListener("click", () => open(tab));
  tab.addEventListener("keydown", (event) => {
    const to = /** @type {Record<string, number>} */ ({
      ArrowRight: i + 1,
      ArrowLeft: i - 1,
      Home: 0,
      End: tabs.length - 1,
    })[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    next.focus();
    open(next);
  });
});

const theme = /** @type {HTMLSelectElement} */ (get("theme"));
const languages = /** @type {HTMLSelectElement} */ (get("language"));
const putTheme = () => setTheme(theme.value === "light" || theme.value === "dark" ? theme.value : null);
theme.value = recall("theme") ?? "";
putTheme();
theme.addEventListener("change", () => {
  remember("theme", theme.value);
  putTheme();
});
languages.value = language();
languages.addEventListener("change", () => setLanguage(languages.value === "zh" ? "zh" : "en"));
onLanguage(sayAll);

startTranslate();
startFile(() => open(get("file-tab")));
opened.add(startLab());
const wanted = tabs.find((tab) => `#${tab.id.replace("-tab", "")}` === location.hash);
if (wanted) open(wanted);
