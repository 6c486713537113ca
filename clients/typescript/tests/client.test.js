import assert from "node:assert/strict";
import { openAsBlob } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { test } from "node:test";

import { Client, InvalidAnswer, InvalidInput, NoAnswer, Problem, TooManyRequests, Unavailable } from "../src/index.js";

/** @typedef {{ status?: number, code?: string, retryAfter?: number, body?: string, isBroken?: boolean, location?: string }} Answer */

const FOUND = { body: '{"results": [], "meta": {}}' };
const ADDED = { body: '{"session_id": "s"}' };
const NEW_KEY = { body: '{"user_key": "uk_2"}' };
const BUSY = { status: 503, code: "database_unavailable", retryAfter: 1 };
const LIMITED = { status: 429, code: "too_many_requests", retryAfter: 7 };
const UNCONFIRMED = { status: 503, code: "upstream_outcome_unknown", retryAfter: 30 };
const DAMAGED = { status: 503, code: "database_damaged" };
const PROXY = { status: 503, body: "<html>", retryAfter: 1 };
const BROKEN = { isBroken: true };
/** @type {[{ sender_id: string, role: "user", content: string }]} */
const MESSAGES = [{ sender_id: "ann", role: "user", content: "Hi" }];

/**
 * Return a client of a gateway that gives the answers in turn and the last one for ever, what it was asked, and the
 * seconds that the client slept.
 *
 * @param {import("node:test").TestContext} t
 * @param {Answer[]} answers
 * @param {import("../src/client.js").ClientOptions} [options]
 */
