/**
 * The gateway's REST API, and which of its users a turn belongs to.
 *
 * @typedef {{ userId: string, apiKey: string }} User
 * @typedef {{ agentId?: string, channel?: string, senderId?: string }} Speaker
 * @typedef {{
 *   url: string, users: Record<string, User>, autoRecall: boolean, autoCapture: boolean, fullContextMemory: boolean,
 *   selfImprovingMemory: boolean, flushEachTurn: boolean, recallLimit: number
 * }} Config
 * @typedef {Pick<Response, "status" | "statusText" | "ok" | "json">} Answer
 */

export const RECALL_MS = 2_000;
const CALL_MS = 10_000;
/** While the gateway is unavailable, automatic calls are left out for this long. */
const PAUSE_MS = 30_000;

/**
 * @param {Record<string, unknown> | undefined} given
 * @returns {Config}
 */
export function readConfig(given) {
  return {
    url: "http://127.0.0.1:8010",
    users: {},
    autoRecall: true,
    autoCapture: true,
    fullContextMemory: true,
    selfImprovingMemory: true,
    flushEachTurn: true,
    recallLimit: 10,
    ...given,
  };
}

/**
 * Return the user of a sender, else of the agent, else of `*`.
 *
 * Once any sender has a user, a sender without one has no memory: the agent's user may be another person.
 *
 * @param {Record<string, User>} users
 * @param {Speaker} speaker
 * @returns {User | undefined}
 */
export function userOf(users, { agentId = "main", channel = "", senderId = "" }) {
  if (senderId && hasSenders(users)) return get(users, `${channel}:${senderId}`);
  return get(users, `agent:${agentId}`) ?? get(users, "*");
}

/**
 * Whether any sender has a user.
 *
 * @param {Record<string, User>} users
 */
export function hasSenders(users) {
  return Object.keys(users).some((name) => name !== "*" && !name.startsWith("agent:"));
}

/**
 * @param {Record<string, User>} users
 * @param {string} name
 */
function get(users, name) {
  return Object.hasOwn(users, name) ? users[name] : undefined;
}

/** The gateway is away or busy; later it may answer. */
export class Unavailable extends Error {}

/** The gateway refused the call. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Gateway {
  #pausedUntil = 0;

  /**
   * @param {string} url
   * @param {(url: string, options: any) => Promise<Answer>} request
   */
  constructor(url, request = fetch) {
    this.url = url.replace(/\/+$/, "");
    this.request = request;
  }

  /** Whether the gateway was unavailable a short time ago. */
  get isPaused() {
    return Date.now() < this.#pausedUntil;
  }

  /**
   * Call an endpoint: GET, or POST with a body.
   *
   * @param {string} path
   * @param {{ user?: User, body?: object, ms?: number }} [options]
   * @returns {Promise<any>}
   * @throws {Unavailable | Refused}
   */
  async call(path, { user, body, ms = CALL_MS } = {}) {
    let response, answer;
    try {
      response = await this.request(this.url + path, {
        method: body ? "POST" : "GET",
        headers: {
          ...(body && { "Content-Type": "application/json" }),
          ...(user && { Authorization: `Bearer ${user.apiKey}` }),
        },
        body: body && JSON.stringify(body),
        redirect: "error", // it would take the key along
        signal: AbortSignal.timeout(ms),
      });
      answer = await response.json();
    } catch (error) {
      const { message, cause } = /** @type {Error} */ (error);
      throw this.#pause(`${this.url} does not answer: ${cause instanceof Error ? cause.message : message}`);
    }
    const { status, ok } = response;
    const reason = answer?.detail ?? answer?.error?.message ?? response.statusText;
    if (status === 429 || status >= 500) throw this.#pause(`${this.url} answers ${status}: ${reason}`);
    this.#pausedUntil = 0;
    if (!ok) throw new Refused(status, reason);
    return answer;
  }

  /** @param {string} message */
  #pause(message) {
    this.#pausedUntil = Date.now() + PAUSE_MS;
    return new Unavailable(message);
  }

  /**
   * Call an agent tool and return its result, `{ content, details }`.
   *
   * @param {User} user
   * @param {string} tool
   * @param {object} args
   * @param {{ agentId?: string, sessionId?: string, ms?: number }} [options]
   */
  async tool(user, tool, args, { agentId = "main", sessionId, ms } = {}) {
    const body = { tool, args, agentId, ...(sessionId && { sessionKey: sessionKey(sessionId) }) };
    return (await this.call("/tools/invoke", { user, body, ms })).result;
  }
}

/** @param {string} sessionId */
export function sessionKey(sessionId) {
  return `session:${sessionId}`.slice(0, 128);
}
