/** `node doctor.js`: find what keeps the plugin from working. */

import { loaded } from "./links.js";
import { readSettings } from "./settings.js";

const CHECK_MS = 5_000;

/**
 * Return the problems, each with its remedy; empty if there are none.
 *
 * @param {Record<string, string | undefined>} env
 * @returns {Promise<string[]>}
 */
async function diagnose(env) {
  const { Gateway, Refused, Unavailable } = await loaded(() => import("./gateway.js"));
  const { settings, problems } = readSettings(env);
  if (problems.length) return problems;
  const { url, user } = settings;
  const gateway = new Gateway(url);
  try {
    await gateway.call("/health", { ms: CHECK_MS });
    await gateway.call(`/sessions?limit=1&user_id=${encodeURIComponent(user.userId)}`, { user, ms: CHECK_MS });
    return [];
  } catch (error) {
    if (error instanceof Unavailable) {
      return [`gateway away: ${error.message}. Start it, or correct MEMORY_GATEWAY_BASE_URL.`];
    }
    if (!(error instanceof Refused)) throw error;
    const { status, message } = error;
    return [`wrong key: the gateway refuses MEMORY_GATEWAY_USER_KEY for ${user.userId} (${status}: ${message})`];
  }
}

const problems = await diagnose(process.env).catch((error) => [error.message]);
console.log(problems.join("\n") || "Memory Gateway works.");
process.exitCode = problems.length ? 1 : 0;
