/** `openclaw memory-gateway doctor`. OpenClaw loads no plugin without its slot, and names a missing slot itself. */

import { Gateway, Refused, Unavailable, hasSenders, readConfig, userOf } from "./gateway.js";

export const ID = "memory-gateway";
const CHECK_MS = 5_000;

/** @typedef {import("openclaw/plugin-sdk/plugin-entry").OpenClawConfig} OpenClawConfig */

/**
 * Return what keeps the plugin from working, each with its remedy; empty if nothing does.
 *
 * @param {OpenClawConfig} openclaw
 * @returns {Promise<string[]>}
 */
export async function diagnose(openclaw) {
  const entry = openclaw.plugins?.entries?.[ID];
  const config = readConfig(entry?.config);
  const problems = [];
  if ((config.autoRecall || config.autoCapture) && entry?.hooks?.allowConversationAccess !== true) {
    const path = `plugins.entries.${ID}.hooks.allowConversationAccess`;
    problems.push(`missing conversation access: nothing is recalled or captured. Set ${path} to true.`);
  }
  if (config.autoRecall && entry?.hooks?.allowPromptInjection === false) {
    const path = `plugins.entries.${ID}.hooks.allowPromptInjection`;
    problems.push(`no prompt injection: nothing is recalled. Remove ${path}.`);
  }
  if (hasSenders(config.users) && (openclaw.session?.dmScope ?? "main") === "main") {
    problems.push('shared session: senders read each other\'s messages. Set session.dmScope to "per-channel-peer".');
  }
  for (const agentId of agentsOf(openclaw)) {
    if (userOf(config.users, { agentId })) continue;
    const path = `plugins.entries.${ID}.config.users`;
    problems.push(`missing key: agent ${agentId} has no memory. Add "agent:${agentId}" or "*" to ${path}.`);
  }
  return [...problems, ...(await diagnoseGateway(config))];
}

/** @param {import("./gateway.js").Config} config */
async function diagnoseGateway(config) {
  const gateway = new Gateway(config.url);
  const problems = [];
  try {
    await gateway.call("/health", { ms: CHECK_MS });
    for (const [name, user] of Object.entries(config.users)) {
      try {
        await gateway.call(`/sessions?limit=1&user_id=${encodeURIComponent(user.userId)}`, { user, ms: CHECK_MS });
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        problems.push(`wrong key: the gateway refuses users["${name}"] (${error.status}: ${error.message})`);
      }
    }
  } catch (error) {
    if (!(error instanceof Unavailable || error instanceof Refused)) throw error;
    problems.push(`gateway away: ${error.message}. Start it, or correct plugins.entries.${ID}.config.url.`);
  }
  return problems;
}

/** @param {OpenClawConfig} openclaw */
function agentsOf({ agents }) {
  const names = Object.keys(agents?.entries ?? {});
  return names.length ? names : ["main"];
}