async function gatewayWith(t, answers, options) {
  /** @type {{ method: string | undefined, url: string | undefined, headers: import("node:http").IncomingHttpHeaders, bytes: number, body: string }[]} */
  const asked = [];
  const server = createServer(async (request, response) => {
    let bytes = 0;
    let body = "";
    for await (const chunk of request) {
      bytes += chunk.length;
      if (body.length < 10_000) body += chunk;
    }
    asked.push({ method: request.method, url: request.url, headers: request.headers, bytes, body });
    const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? {};
    const { status = 200, code, retryAfter, isBroken, location } = answer;
    if (isBroken) return response.destroy();
    response.setHeader("X-Request-ID", "req_1");
    if (retryAfter !== undefined) response.setHeader("Retry-After", retryAfter);
    if (location) response.setHeader("Location", location);
    const errors = code === "invalid_input" ? [{ field: "top_k", message: "Too large." }] : [];
    const document = { title: code, status, detail: `Because of ${code}.`, code, errors };
    response.writeHead(status).end(answer.body ?? JSON.stringify(document));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  t.after(() => server.close().closeAllConnections());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  /** @type {number[]} */
  const slept = [];
  const sleep = async (/** @type {number} */ seconds) => void slept.push(seconds);
  return { client: new Client(`http://127.0.0.1:${port}/prefix/`, "uk_1", { sleep, ...options }), asked, slept };
}

for (const [name, refused, wait] of /** @type {[string, Answer, number][]} */ ([
  ["busy", BUSY, 1],
  ["limited", LIMITED, 7],
  ["unconfirmed", UNCONFIRMED, 30],
])) {
  test(`a call that can be repeated is sent again after the gateway's time: ${name}`, async (t) => {
    const { client, asked, slept } = await gatewayWith(t, [refused, FOUND, refused, ADDED]);
    await client.memories.search("tea");
    await client.sessions.add("chat:c_1", MESSAGES);
    assert.deepEqual(slept, [wait, wait]);
    assert.equal(asked[2]?.headers["idempotency-key"], asked[3]?.headers["idempotency-key"]);
    assert.match(`${asked[2]?.headers["idempotency-key"]}`, /^[0-9a-f]{32}$/);
    assert.equal(asked[2]?.body, asked[3]?.body);
  });
}

for (const [name, refused] of Object.entries({ DAMAGED, BROKEN })) {
  test(`without a time the wait grows: ${name}`, async (t) => {
    const { client, asked, slept } = await gatewayWith(t, [refused]);
    await assert.rejects(client.keys.list());
    assert.equal(asked.length, 3);
    assert.ok(slept.length === 2 && 0.25 <= Number(slept[0]) && Number(slept[0]) <= 0.5 && Number(slept[1]) >= 0.5);
  });
}

for (const [name, refused] of Object.entries({ BUSY, LIMITED })) {
  test(`a change is sent again if the gateway did not do it: ${name}`, async (t) => {
    const { client, asked } = await gatewayWith(t, [refused, NEW_KEY]);
    await client.webhooks.update("x", {});
    assert.equal(asked.length, 2);
  });
}

const CONFLICT = { status: 409, code: "conflict", retryAfter: 1 };
const INTERNAL = { status: 500, code: "internal_error" };
for (const [name, refused] of Object.entries({ UNCONFIRMED, DAMAGED, PROXY, BROKEN, INTERNAL, CONFLICT })) {
  test(`a change that may be done is sent once: ${name}`, async (t) => {
    const { client, asked, slept } = await gatewayWith(t, [refused]);
    await assert.rejects(client.webhooks.update("x", {}));
    assert.deepEqual([asked.length, slept], [1, []]);
  });
}

test("a new key that may be made is asked for again with the same Idempotency-Key", async (t) => {
  const { client, asked } = await gatewayWith(t, [BROKEN, NEW_KEY]);
  assert.equal((await client.keys.create()).user_key, "uk_2");
  assert.equal(asked[0]?.headers["idempotency-key"], asked[1]?.headers["idempotency-key"]);
});

test("a change is sent again if there was no connection", async () => {
  let attempts = 0;
  const refused = new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
  const client = new Client("http://127.0.0.1:1", "uk_1", {
    sleep: async () => {},
    fetch: async () => {
      attempts += 1;
      throw refused;
    },
  });
  await assert.rejects(client.webhooks.update("x", {}), (error) => error instanceof NoAnswer && error.cause === refused);
  assert.equal(attempts, 3);
});

test("a wait that is too long is not waited for, and attempts are counted", async (t) => {
  const retries = { longestWait: 5, attempts: 2 };
  const { client, slept } = await gatewayWith(t, [LIMITED, BUSY], { retries });
  await assert.rejects(client.memories.search("tea"), (error) => error instanceof TooManyRequests && error.retryAfter === 7);
  assert.deepEqual(slept, []);
  await assert.rejects(client.memories.search("tea"), Unavailable);
  assert.deepEqual(slept, [1]);
});

test("a problem says what the gateway said", async (t) => {
  const { client } = await gatewayWith(t, [{ status: 422, code: "invalid_input" }]);
  await assert.rejects(client.memories.search("tea", { top_k: 1000 }), (error) => {
    assert.ok(error instanceof InvalidInput && error instanceof Problem);
    assert.deepEqual([error.status, error.code, error.requestId], [422, "invalid_input", "req_1"]);
    assert.deepEqual(error.errors, [{ field: "top_k", message: "Too large." }]);
    assert.equal(`${error}`, "InvalidInput: Because of invalid_input (422 invalid_input).");
    return true;
  });
});

test("a redirection is not followed, and named", async (t) => {
  const { client, asked } = await gatewayWith(t, [{ status: 301, location: "http://127.0.0.1:1/" }]);
  await assert.rejects(client.health(), /redirects to http:\/\/127\.0\.0\.1:1\//);
  assert.equal(asked.length, 1);
});

for (const body of ["<html>", "[1", "null", "3"]) {
  test(`another server's answer is no answer of a gateway: ${body}`, async (t) => {
    const { client } = await gatewayWith(t, [{ body }]);
    await assert.rejects(client.memories.search("tea"), InvalidAnswer);
    await assert.rejects(client.memories.list().next(), InvalidAnswer);
    await assert.rejects(client.keys.list(), InvalidAnswer);
  });
}

test("a gateway that does not answer in time is left", async (t) => {
  const server = createServer(() => {}).listen(0, "127.0.0.1");
  t.after(() => server.close().closeAllConnections());
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const client = new Client(`http://127.0.0.1:${port}`, "uk_1", { timeoutMs: 50, retries: { attempts: 1 } });
  await assert.rejects(client.health(), (error) => error instanceof NoAnswer && error.message.includes("no answer in 50 ms"));
});

test("credentials go into the header alone", async (t) => {
  const { client, asked } = await gatewayWith(t, [{ body: '{"keys": []}' }, NEW_KEY]);
  await client.keys.list();
  await client.users.create("ann", { provisioningToken: "token" });
  assert.deepEqual(asked.map(({ url }) => url), ["/prefix/users/me/keys", "/prefix/users"]);
  assert.deepEqual(asked.map(({ headers }) => headers.authorization), ["Bearer uk_1", "Bearer token"]);
  assert.deepEqual(JSON.parse(asked[1]?.body ?? ""), { user_id: "ann" });
});

test("ids are quoted, and none leaves its path", async (t) => {
  const { client, asked } = await gatewayWith(t, [{ body: "{}" }]);
  await client.memories.get("a/b?c#d e");
  assert.equal(asked[0]?.url, "/prefix/memories/a%2Fb%3Fc%23d%20e");
  for (const id of ["", ".", ".."]) assert.throws(() => client.memories.delete(id), /no id/);
});

for (const address of ["", "127.0.0.1:8010", "ftp://127.0.0.1", "http://127.0.0.1?x=1"]) {
  test(`an address that is not one of a gateway is refused: ${address}`, () => {
    assert.throws(() => new Client(address), /must read like/);
  });
}

test("a list asks for a page when it is needed", async (t) => {
  const pages = [{ body: '{"memories": [{"id": 1}, {"id": 2}], "next_cursor": "n"}' }, { body: '{"memories": [{"id": 3}]}' }];
  const { client, asked } = await gatewayWith(t, pages);
  const ids = [];
  for await (const { id } of client.memories.list({ session_id: "chat:c_1", pageSize: 2 })) ids.push(`${id}/${asked.length}`);
  assert.deepEqual(ids, ["1/1", "2/1", "3/2"]);
  assert.equal(asked[1]?.url, "/prefix/memories?session_id=chat%3Ac_1&limit=2&cursor=n");
});

test("an upload is streamed", async (t) => {
  const { client, asked } = await gatewayWith(t, [{ body: '{"resource_id": "r"}' }]);
  const folder = await mkdtemp(`${tmpdir()}/memory-gateway-client-`);
  t.after(() => rm(folder, { recursive: true }));
  const file = await open(`${folder}/large.bin`, "w");
  await file.truncate(300_000_000);
  await file.close();
  const before = process.resourceUsage().maxRSS;
  await client.resources.upload(await openAsBlob(`${folder}/large.bin`), { filename: "large.bin", title: "Large" });
  assert.ok(Number(asked[0]?.bytes) > 300_000_000);
  assert.ok(asked[0]?.body.includes('filename="large.bin"'));
  const grownKb = process.resourceUsage().maxRSS - before;
  assert.ok(grownKb < 200_000, `${grownKb} kB`);
});
