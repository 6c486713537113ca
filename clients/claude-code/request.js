/** What `Gateway` needs of `fetch`, on node:http: loading `fetch` doubles the time of a hook. */

import { once } from "node:events";
import { json } from "node:stream/consumers";

/**
 * Send a request as `fetch` does, and follow no redirect.
 *
 * @param {string} url
 * @param {{ method: string, headers: Record<string, string>, body?: string, signal: AbortSignal }} options
 * @returns {Promise<import("./gateway.js").Answer>}
 */
export async function request(url, { body, ...options }) {
  const { request } = await (url.startsWith("https:") ? import("node:https") : import("node:http"));
  const sent = request(url, options).end(body);
  const [response] = await once(sent, "response");
  const { statusCode: status, statusMessage: statusText } = response;
  return { status, statusText, ok: status >= 200 && status < 300, json: () => json(response) };
}
