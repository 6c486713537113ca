/**
 * OpenClaw's messages, as the gateway stores them.
 *
 * @typedef {{
 *   role?: string, content?: string | Part[], timestamp?: number, toolName?: string, toolCallId?: string
 * }} Message
 * @typedef {{ type?: string, text?: string, id?: string, name?: string, arguments?: Record<string, unknown> }} Part
 * @typedef {{ role: "user" | "assistant" | "tool", sender_id: string, timestamp: number, content: string }} Row
 */

export const TOOLS = ["memory_recall", "memory_store", "memory_forget"];
const MAX_CHARS = 50_000;
const TAGS = "relevant-memories|knowledge-context";
/** A block of recalled memories. One without an end was cut off: the rest of the text belongs to it. */
const BLOCK = new RegExp(`<\\s{0,20}(${TAGS})\\b[^>]{0,200}>[^]*?(?:<\\s{0,20}/\\s{0,20}\\1\\s{0,20}>|$)`, "gi");
const CLOSING_TAG = new RegExp(`<\\s{0,20}/\\s{0,20}(?:${TAGS})\\s{0,20}>`, "gi");

/**
 * Return the text without recalled memories.
 *
 * @param {string} text
 */
export function withoutRecalled(text) {
  return text.replace(BLOCK, "").replace(CLOSING_TAG, "").trim();
}

/**
 * Return the block of recalled memories in a tool's text, "" without one.
 *
 * @param {string} text
 */
export function recalledBlock(text) {
  return text.match(BLOCK)?.[0] ?? "";
}

/** @param {Message} message */
export function textOf({ content = "" }) {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n");
}

/**
 * Return the messages of a turn: those later than `since`, or from the user's last message if `since` is unknown.
 *
 * @param {Message[]} messages
 * @param {number | undefined} since Unix milliseconds
 */
export function turnOf(messages, since) {
  if (since !== undefined) return messages.filter(({ timestamp = Infinity }) => timestamp > since);
  return messages.slice(Math.max(messages.findLastIndex(({ role }) => role === "user"), 0));
}

/**
 * Return what the gateway is to keep of a turn. Calls of the memory tools and recalled memories are left out.
 *
 * @param {Message[]} turn
 * @param {{ userId: string, agentId: string, now: number }} names `now`: the time of messages without one
 * @param {{ fullContextMemory: boolean, selfImprovingMemory: boolean }} config
 * @returns {Row[]}
 */
export function rowsOf(turn, { userId, agentId, now }, { fullContextMemory, selfImprovingMemory }) {
  /** @type {Row[]} */
  const rows = [];
  const skipped = new Set();
  for (const message of turn) {
    const { timestamp = now, role } = message;
    /** @type {(role: Row["role"], text: string) => void} */
    const add = (as, text) => {
      const content = withoutRecalled(text).slice(0, MAX_CHARS);
      if (content) rows.push({ role: as, sender_id: as === "user" ? userId : agentId, timestamp, content });
    };
    if (role === "user") add("user", textOf(message));
    if (role === "assistant" && (fullContextMemory || selfImprovingMemory)) add("assistant", textOf(message));
    if (!fullContextMemory) continue;
    if (role === "assistant" && Array.isArray(message.content)) {
      for (const { type, id, name = "", arguments: args = {} } of message.content) {
        if (type !== "toolCall") continue;
        if (TOOLS.includes(name)) skipped.add(id);
        else add("tool", `${name} ${JSON.stringify(args)}`);
      }
    }
    if (role === "toolResult" && !skipped.has(message.toolCallId)) add("tool", `${message.toolName}: ${textOf(message)}`);
  }
  return rows;
}

/**
 * Whether a memory is forgotten in a turn, whose messages say again what it was.
 *
 * @param {Message[]} turn
 */
export function hasForgotten(turn) {
  const parts = turn.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return parts.some(({ type, name }) => type === "toolCall" && name === "memory_forget");
}
