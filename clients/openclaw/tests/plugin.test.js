import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { Capture } from "../capture.js";
import { diagnose } from "../doctor.js";
import { Gateway, Refused, Unavailable, readConfig, userOf } from "../gateway.js";
import { memoryTools } from "../tools.js";
import { hasForgotten, recalledBlock, rowsOf, turnOf, withoutRecalled } from "../transcript.js";

const ANN = { userId: "ann", apiKey: "uk_ann" };
const BOB = { userId: "bob", apiKey: "uk_bob" };
const NAMES = { userId: "ann", agentId: "main", now: 9 };
const ALL = { fullContextMemory: true, selfImprovingMemory: true };
const BLOCK = "<relevant-memories>\n1. My cat is gray.\n</relevant-memories>";
const CALL = { type: "toolCall", id: "c1", name: "read", arguments: { path: "a.txt" } };
const TURN = [
  { role: "user", content: `${BLOCK}\n\nShow me a.txt.`, timestamp: 1 },
  { role: "assistant", content: [{ type: "thinking", text: "?" }, { type: "text", text: "I look." }, CALL], timestamp: 2 },
  { role: "toolResult", toolName: "read", toolCallId: "c1", content: [{ type: "text", text: "Hello" }], timestamp: 3 },
  { role: "assistant", content: [{ type: "text", text: "Hello." }], timestamp: 4 },
];

test("a sender has its user, else the agent, else everyone", () => {
  const users = { "*": ANN, "agent:work": BOB };
  assert.equal(userOf(users, {}), ANN);
  assert.equal(userOf(users, { agentId: "work", channel: "telegram", senderId: "7" }), BOB);
  assert.equal(userOf({}, {}), undefined);
  assert.equal(userOf({ "agent:work": BOB }, { agentId: "main" }), undefined);
});

test("a sender without a user has no memory once another sender has one", () => {
  const users = { "*": ANN, "agent:main": ANN, "telegram:7": BOB };
  assert.equal(userOf(users, { channel: "telegram", senderId: "7" }), BOB);
  assert.equal(userOf(users, { channel: "telegram", senderId: "8" }), undefined);
  assert.equal(userOf(users, { channel: "discord", senderId: "7" }), undefined);
  assert.equal(userOf({ "telegram:7": BOB }, { channel: "__proto__", senderId: "" }), undefined);
  assert.equal(userOf(users, { agentId: "main" }), ANN);
});

test("recalled memories are removed, whole, cut off or in other letters", () => {
  assert.equal(withoutRecalled(`a ${BLOCK} b`), "a  b");
  assert.equal(withoutRecalled("a <relevant-memories> 1. My cat"), "a");
  assert.equal(withoutRecalled("a < Relevant-Memories x='1'>b</ RELEVANT-memories > c"), "a  c");
  assert.equal(withoutRecalled("a <knowledge-context>b</knowledge-context>"), "a");
  assert.equal(withoutRecalled("a </relevant-memories> b"), "a  b");
  assert.equal(withoutRecalled("<relevant-memoriesx> stays"), "<relevant-memoriesx> stays");
  assert.equal(recalledBlock(`Found 1 memory:\n\n${BLOCK}`), BLOCK);
  assert.equal(recalledBlock("No relevant memories found."), "");
});

test("removal takes linear time", () => {
  const start = performance.now();
  withoutRecalled("<relevant-memories ".repeat(20_000));
  assert.ok(performance.now() - start < 2_000);
});

test("a turn has the messages after the history, or from the last one of the user", () => {
  assert.deepEqual(turnOf(TURN, 2), TURN.slice(2));
  assert.deepEqual(turnOf([{ role: "user", timestamp: 0 }, ...TURN], undefined), TURN);
  assert.deepEqual(turnOf([], undefined), []);
});

test("a whole turn is captured with its tool calls", () => {
  assert.deepEqual(rowsOf(TURN, NAMES, ALL), [
    { role: "user", sender_id: "ann", timestamp: 1, content: "Show me a.txt." },
    { role: "assistant", sender_id: "main", timestamp: 2, content: "I look." },
    { role: "tool", sender_id: "main", timestamp: 2, content: 'read {"path":"a.txt"}' },
    { role: "tool", sender_id: "main", timestamp: 3, content: "read: Hello" },
    { role: "assistant", sender_id: "main", timestamp: 4, content: "Hello." },
  ]);
});

