/** Sends turns to the gateway, and keeps them while it does not answer. */

import { Unavailable, sessionKey } from "./gateway.js";

const MAX_KEPT = 500;
const MAX_SENT = 100;

/**
 * @typedef {import("./gateway.js").User} User
 * @typedef {import("./transcript.js").Row} Row
 * @typedef {{ user: User, sessionId: string, rows: Row[], isFlushed: boolean }} Box
 */

export class Capture {
  /** @type {Map<string, Box>} by user and session: what the gateway has not confirmed */
  #boxes = new Map();
  /** @type {Promise<void>} */
  #last = Promise.resolve();

  /**
   * @param {import("./gateway.js").Gateway} gateway
   * @param {{ warn(message: string): void }} logger
   */
  constructor(gateway, logger) {
    this.gateway = gateway;
    this.logger = logger;
  }

  /**
   * Keep a turn's messages for `send`. Of a session, the oldest are dropped beyond 500.
   *
   * @param {User} user
   * @param {string} sessionId
   * @param {Row[]} rows
   */
  add(user, sessionId, rows) {
    const name = JSON.stringify([user.userId, sessionId]);
    const box = this.#boxes.get(name) ?? { user, sessionId, rows: [], isFlushed: true };
    box.rows = [...box.rows, ...rows].slice(-MAX_KEPT);
    this.#boxes.set(name, box);
  }

  /**
   * Send what is kept, of one session or of all, and make memories of it if `flush`. Calls run one after the other.
   * A session that the gateway refuses is logged and dropped.
   *
   * @param {{ sessionId?: string, flush: boolean }} options
   */
  send(options) {
    this.#last = this.#last.then(() => this.#send(options));
    return this.#last;
  }

  /** @param {{ sessionId?: string, flush: boolean }} options */
  async #send({ sessionId, flush }) {
    for (const [name, box] of [...this.#boxes]) {
      if (this.gateway.isPaused) return;
      if (sessionId !== undefined && sessionId !== box.sessionId) continue;
      try {
        await this.#sendBox(box, flush);
        if (box.isFlushed && !box.rows.length) this.#boxes.delete(name);
      } catch (error) {
        this.logger.warn(`memory-gateway: session ${box.sessionId} was not captured: ${error}`);
        if (error instanceof Unavailable) return;
        this.#boxes.delete(name);
      }
    }
  }

  /**
   * @param {Box} box
   * @param {boolean} flush
   */
  async #sendBox(box, flush) {
    const { user } = box;
    const names = { user_id: user.userId, session_id: sessionKey(box.sessionId) };
    while (box.rows.length) {
      const messages = box.rows.slice(0, MAX_SENT);
      await this.gateway.call("/memories/add", { user, body: { ...names, messages } });
      box.rows = box.rows.filter((row) => !messages.includes(row));
      box.isFlushed = false;
    }
    if (!flush || box.isFlushed) return;
    await this.gateway.call("/memories/flush", { user, body: names });
    box.isFlushed = true;
  }
}
