/** Memory for the Vercel AI SDK: `@memory-gateway/client/ai-sdk`. Needs the package `ai`. */

import { jsonSchema, tool } from "ai";

/**
 * @typedef {import("./client.js").Client} Client
 * @typedef {import("ai").LanguageModelMiddleware} Middleware
 * @typedef {Parameters<NonNullable<Middleware["transformParams"]>>[0]["params"]} Params
 * @typedef {Params["prompt"][number]} PromptMessage
 * @typedef {import("./client.js").NewMessage} NewMessage
 * @typedef {{
 *   conversationId?: string, agentId?: string, maxTokens?: number,
 *   recall?: boolean, store?: boolean, onError?: (error: unknown) => void
 * }} MemoryOptions `conversationId`: of the conversation `chat:{conversationId}`, which is stored; absent: nothing is.
 *   `recall` and `store` switch one half off. `onError` gets errors of the gateway, and the model answers without
 *   memories; absent: they are thrown.
 */

const AGENT = "ai-sdk";

/**
 * Return middleware that shows a model what the client's user said before, and stores the conversation.
 *
 * @param {Client} client
 * @param {MemoryOptions} [options]
 * @returns {Middleware}
 */
export function memoryMiddleware(client, options = {}) {
  const { conversationId, agentId = AGENT, maxTokens, recall = true, onError } = options;
  const isStored = conversationId !== undefined && options.store !== false;

  /**
   * @template T
   * @param {Promise<T>} work
   * @returns {Promise<T | undefined>}
   */
  async function guarded(work) {
    if (onError === undefined) return work;
    try {
      return await work;
    } catch (error) {
      onError(error);
      return undefined;
    }
  }

  /**
   * Store the user's last message, if the model was asked it now, and the answer.
   *
   * @param {Params} params
   * @param {string} answer
   */
  async function store(params, answer) {
    /** @type {NewMessage[]} */
    const messages = [];
    const question = params.prompt.at(-1)?.role === "user" ? lastQuestion(params.prompt) : "";
    if (question) messages.push({ role: "user", content: question });
    if (answer.trim()) messages.push({ role: "assistant", content: answer });
    if (!isStored || messages.length === 0) return;
    const session = `chat:${conversationId}`;
    const added = await guarded(client.sessions.add(session, messages, { agent_id: agentId }));
    if (added && answer.trim()) await guarded(client.sessions.flush(session));
  }

  return {
    specificationVersion: "v4",
    async transformParams({ params }) {
      const query = lastQuestion(params.prompt);
      if (!recall || !query) return params;
      /** @type {NonNullable<Parameters<Client["memories"]["context"]>[0]>} */
      const asked = { query };
      if (conversationId !== undefined) asked.conversation_id = conversationId;
      if (maxTokens !== undefined) asked.max_tokens = maxTokens;
      const context = await guarded(client.memories.context(asked));
      if (!context?.text) return params;
      const first = params.prompt.findIndex(({ role }) => role !== "system");
      /** @type {PromptMessage} */
      const shown = { role: "system", content: context.text };
      return { ...params, prompt: params.prompt.toSpliced(first, 0, shown) };
    },
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      await store(params, textOf(result.content));
      return result;
    },
    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      let answer = "";
      const kept = new TransformStream({
        transform(chunk, controller) {
          if (chunk.type === "text-delta") answer += chunk.delta;
          controller.enqueue(chunk);
        },
        flush: () => store(params, answer),
      });
      return { stream: stream.pipeThrough(kept), ...rest };
    },
  };
}

/**
 * Return tools by which a model searches, stores and deletes memories of the client's user.
 *
 * @param {Client} client
 * @param {{ agentId?: string }} [options] `agentId`: an agent that alone finds what it stores
 */
export function memoryTools(client, { agentId } = {}) {
  const ofAgent = agentId === undefined ? {} : { agent_id: agentId };
  return {
    memory_search: tool({
      description: "Search what the user said, stored or uploaded before. Ask in the user's words.",
      inputSchema: /** @type {import("ai").Schema<{ query: string, top_k?: number }>} */ (
        object({ query: { type: "string" }, top_k: { type: "integer", minimum: 1, maximum: 20 } }, ["query"])
      ),
      async execute({ query, top_k: count = 5 }) {
        const { results } = await client.memories.search(query, { top_k: count, include_profile: false, ...ofAgent });
        return results.map(({ id, text, created_at: at, superseded_by: newer }) => ({ id, text, created_at: at, superseded_by: newer }));
      },
    }),
    memory_store: tool({
      description: "Remember one fact that the user stated, in words that need no context.",
      inputSchema: /** @type {import("ai").Schema<{ text: string, tags?: string[] }>} */ (
        object({ text: { type: "string" }, tags: { type: "array", items: { type: "string" } } }, ["text"])
      ),
      async execute({ text, tags }) {
        const { memory, action } = await client.memories.store(text, tags ? { tags, ...ofAgent } : ofAgent);
        return { id: memory?.id ?? null, action };
      },
    }),
    memory_forget: tool({
      description: "Move a memory to the user's trash, by the id that memory_search returned.",
      inputSchema: /** @type {import("ai").Schema<{ id: string }>} */ (object({ id: { type: "string" } }, ["id"])),
      async execute({ id }) {
        const { status } = await client.memories.delete(id, { copies: true });
        return { id, status };
      },
    }),
  };
}

/**
 * @param {Record<string, import("json-schema").JSONSchema7>} properties
 * @param {string[]} required
 */
function object(properties, required) {
  return jsonSchema({ type: "object", properties, required, additionalProperties: false });
}

/**
 * Return the text of the user's last message.
 *
 * @param {Params["prompt"]} prompt
 */
function lastQuestion(prompt) {
  const last = prompt.findLast(({ role }) => role === "user");
  return last?.role === "user" ? textOf(last.content) : "";
}

/**
 * @param {readonly { type: string, text?: unknown }[]} parts
 */
function textOf(parts) {
  return parts.map((part) => (part.type === "text" && typeof part.text === "string" ? part.text : "")).join("");
}