test("the switches leave out tool calls, and the agent's answers", () => {
  const roles = (/** @type {typeof ALL} */ config) => rowsOf(TURN, NAMES, config).map(({ role }) => role);
  assert.deepEqual(roles({ ...ALL, fullContextMemory: false }), ["user", "assistant", "assistant"]);
  assert.deepEqual(roles({ fullContextMemory: false, selfImprovingMemory: false }), ["user"]);
});

test("calls of the memory tools and their results are left out", () => {
  const content = [{ ...CALL, name: "memory_recall" }];
  const turn = [
    { role: "assistant", content, timestamp: 2 },
    { role: "toolResult", toolName: "memory_recall", toolCallId: "c1", content: `Found 1 memory:\n${BLOCK}`, timestamp: 3 },
  ];
  assert.deepEqual(rowsOf(turn, NAMES, ALL), []);
});

test("a turn that forgets is known by its call", () => {
  const forget = { ...CALL, name: "memory_forget", arguments: { query: "cat" } };
  assert.ok(hasForgotten([{ role: "assistant", content: [forget] }]));
  assert.ok(!hasForgotten([...TURN, { role: "user", content: "memory_forget" }]));
});

test("1,000 turns capture nothing that was recalled", () => {
  let recalled = "My cat is gray.";
  for (let turn = 0; turn < 1_000; turn++) {
    const block = `<relevant-memories>\n1. ${recalled}\n</relevant-memories>`;
    const texts = rowsOf(
      [
        { role: "user", content: `${block}\n\nTurn ${turn}`, timestamp: turn },
        { role: "assistant", content: `You wrote: ${block} Turn ${turn}`, timestamp: turn },
      ],
      NAMES,
      ALL,
    ).map(({ content }) => content);
    assert.deepEqual(texts, [`Turn ${turn}`, `You wrote:  Turn ${turn}`]);
    recalled = ["My cat is gray.", ...texts].join("\n2. ");
  }
});

/**
 * A gateway that answers with the given statuses in turn, then with 200.
 *
 * @param {import("node:test").TestContext} t
 * @param {(number | "never")[]} statuses
 */
