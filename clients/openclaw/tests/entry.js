// The hooks of the entry, with OpenClaw's SDK and a stand-in for the gateway. test_openclaw_plugin.py runs it where
// `openclaw` is installed.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import entry from "../index.js";

const TURN = [
  { role: "user", content: "My cat is gray.", timestamp: 1 },
  { role: "assistant", content: [{ type: "text", text: "Understood." }], timestamp: 2 },
];
const BLOCK = "<relevant-memories>\n1. My dog is black.\n</relevant-memories>";
const KNOWN = "Known of the user";
const CONTEXT = { agentId: "main", sessionId: "s", runId: "r", trigger: "user" };

/**
 * Register the plugin and return its hooks, its tools for a context, and the paths that the gateway is called at.
 *
 * @param {import("node:test").TestContext} t
 * @param {object} config
 */
async function registered(t, config) {
  /** @type {string[]} */
  const paths = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    const recalled = { result: { content: [{ type: "text", text: `Found 1 memory:\n\n${BLOCK}` }] } };
    response.end(JSON.stringify(request.url === "/memories/context" ? { text: KNOWN } : recalled));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  t.after(() => server.close().closeAllConnections());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  /** @type {Record<string, (event: object, ctx: object) => Promise<any>>} */
  const hooks = {};
  /** @type {any} */
  const registrations = {};
  const users = { "*": { userId: "ann", apiKey: "uk_ann" } };
  entry.register(
    /** @type {any} */ ({
      pluginConfig: { url: `http://127.0.0.1:${port}`, users, ...config },
      logger: console,
      on: (/** @type {string} */ name, /** @type {any} */ hook) => (hooks[name] = hook),
      registerTool: (/** @type {any} */ tools) => (registrations.tools = tools),
      registerMemoryCapability: (/** @type {any} */ capability) => (registrations.capability = capability),
      registerCli() {},
    }),
  );
  return { hooks, paths, ...registrations };
}

/**
 * Go through a turn.
 *
 * @param {Awaited<ReturnType<typeof registered>>} plugin
 * @param {object} [ctx]
 * @param {object} [end]
 */
async function turn({ hooks }, ctx = {}, end = {}) {
  const context = { ...CONTEXT, ...ctx };
  const result = await hooks.before_prompt_build?.({ prompt: "My cat is gray.", messages: [] }, context);
  await hooks.agent_end?.({ messages: TURN, success: true, ...end }, context);
  return result;
}

test("a turn is recalled for, captured and flushed", async (t) => {
  const plugin = await registered(t, {});
  assert.deepEqual(await turn(plugin), { prependContext: KNOWN });
  assert.deepEqual(plugin.paths, ["/memories/context", "/memories/add", "/memories/flush"]);
  assert.deepEqual(await turn(plugin), { prependContext: BLOCK });
  assert.deepEqual(plugin.paths.slice(3), ["/tools/invoke", "/memories/add", "/memories/flush"]);
});

for (const name of ["before_compaction", "before_reset", "session_end", "gateway_stop"]) {
  test(`${name} flushes what the turns did not`, async (t) => {
    const plugin = await registered(t, { flushEachTurn: false, autoRecall: false });
    await turn(plugin);
    assert.deepEqual(plugin.paths, ["/memories/add"]);
    await plugin.hooks[name]?.({ sessionId: "s" }, CONTEXT);
    assert.deepEqual(plugin.paths, ["/memories/add", "/memories/flush"]);
  });
}

test("only what a person said, in a turn that succeeded, is captured", async (t) => {
  const plugin = await registered(t, { autoRecall: false });
  await turn(plugin, { trigger: "heartbeat" });
  await turn(plugin, { trigger: "cron" });
  await turn(plugin, { inputProvenance: { kind: "inter_session" } });
  await turn(plugin, {}, { success: false });
  assert.deepEqual(plugin.paths, []);
});

test("the switches turn recall and capture off", async (t) => {
  const without = await registered(t, { autoRecall: false, autoCapture: false });
  assert.deepEqual(without.hooks, {});
  const recalling = await registered(t, { autoCapture: false });
  assert.deepEqual(Object.keys(recalling.hooks), ["before_prompt_build"]);
  assert.deepEqual(await turn(recalling), { prependContext: KNOWN });
});

test("tools are there for those who have a user, and the prompt names them", async (t) => {
  const plugin = await registered(t, {});
  assert.equal(plugin.tools({ agentId: "main" }).length, 3);
  assert.equal((await registered(t, { users: {} })).tools({ agentId: "main" }), null);
  const { promptBuilder, flushPlanResolver } = plugin.capability;
  assert.equal(promptBuilder({ availableTools: new Set(["memory_recall"]) })[0], "## Memory");
  assert.deepEqual(promptBuilder({ availableTools: new Set() }), []);
  assert.equal(flushPlanResolver({}), null);
});
