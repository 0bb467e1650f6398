// @ts-check
// Elements in one line. Text from others becomes text nodes, never markup.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [properties] `onclick` and the like are listeners, `class` and `aria-…` attributes
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "value") /** @type {HTMLInputElement} */ (/** @type {unknown} */ (made)).value = String(value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter(isChild));
  return made;
}

/** @param {Child} child @returns {child is Node | string} */
const isChild = (child) => child !== null && child !== undefined && child !== false;

/** An element that index.html promises. @param {string} id @returns {HTMLElement} */
export function get(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {HTMLSelectElement} select @param {[string, string][]} entries @param {string} [wanted] */
export function fill(select, entries, wanted) {
  const before = wanted ?? select.value;
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
  if (entries.some(([value]) => value === before)) select.value = before;
  select.disabled = entries.length < 2;
}

/** Waits until nothing more came for some time. @param {() => void} work @param {number} milliseconds */
export function delayed(work, milliseconds) {
  let timer = 0;
  return {
    later() {
      clearTimeout(timer);
      timer = window.setTimeout(work, milliseconds);
    },
    stop: () => clearTimeout(timer),
  };
}

/** Other people's computers may forbid to remember. @param {string} key @returns {string | null} */
export function recall(key) {
  try {
    return localStorage.getItem(`regard.${key}`);
  } catch {
    return null;
  }
}
/** @param {string} key @param {string} value */
export function remember(key, value) {
  try {
    localStorage.setItem(`regard.${key}`, value);
  } catch {
    // then not
  }
}