async function gatewayWith(t, statuses) {
  /** @type {{ path: string, key: string | undefined, body: any }[]} */
  const calls = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    calls.push({ path: request.url ?? "", key: request.headers.authorization, body: text && JSON.parse(text) });
    const status = statuses.shift() ?? 200;
    if (status !== "never") response.writeHead(status).end(JSON.stringify({ detail: "no", result: { content: [] } }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  t.after(() => server.close().closeAllConnections());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { calls, url: `http://127.0.0.1:${port}` };
}

const log = { warn() {} };
const row = (/** @type {number} */ timestamp) =>
  /** @type {const} */ ({ role: "user", sender_id: "ann", timestamp, content: `${timestamp}` });

test("a call ends with its budget, and is left out for some time afterwards", async (t) => {
  const hung = await gatewayWith(t, ["never", "never"]);
  const { url } = await gatewayWith(t, []);
  const gateway = new Gateway(`${hung.url}/`);
  await assert.rejects(gateway.call("/health", { ms: 100 }), Unavailable);
  assert.ok(gateway.isPaused);
  gateway.url = url;
  await gateway.tool(ANN, "memory_recall", { query: "cat" });
  assert.ok(!gateway.isPaused);
});

test("a refusal says why, and does not pause", async (t) => {
  const { url, calls } = await gatewayWith(t, [401]);
  const gateway = new Gateway(url);
  await assert.rejects(gateway.tool(ANN, "memory_recall", { query: "cat" }, { sessionId: "s" }), (error) => {
    assert.ok(error instanceof Refused);
    assert.deepEqual([error.status, error.message], [401, "no"]);
    return true;
  });
  assert.ok(!gateway.isPaused);
  const body = { tool: "memory_recall", args: { query: "cat" }, agentId: "main", sessionKey: "session:s" };
  assert.deepEqual(calls, [{ path: "/tools/invoke", key: "Bearer uk_ann", body }]);
});

test("turns are added and flushed for their users", async (t) => {
  const { url, calls } = await gatewayWith(t, []);
  const capture = new Capture(new Gateway(url), log);
  capture.add(ANN, "s", [row(1)]);
  capture.add(BOB, "s", [row(2)]);
  await capture.send({ flush: false });
  await capture.send({ sessionId: "other", flush: true });
  assert.deepEqual(calls.map(({ key, body }) => [key, body.user_id, body.session_id, body.messages[0].content]), [
    ["Bearer uk_ann", "ann", "session:s", "1"],
    ["Bearer uk_bob", "bob", "session:s", "2"],
  ]);
  await capture.send({ sessionId: "s", flush: true });
  await capture.send({ sessionId: "s", flush: true });
  assert.deepEqual(calls.slice(2).map(({ path, key }) => [path, key]), [
    ["/memories/flush", "Bearer uk_ann"],
    ["/memories/flush", "Bearer uk_bob"],
  ]);
});

test("turns are kept while the gateway is away, the last 500 messages of a session", async (t) => {
  const { url, calls } = await gatewayWith(t, []);
  const gateway = new Gateway("http://127.0.0.1:9");
  const capture = new Capture(gateway, log);
  for (let number = 1; number <= 600; number++) capture.add(ANN, "s", [row(number)]);
  await capture.send({ flush: true });
  assert.ok(gateway.isPaused);
  capture.gateway = new Gateway(url);
  await capture.send({ flush: true });
  const sent = calls.flatMap(({ body }) => body.messages ?? []).map(({ content }) => Number(content));
  assert.deepEqual(sent, Array.from({ length: 500 }, (_, index) => index + 101));
  assert.equal(calls.at(-1)?.path, "/memories/flush");
});

test("turns are kept while the gateway is busy", async (t) => {
  const { url, calls } = await gatewayWith(t, [429, 503]);
  const capture = new Capture(new Gateway(url), log);
  capture.add(ANN, "s", [row(1)]);
  for (let attempt = 0; attempt < 3; attempt++) {
    await capture.send({ flush: false });
    assert.equal(capture.gateway.isPaused, attempt < 2);
    capture.gateway = new Gateway(url);
  }
  await capture.send({ flush: false });
  assert.equal(calls.length, 3);
});

test("a refused session is dropped, and the others are captured", async (t) => {
  const { url, calls } = await gatewayWith(t, [409]);
  const capture = new Capture(new Gateway(url), log);
  capture.add(ANN, "in the trash", [row(1)]);
  capture.add(ANN, "s", [row(2)]);
  await capture.send({ flush: false });
  await capture.send({ flush: false });
  assert.deepEqual(calls.map(({ body }) => body.session_id), ["session:in the trash", "session:s"]);
});

test("the tools pass their arguments on", async () => {
  /** @type {unknown[]} */
  const called = [];
  const tools = memoryTools(async (...call) => called.push(call), { selfImprovingMemory: false });
  assert.deepEqual(tools.map(({ name }) => name), ["memory_recall", "memory_store", "memory_forget"]);
  await tools[1]?.execute("1", { text: "Tea" });
  assert.deepEqual(called, [["memory_store", { text: "Tea" }]]);
  assert.ok(!JSON.stringify(tools).includes("self_improving"));
});

test("the doctor finds nothing wrong with a complete configuration", async (t) => {
  const { url } = await gatewayWith(t, []);
  const entry = { hooks: { allowConversationAccess: true }, config: { ...readConfig({}), url, users: { "*": ANN } } };
  const plugins = { slots: { memory: "memory-gateway" }, entries: { "memory-gateway": entry } };
  assert.deepEqual(await diagnose({ plugins }), []);
  const found = await diagnose({ plugins: { entries: { "memory-gateway": { config: { url: "http://127.0.0.1:9" } } } } });
  assert.deepEqual(found.map((problem) => problem.split(":")[0]), [
    "missing conversation access",
    "missing key",
    "gateway away",
  ]);
});
