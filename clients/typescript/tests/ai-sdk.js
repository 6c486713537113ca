// With the package `ai`, on the gateway at MEMORY_GATEWAY_BASE_URL; test_typescript_client.py starts one.

import assert from "node:assert/strict";
import { before, test } from "node:test";

import { generateText, isStepCount, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";

import { memoryMiddleware, memoryTools } from "../src/ai-sdk.js";
import { Client } from "../src/index.js";

const URL = process.env.MEMORY_GATEWAY_BASE_URL ?? "";
const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
/** @typedef {import("@ai-sdk/provider").LanguageModelV4Content} Content */
/** @type {Client} */
let client;

before(async () => {
  const { user_key: key } = await new Client(URL).users.create(`sdk-${Date.now()}`);
  client = new Client(URL, key);
});

/**
 * Return a model that gives the answers in turn.
 *
 * @param {Content[][]} answers
 */
function modelWith(...answers) {
  return new MockLanguageModelV4({
    doGenerate: answers.map((content) => {
      const unified = content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop";
      return { content, finishReason: { unified, raw: undefined }, usage: USAGE, warnings: [] };
    }),
  });
}

/** @param {string} session */
async function textsOf(session) {
  const texts = [];
  for await (const { role, text } of client.memories.list({ session_id: session })) texts.push(`${role}: ${text}`);
  return texts.reverse();
}

test("a model sees what was said in another conversation, and the conversation is stored", async () => {
  const first = modelWith([{ type: "text", text: "Noted." }]);
  const remembering = wrapLanguageModel({ model: first, middleware: memoryMiddleware(client, { conversationId: "a" }) });
  await generateText({ model: remembering, prompt: "My bicycle is blue." });
  assert.deepEqual(await textsOf("chat:a"), ["user: My bicycle is blue.", "assistant: Noted."]);
  const second = modelWith([{ type: "text", text: "Blue." }]);
  const recalling = wrapLanguageModel({ model: second, middleware: memoryMiddleware(client, { conversationId: "b" }) });
  await generateText({ model: recalling, instructions: "Be brief.", prompt: "Which color has my bicycle?" });
  const [system, shown, question] = second.doGenerateCalls[0]?.prompt ?? [];
  assert.equal(system?.content, "Be brief.");
  assert.equal(shown?.role, "system");
  assert.match(`${shown?.content}`, /My bicycle is blue\./);
  assert.equal(question?.role, "user");
  assert.deepEqual(await textsOf("chat:b"), ["user: Which color has my bicycle?", "assistant: Blue."]);
});

test("a streamed answer is stored when it ends", async () => {
  const model = new MockLanguageModelV4({
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "Hel" },
          { type: "text-delta", id: "1", delta: "lo." },
          { type: "text-end", id: "1" },
          { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage: USAGE },
        ],
      }),
    }),
  });
  const middleware = memoryMiddleware(client, { conversationId: "s" });
  const { textStream } = streamText({ model: wrapLanguageModel({ model, middleware }), prompt: "Hi there, gateway" });
  let read = "";
  for await (const part of textStream) read += part;
  assert.equal(read, "Hello.");
  assert.deepEqual(await textsOf("chat:s"), ["user: Hi there, gateway", "assistant: Hello."]);
});

test("a model stores, finds and deletes by tools, and steps store a question once", async () => {
  /** @type {(toolName: string, input: unknown) => Content[]} */
  const call = (toolName, input) => [{ type: "tool-call", toolCallId: toolName, toolName, input: JSON.stringify(input) }];
  const model = modelWith(
    call("memory_store", { text: "I play the cello.", tags: ["music"] }),
    call("memory_search", { query: "cello" }),
    [{ type: "text", text: "You play the cello." }],
  );
  const middleware = memoryMiddleware(client, { conversationId: "t" });
  const tools = memoryTools(client);
  const { steps } = await generateText({
    model: wrapLanguageModel({ model, middleware }), tools, prompt: "What do I play?", stopWhen: isStepCount(5),
  });
  const [stored] = /** @type {any[]} */ (steps[0]?.toolResults ?? []);
  const [found] = /** @type {any[]} */ (steps[1]?.toolResults ?? []);
  assert.equal(stored.output.action, "created");
  assert.deepEqual(found.output[0].id, stored.output.id);
  assert.deepEqual(await textsOf("chat:t"), ["user: What do I play?", "assistant: You play the cello."]);
  const forgetting = modelWith(call("memory_forget", { id: stored.output.id }), [{ type: "text", text: "Done." }]);
  await generateText({ model: forgetting, tools, prompt: "Forget it.", stopWhen: isStepCount(3) });
  assert.equal((await client.memories.get(stored.output.id)).memory.state, "trashed");
});

test("errors of the gateway are thrown, or given to onError", async () => {
  const wrong = new Client(URL, "uk_wrong");
  const model = modelWith([{ type: "text", text: "Hi." }], [{ type: "text", text: "Hi." }]);
  /** @type {unknown[]} */
  const errors = [];
  const strict = wrapLanguageModel({ model, middleware: memoryMiddleware(wrong, { conversationId: "x" }) });
  await assert.rejects(generateText({ model: strict, prompt: "Hello", maxRetries: 0 }));
  const onError = (/** @type {unknown} */ error) => void errors.push(error);
  const lenient = wrapLanguageModel({ model, middleware: memoryMiddleware(wrong, { conversationId: "x", onError }) });
  assert.equal((await generateText({ model: lenient, prompt: "Hello" })).text, "Hi.");
  assert.equal(errors.length, 2);
});

test("without a conversation nothing is stored, and recall and store can be switched off", async () => {
  const model = modelWith(...[1, 2, 3].map(() => [/** @type {Content} */ ({ type: "text", text: "Yes." })]));
  for (const options of [{}, { conversationId: "off", store: false }, { conversationId: "on", recall: false }]) {
    const middleware = memoryMiddleware(client, options);
    await generateText({ model: wrapLanguageModel({ model, middleware }), prompt: "Is my bicycle blue?" });
  }
  assert.deepEqual(model.doGenerateCalls.map(({ prompt }) => prompt.length), [2, 2, 1]);
  assert.deepEqual(await textsOf("chat:off"), []);
  assert.deepEqual(await textsOf("chat:on"), ["user: Is my bicycle blue?", "assistant: Yes."]);
});
