/** What the environment says: the gateway, and which of its users this is. */

/**
 * @typedef {import("./gateway.js").User} User
 * @typedef {{ url: string, user: User, fullContextMemory: boolean, recallLimit: number }} Settings
 */

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Return the settings, and what keeps them from being used, each with its remedy.
 *
 * @param {Record<string, string | undefined>} env
 * @returns {{ settings: Settings, problems: string[] }}
 */
export function readSettings(env) {
  const url = (env.MEMORY_GATEWAY_BASE_URL ?? "").replace(/\/+$/, "");
  const user = { userId: env.MEMORY_GATEWAY_USER_ID ?? "", apiKey: env.MEMORY_GATEWAY_USER_KEY ?? "" };
  const fullContextMemory = env.MEMORY_GATEWAY_FULL_CONTEXT === "1";
  const problems = addressProblems(url);
  if (!user.userId) problems.push("missing user: set MEMORY_GATEWAY_USER_ID to the id of the key's user.");
  if (!user.apiKey) problems.push("missing key: set MEMORY_GATEWAY_USER_KEY to the user's API key, uk_….");
  return { settings: { url, user, fullContextMemory, recallLimit: 10 }, problems };
}

/** @param {string} url */
function addressProblems(url) {
  if (!url) return ["missing URL: set MEMORY_GATEWAY_BASE_URL to the gateway's address, such as http://127.0.0.1:8010."];
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "" };
  if (!["http:", "https:"].includes(protocol)) {
    return [`wrong URL: MEMORY_GATEWAY_BASE_URL must read like http://127.0.0.1:8010, not ${url}.`];
  }
  if (protocol === "http:" && !LOOPBACK.includes(hostname)) {
    return [`http on a remote host: ${hostname} would get the key unencrypted. Use https in MEMORY_GATEWAY_BASE_URL.`];
  }
  return [];
}
