/** The three memory tools, which run in the agent's process and call the gateway. */

/** @typedef {import("openclaw/plugin-sdk/plugin-entry").AnyAgentTool} Tool */

const USER_CATEGORIES = ["user_memory_fact", "user_memory_preference", "user_memory_decision"];
const SELF_CATEGORIES = ["self_improving_learnings", "self_improving_errors", "self_improving_feature_requests"];

/**
 * @param {(tool: string, args: object) => Promise<any>} call
 * @param {{ selfImprovingMemory: boolean }} config
 * @returns {Tool[]}
 */
export function memoryTools(call, { selfImprovingMemory }) {
  const categories = [...USER_CATEGORIES, ...(selfImprovingMemory ? SELF_CATEGORIES : [])];
  /** @type {(name: string, label: string, description: string, properties: object, required?: string[]) => Tool} */
  const tool = (name, label, description, properties, required = []) => ({
    name,
    label,
    description,
    parameters: { type: "object", properties, required },
    catalogMode: "direct-only", // shown to the model, and called by its name
    execute: (_id, args) => call(name, /** @type {object} */ (args)),
  });
  return [
    tool(
      "memory_recall",
      "Recall memories",
      "Search the user's long-term memories. Call it before you answer what may depend on the user.",
      {
        query: { type: "string", description: "What to search for, in any language." },
        limit: { type: "integer", minimum: 1, maximum: 30, description: "The maximum number of memories." },
      },
      ["query"],
    ),
    tool(
      "memory_store",
      "Store a memory",
      "Store a memory. Call it when the user asks you to remember something.",
      {
        text: { type: "string", maxLength: 8000, description: "One thing, in words that need no context." },
        importance: { type: "number", minimum: 0, maximum: 1, description: "1 for most important." },
        category: { type: "string", enum: categories, description: "The kind of memory." },
        tags: { type: "array", items: { type: "string" }, description: "Words to find it by." },
        expires_at: { type: "string", description: "When it expires: a time, or the last day (2026-12-31)." },
      },
      ["text"],
    ),
    tool(
      "memory_forget",
      "Forget a memory",
      "Delete a memory. Call it when the user asks you to forget something, once for each memory that says it.",
      {
        memoryId: { type: "string", description: "The memory's id, from memory_recall." },
        query: { type: "string", description: "The text of the memory, if you do not know its id." },
      },
    ),
  ];
}
