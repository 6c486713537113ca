/** Sends calls, again where that is safe, and pages through lists. */

import { InvalidAnswer, NoAnswer, Problem, problemOf } from "./errors.js";

/**
 * @typedef {{ attempts: number, longestWait: number }} Retries how often a call is sent at most, and the longest wait
 *   between two attempts in seconds: an answer whose `Retry-After` is longer is thrown at once
 * @typedef {{
 *   query?: Record<string, unknown>, body?: object, form?: FormData, headers?: Record<string, string | undefined>,
 *   isIdempotent?: boolean, isKeyed?: boolean
 * }} Request `isIdempotent`: carrying it out twice has the effect of once, as is usual for all but POST and PATCH.
 *   `isKeyed`: it gets an `Idempotency-Key`, by which the gateway carries it out once
 * @typedef {{
 *   baseUrl: string, apiKey?: string, timeoutMs: number, retries: Retries, fetch: typeof fetch,
 *   sleep: (seconds: number) => Promise<void>
 * }} Settings
 */

const OUTCOME_UNKNOWN = "upstream_outcome_unknown";
/** Codes of Node for connections that could not be made. Browsers do not tell. */
const NEVER_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];

export class Transport {
  #settings;

  /** @param {Settings} settings */
  constructor(settings) {
    this.#settings = settings;
  }

  /**
   * Return the JSON of the answer and its headers.
   *
   * @param {string} method
   * @param {string} path
   * @param {Request} [request]
   * @returns {Promise<{ document: any, headers: Headers }>}
   */
  async json(method, path, request = {}) {
    const { response, text } = await this.#send(method, path, request, false);
    try {
      return { document: JSON.parse(text), headers: response.headers };
    } catch (cause) {
      throw new InvalidAnswer(`${response.url} did not answer as a Memory Gateway does.`, { cause });
    }
  }

  /**
   * Yield the answer's bytes as they come.
   *
   * @param {string} path
   * @returns {AsyncGenerator<Uint8Array, void, undefined>}
   */
  async *stream(path) {
    const { response } = await this.#send("GET", path, {}, true);
    const reader = response.body?.getReader();
    if (!reader) return;
    let isDone = false;
    try {
      while (true) {
        const { done, value } = await reader.read();
        isDone = done;
        if (done) return;
        yield value;
      }
    } catch (cause) {
      throw noAnswer(cause);
    } finally {
      if (!isDone) await reader.cancel().catch(() => {}); // the connection may have broken
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Request} request
   * @param {boolean} isStream leaves the body to the caller
   */
  async #send(method, path, request, isStream) {
    const { baseUrl, apiKey, retries, sleep } = this.#settings;
    const { query = {}, body, form, isKeyed = false } = request;
    const url = new URL(baseUrl + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, `${value}`);
    const headers = present({
      Accept: "application/json, application/problem+json",
      Authorization: apiKey && `Bearer ${apiKey}`,
      "Content-Type": body && "application/json",
      "Idempotency-Key": isKeyed ? newKey() : undefined,
      ...request.headers,
    });
    /** @type {RequestInit} */
    const init = { method, headers, body: form ?? (body && JSON.stringify(body)), redirect: "manual" };
    if (form) Object.assign(init, { redirect: "error", window: null }); // otherwise Node keeps a copy of the whole file
    const isIdempotent = isKeyed || (request.isIdempotent ?? !["POST", "PATCH"].includes(method));
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(url, init, isStream);
      if (!(outcome instanceof Error)) return outcome;
      const seconds = waitOf(outcome, isIdempotent, attempt, retries);
      if (seconds === undefined) throw outcome;
      await sleep(seconds);
    }
  }

  /**
   * @param {URL} url
   * @param {RequestInit} init
   * @param {boolean} isStream
   * @returns {Promise<{ response: Response, text: string } | NoAnswer | Problem>}
   */
  async #attempt(url, init, isStream) {
    const { timeoutMs, fetch } = this.#settings;
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    try {
      const response = await fetch(url, { ...init, signal: controller.signal });
      if (response.ok && isStream) return { response, text: "" };
      const text = await response.text();
      return response.ok ? { response, text } : problemOf(response, text);
    } catch (cause) {
      return noAnswer(cause);
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Yield the items of all pages, asking for each page when it is needed.
 *
 * @param {(following: Record<string, unknown>) => Promise<any>} ask returns the page for more query parameters
 * @param {string} key of the items in a page
 * @param {(page: any) => Record<string, unknown> | undefined} [followingOf] the parameters of the next page
 * @returns {AsyncGenerator<any, void, undefined>}
 */
export async function* pages(ask, key, followingOf = byCursor) {
  /** @type {Record<string, unknown> | undefined} */
  let following = {};
  while (following) {
    const page = await ask(following);
    if (!Array.isArray(page[key])) throw new InvalidAnswer("The list is not one of a Memory Gateway.");
    yield* page[key];
    following = followingOf(page);
  }
}

/** @param {{ next_cursor?: string | null }} page */
function byCursor({ next_cursor: cursor }) {
  return cursor ? { cursor } : undefined;
}

/**
 * Return the fields that have a value.
 *
 * @param {Record<string, string | undefined>} fields
 * @returns {Record<string, string>}
 */
function present(fields) {
  return Object.fromEntries(Object.entries(fields).flatMap(([name, value]) => (value ? [[name, value]] : [])));
}

/** Return 128 random bits. `crypto.randomUUID` is missing on pages of plain HTTP. */
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {unknown} cause */
function noAnswer(cause) {
  const { message, cause: inner } = /** @type {Error} */ (cause);
  const reason = inner instanceof Error ? inner.message || inner.name : message;
  return new NoAnswer(`The gateway did not answer: ${reason.replace(/\.$/, "")}.`, { cause });
}

/**
 * Return the seconds to wait before a call is sent again; undefined if it must not be.
 *
 * A call that is not idempotent is repeated only if it was not carried out: there was no connection, or the gateway
 * says so. A 409 with `Retry-After` says that an earlier attempt still runs.
 *
 * @param {NoAnswer | Problem} error
 * @param {boolean} isIdempotent
 * @param {number} attempt
 * @param {Retries} retries
 */
function waitOf(error, isIdempotent, attempt, { attempts, longestWait }) {
  if (attempt >= attempts) return undefined;
  const backoff = Math.min(2 ** (attempt - 2) * (0.5 + Math.random() / 2), longestWait);
  if (error instanceof NoAnswer) return isIdempotent || wasNeverSent(error) ? backoff : undefined;
  const { status, retryAfter } = error;
  const isRunning = status === 409 && isIdempotent && retryAfter !== undefined;
  if (![429, 503].includes(status) && !isRunning) return undefined;
  const isSafe = isIdempotent || wasRefused(error);
  return isSafe && (retryAfter ?? 0) <= longestWait ? (retryAfter ?? backoff) : undefined;
}

/** @param {NoAnswer} error */
function wasNeverSent({ cause }) {
  const { cause: inner } = /** @type {{ cause?: { code?: string } }} */ (cause);
  return NEVER_SENT.includes(inner?.code ?? "");
}

/**
 * Return true if the gateway did nothing. A 503 of a proxy, or without `Retry-After`, does not say so.
 *
 * @param {Problem} problem
 */
function wasRefused({ status, code, retryAfter }) {
  return status === 429 || (code !== "" && code !== OUTCOME_UNKNOWN && retryAfter !== undefined);
}
