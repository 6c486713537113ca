import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { InvalidWebhook, verifyWebhook } from "../src/index.js";

// The vector that Standard Webhooks publishes.
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NOW = 1614265330;
const VECTOR = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": `${NOW}`,
  "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};
const BODY = JSON.stringify({
  type: "memory.deleted",
  timestamp: "2026-06-10T10:00:00+00:00",
  sequence: 7,
  data: { user_id: "u_123", memory_ids: ["m1"] },
});

function signed({ secret = SECRET, at = NOW, body = BODY } = {}) {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`msg_1.${at}.${body}`).digest("base64");
  return { "Webhook-Id": "msg_1", "webhook-timestamp": `${at}`, "webhook-signature": `v1,AAAA v1,${signature}` };
}

test("the published vector", async () => {
  // so the signature matched
  await assert.rejects(verifyWebhook(SECRET, VECTOR, '{"test": 2432232314}', { now: NOW }), /not an event/);
});

test("an event of the gateway", async () => {
  const event = await verifyWebhook(SECRET, signed(), BODY, { now: NOW });
  assert.deepEqual([event.id, event.type, event.sequence, event.data.memory_ids], ["msg_1", "memory.deleted", 7, ["m1"]]);
  const now = Math.floor(Date.now() / 1000);
  const bytes = new TextEncoder().encode(BODY);
  assert.equal((await verifyWebhook(SECRET, new Headers(signed({ at: now })), bytes)).id, "msg_1");
});

test("five minutes are tolerated, and no more", async () => {
  for (const seconds of [-300, 300]) await verifyWebhook(SECRET, signed({ at: NOW + seconds }), BODY, { now: NOW });
  for (const seconds of [-301, 301]) {
    await assert.rejects(verifyWebhook(SECRET, signed({ at: NOW + seconds }), BODY, { now: NOW }), /five minutes/);
  }
});

test("changed messages are refused", async () => {
  const other = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
  for (const headers of [
    { ...signed(), "Webhook-Id": "msg_2" },
    { ...signed(), "Webhook-Id": "" },
    { ...signed(), "webhook-timestamp": `${NOW + 1}` },
    { ...signed(), "webhook-timestamp": "soon" },
    { ...signed(), "webhook-signature": "" },
    { ...signed(), "webhook-signature": "v1,%" },
    { ...signed(), "webhook-signature": signed()["webhook-signature"].replaceAll("v1,", "v1a,") },
    signed({ secret: other }),
  ]) {
    await assert.rejects(verifyWebhook(SECRET, headers, BODY, { now: NOW }), InvalidWebhook);
  }
  await assert.rejects(verifyWebhook(SECRET, signed(), `${BODY} `, { now: NOW }), /No signature/);
});

test("a signed body that is no event is refused", async () => {
  for (const body of ["no JSON", "[]", "{}", "null"]) {
    await assert.rejects(verifyWebhook(SECRET, signed({ body }), body, { now: NOW }), InvalidWebhook);
  }
});

test("a secret in another form is an error of the caller", async () => {
  await assert.rejects(verifyWebhook("whsec_é", signed(), BODY, { now: NOW }), TypeError);
});
