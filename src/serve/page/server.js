// @ts-check
// Questions to the server, and its errors in words.
import { t } from "./words.js";

/** What the server, or the way to it, had against a question. `status` 0: it was not reached. */
export class ServerError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let key = "";
/** @param {string} wanted */
export const setKey = (wanted) => (key = wanted);

/** @param {unknown} error */
export const isAborted = (error) => error instanceof DOMException && error.name === "AbortError";

const mostTries = 3;

/** @param {string} path @param {RequestInit} options @returns {Promise<Response>} */
async function ask(path, options) {
  for (let tries = 1; ; ++tries) {
    /** @type {Response} */
    let answer;
    try {
      answer = await fetch(path, options);
    } catch (error) {
      if (isAborted(error)) throw error;
      throw new ServerError(0, t("offline"));
    }
    if (answer.ok) return answer;
    const wait = Number(answer.headers.get("Retry-After"));
    if ((answer.status === 503 || answer.status === 429) && wait > 0 && wait <= 5 && tries < mostTries) {
      await new Promise((done) => setTimeout(done, wait * 1000));
      if (options.signal?.aborted) throw new DOMException("", "AbortError");
      continue;
    }
    const said = await answer.text();
    let why = "";
    try {
      why = String(JSON.parse(said).error ?? "");
    } catch {
      // no JSON: a proxy, perhaps
    }
    throw new ServerError(answer.status, why ? t("error", why) : t("errorStatus", answer.status, answer.statusText));
  }
}

/** @param {Response} answer @returns {Promise<unknown>} */
export async function jsonOf(answer) {
  try {
    return await answer.json();
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new ServerError(answer.status, t("noSense"));
  }
}

/** @param {string} path @returns {Promise<unknown>} */
export const getJson = async (path) => jsonOf(await ask(path, {}));

/** @param {string} path @param {unknown} body @param {AbortSignal} signal */
export function post(path, body, signal) {
  /** @type {Record<string, string>} */
  const headers = { "Content-Type": "application/json" };
  if (key) headers["Authorization"] = `Bearer ${key}`;
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}
