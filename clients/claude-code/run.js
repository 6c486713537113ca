/**
 * The hooks of Claude Code: recall before a prompt, capture at the end of a turn.
 *
 * `hook.js` passes the input of a hook on. Additional context is written to stdout.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Gateway, sessionKey } from "./gateway.js";
import { request } from "./request.js";
import { readSettings } from "./settings.js";
import { readTranscript, textOfLast, turnsAfter } from "./claude_transcript.js";
import { hasForgotten, recalledBlock, rowsOf, withoutRecalled } from "./transcript.js";

/** All of a hook, from the start of Node on. */
const BUDGET_MS = 1_800;
const MAX_SENT = 100;
const CONTEXT_TOKENS = 1500;

/**
 * @typedef {import("./settings.js").Settings} Settings
 * @typedef {{
 *   hook_event_name: string, session_id: string, transcript_path?: string, prompt?: string, prompt_id?: string,
 *   last_assistant_message?: string
 * }} Input
 * @typedef {{ until?: number, isFlushed: boolean }} State `until`: Unix milliseconds of the last message that was stored
 * @typedef {(path: string, options?: { body?: object }) => Promise<any>} Call
 */

/**
 * Run a hook.
 *
 * @param {Input} input
 */
export async function main(input) {
  const { settings, problems } = readSettings(process.env);
  if (problems.length) throw new Error(problems.join(" "));
  const gateway = new Gateway(settings.url, request);
  /** @type {Call} */
  const call = (path, options) =>
    gateway.call(path, { user: settings.user, ms: Math.max(1, Math.floor(BUDGET_MS - performance.now())), ...options });
  const event = input.hook_event_name;
  if (event === "SessionStart") return answer(event, await context(call));
  if (event === "UserPromptSubmit") return answer(event, await recalled(call, input, settings));
  await capture(call, input, settings);
}

/**
 * @param {string} hookEventName
 * @param {string} additionalContext
 */
function answer(hookEventName, additionalContext) {
  if (additionalContext) console.log(JSON.stringify({ hookSpecificOutput: { hookEventName, additionalContext } }));
}

/**
 * Return what the gateway knows of the user: the profiles, the facts and the newest memories, marked as data.
 *
 * @param {Call} call
 */
async function context(call) {
  const { text } = await call("/memories/context", { body: { agent_id: "main", max_tokens: CONTEXT_TOKENS } });
  return text;
}

/**
 * Return the memories that fit the prompt, as the gateway marks them.
 *
 * @param {Call} call
 * @param {Input} input
 * @param {Settings} settings
 */
async function recalled(call, { prompt = "", session_id: id }, { recallLimit }) {
  const query = withoutRecalled(prompt);
  if (!query) return "";
  const args = { query, limit: recallLimit };
  const body = { tool: "memory_recall", args, agentId: "main", sessionKey: sessionKey(id) };
  const { result } = await call("/tools/invoke", { body });
  return recalledBlock(result.content[0]?.text ?? "");
}

/**
 * Store the messages that are new in the transcript, and make memories of them.
 *
 * The gateway stores a message once. What it did not confirm is sent by the next hook of the session. If the last answer
 * is not in the transcript yet, it waits a moment.
 *
 * @param {Call} call
 * @param {Input} input
 * @param {Settings} settings
 */
async function capture(call, input, { user, fullContextMemory }) {
  const state = await readState(input.session_id);
  const last = input.last_assistant_message?.trim();
  let messages = await readTranscript(input.transcript_path ?? "");
  for (let wait = 0; last && textOfLast(messages) !== last && wait < 5; wait++) {
    await sleep(100);
    messages = await readTranscript(input.transcript_path ?? "");
  }
  const names = { userId: user.userId, agentId: "main", now: Date.now() };
  const turns = turnsAfter(messages, state.until).filter((turn) => !hasForgotten(turn));
  const rows = turns
    .flatMap((turn) => rowsOf(turn, names, { fullContextMemory, selfImprovingMemory: true }))
    .filter(({ timestamp }) => timestamp > (state.until ?? 0));
  const session = { user_id: user.userId, session_id: sessionKey(input.session_id) };
  while (rows.length) {
    const sent = rows.splice(0, MAX_SENT);
    await call("/memories/add", { body: { ...session, messages: sent } });
    Object.assign(state, { until: sent.at(-1)?.timestamp, isFlushed: false });
    await writeState(input.session_id, state);
  }
  if (state.isFlushed) return;
  await call("/memories/flush", { body: session });
  await writeState(input.session_id, { ...state, isFlushed: true });
}

/** @param {string} sessionId */
function stateFile(sessionId) {
  const folder = process.env.CLAUDE_PLUGIN_DATA;
  return folder && join(folder, `${encodeURIComponent(sessionId)}.json`);
}

/**
 * @param {string} sessionId
 * @returns {Promise<State>}
 */
async function readState(sessionId) {
  const file = stateFile(sessionId);
  try {
    return file ? JSON.parse(await readFile(file, "utf-8")) : { isFlushed: true };
  } catch {
    return { isFlushed: true }; // the first turn, or a damaged file
  }
}

/**
 * @param {string} sessionId
 * @param {State} state
 */
async function writeState(sessionId, state) {
  const file = stateFile(sessionId);
  if (!file) return;
  await mkdir(process.env.CLAUDE_PLUGIN_DATA ?? "", { recursive: true });
  await writeFile(file, JSON.stringify(state));
}
