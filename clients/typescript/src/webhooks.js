/** Verify webhooks of a gateway by the Standard Webhooks specification. */

import { InvalidWebhook } from "./errors.js";

/** The largest difference between the clocks of gateway and receiver: later messages may be repeated by an attacker. */
const TOLERANCE_SECONDS = 300;

/**
 * @typedef {{ id: string, type: string, timestamp: string, sequence: number, data: Record<string, any> }} WebhookEvent
 *   `id` is the same for every try; `sequence` numbers the events of one webhook from 1
 */

/**
 * Return the event of a request with a valid signature.
 *
 * @param {string} secret
 * @param {Headers | Record<string, string | string[] | undefined>} headers
 * @param {string | Uint8Array<ArrayBuffer>} body as it was received
 * @param {{ now?: number }} [options] `now` is in Unix seconds, by default the present time
 * @returns {Promise<WebhookEvent>}
 * @throws {InvalidWebhook}
 */
export async function verifyWebhook(secret, headers, body, { now = Date.now() / 1000 } = {}) {
  const given = new Headers();
  const fields = headers instanceof Headers ? headers.entries() : Object.entries(headers);
  for (const [name, value] of fields) if (name.toLowerCase().startsWith("webhook-")) given.set(name, `${value ?? ""}`);
  const id = given.get("webhook-id");
  const timestamp = given.get("webhook-timestamp") ?? "";
  if (!id || !/^\d+$/.test(timestamp)) {
    throw new InvalidWebhook("The headers webhook-id and webhook-timestamp are missing or invalid.");
  }
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) {
    throw new InvalidWebhook("The timestamp differs from the present time by more than five minutes.");
  }
  const key = await crypto.subtle.importKey("raw", keyOf(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const message = await new Blob([`${id}.${timestamp}.`, body]).arrayBuffer();
  for (const one of (given.get("webhook-signature") ?? "").split(" ")) {
    const signature = one.startsWith("v1,") ? decoded(one.slice(3)) : undefined;
    if (signature && (await crypto.subtle.verify("HMAC", key, signature, message))) return eventOf(id, body);
  }
  throw new InvalidWebhook("No signature matches the secret.");
}

/** @param {string} secret */
function keyOf(secret) {
  const key = decoded(secret.replace(/^whsec_/, ""));
  if (!key) throw new TypeError("The secret must read whsec_ and base64.");
  return key;
}

/** @param {string} base64 */
function decoded(base64) {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/**
 * @param {string} id
 * @param {string | Uint8Array} body
 * @returns {WebhookEvent}
 */
function eventOf(id, body) {
  let event;
  try {
    event = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
  } catch (cause) {
    throw new InvalidWebhook("The body is not JSON.", { cause });
  }
  const { type, timestamp, sequence, data } = event ?? {};
  if (typeof type !== "string" || typeof timestamp !== "string" || !Number.isInteger(sequence) || !data) {
    throw new InvalidWebhook("The body is not an event of Memory Gateway.");
  }
  return { id, type, timestamp, sequence, data };
}
