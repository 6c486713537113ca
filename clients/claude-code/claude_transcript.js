/** Claude Code's transcript, a file of JSON lines, as the messages that OpenClaw's plugin captures. */

import { open } from "node:fs/promises";

import { textOf } from "./transcript.js";

/**
 * @typedef {import("./transcript.js").Message} Message
 * @typedef {{ type: string, text?: string, id?: string, name?: string, input?: Record<string, unknown>,
 *   tool_use_id?: string, content?: string | Block[] }} Block
 * @typedef {{
 *   type?: string, timestamp?: string, isMeta?: boolean, isSidechain?: boolean, isCompactSummary?: boolean,
 *   message?: { content?: string | Block[] }
 * }} Entry
 */

/** The end of a long transcript is enough. */
const MAX_BYTES = 8 * 1024 * 1024;
/** Tools of this gateway: their calls and results repeat what is stored already. */
const MEMORY_TOOL = /^mcp__.*__((?:memory|profile|session|resources)_[a-z]+)$/;
/** What Claude Code itself writes in the user's place. */
const NOT_TYPED = /^\s*<(?:command-|local-command|bash-|system-reminder|task-notification)/;

/**
 * Return the messages of the session, without those of subagents and of Claude Code itself.
 *
 * @param {string} path
 * @returns {Promise<Message[]>}
 */
export async function readTranscript(path) {
  const file = await open(path);
  let lines;
  try {
    const { size } = await file.stat();
    const start = Math.max(0, size - MAX_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
    lines = buffer.subarray(0, bytesRead).toString().split("\n");
    if (start) lines.shift(); // half a line
  } finally {
    await file.close();
  }
  return messagesOf(lines.flatMap(entryOf));
}

/**
 * @param {string} line
 * @returns {Entry[]}
 */
function entryOf(line) {
  try {
    return [JSON.parse(line)];
  } catch {
    return []; // it is being written
  }
}

/**
 * @param {Entry[]} entries
 * @returns {Message[]}
 */
export function messagesOf(entries) {
  /** @type {Map<string, string>} the names of the called tools by id */
  const tools = new Map();
  return entries.flatMap(({ type, timestamp = "", isMeta, isSidechain, isCompactSummary, message }) => {
    if (isMeta || isSidechain || isCompactSummary || !message?.content) return [];
    const { content } = message;
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const at = { timestamp: Date.parse(timestamp) };
    if (type === "assistant") return [{ ...at, role: "assistant", content: blocks.flatMap((one) => partOf(one, tools)) }];
    if (type !== "user") return [];
    const texts = blocks.filter(({ type, text = "" }) => type === "text" && !NOT_TYPED.test(text));
    const typed = texts.length ? [{ ...at, role: "user", content: texts.flatMap((one) => partOf(one, tools)) }] : [];
    return [...typed, ...blocks.flatMap((one) => resultOf(one, tools, at))];
  });
}

/**
 * @param {Block} block
 * @param {Map<string, string>} tools
 * @returns {import("./transcript.js").Part[]}
 */
function partOf({ type, text, id = "", name = "", input }, tools) {
  if (type === "text") return [{ type, text }];
  if (type !== "tool_use") return [];
  const own = MEMORY_TOOL.exec(name)?.[1];
  if (own && own !== "memory_forget") return [];
  tools.set(id, own ?? name);
  return [{ type: "toolCall", id, name: own ?? name, arguments: input }];
}

/**
 * @param {Block} block
 * @param {Map<string, string>} tools
 * @param {{ timestamp: number }} at
 */
function resultOf({ type, tool_use_id: id = "", content = "" }, tools, at) {
  const toolName = tools.get(id);
  if (type !== "tool_result" || !toolName) return [];
  const parts = typeof content === "string" ? content : content.flatMap((one) => partOf(one, tools));
  return [{ ...at, role: "toolResult", toolCallId: id, toolName, content: parts }];
}

/** @param {Message[]} messages */
export function textOfLast(messages) {
  const last = messages.findLast((message) => message.role === "assistant" && textOf(message));
  return last && textOf(last).trim();
}

/**
 * Return the turns whose messages are later than `until`; only the last turn if `until` is unknown.
 *
 * @param {Message[]} messages
 * @param {number | undefined} until Unix milliseconds
 * @returns {Message[][]}
 */
export function turnsAfter(messages, until) {
  /** @type {Message[][]} */
  const turns = [];
  for (const message of messages) {
    if (message.role === "user" || !turns.length) turns.push([message]);
    else turns.at(-1)?.push(message);
  }
  if (until === undefined) return turns.slice(-1);
  return turns.filter((turn) => turn.some(({ timestamp = 0 }) => timestamp > until));
}
