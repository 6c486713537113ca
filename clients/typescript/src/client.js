/** The client and its groups of endpoints. Names of fields are the API's; each method sends one operation. */

import { InvalidAnswer, NotFound } from "./errors.js";
import { Transport, pages } from "./transport.js";

/**
 * @typedef {import("../schema.js").components["schemas"]} Schemas
 * @typedef {import("../schema.js").operations} Operations
 * @typedef {import("./transport.js").Request} Request
 * @typedef {import("./transport.js").Retries} Retries
 * @typedef {{ app_id?: string, project_id?: string }} Scope
 * @typedef {"user" | "work"} Kind
 * @typedef {{ etag: string }} Versioned
 * @typedef {{ if_match?: string }} Condition the `etag` that the object must still have
 * @typedef {{ content: Record<string, any>, etag: string }} Profile a document and the version that `if_match` takes
 * @typedef {Scope & {
 *   timeoutMs?: number, retries?: Partial<Retries>, fetch?: typeof fetch,
 *   sleep?: (seconds: number) => Promise<void>
 * }} ClientOptions `timeoutMs`: for an answer, 180,000 by default; `fetch`: in place of the platform's
 */

/**
 * The fields of a body that are neither the client's nor given as arguments.
 *
 * @template {keyof Schemas} Name
 * @template {string} [Given=never]
 * @typedef {Without<Schemas[Name], Given | "app_id" | "project_id" | "user_id">} Fields
 */

/**
 * `Omit` for each alternative of a union.
 *
 * @template Union
 * @template {string} Key
 * @typedef {Union extends unknown ? Omit<Union, Key> : never} Without
 */

/** @typedef {Omit<Extract<Schemas["MessageIn"], { role: unknown }>, "timestamp"> & { timestamp?: number }} NewMessage */

/**
 * The conditions of a list, and how many items a page has.
 *
 * @template {keyof Operations} Name
 * @typedef {Omit<
 *   NonNullable<Operations[Name]["parameters"]["query"]>, "app_id" | "project_id" | "user_id" | "cursor" | "before" | "limit"
 * > & { pageSize?: number }} Conditions
 */

/**
 * @template Item
 * @typedef {AsyncGenerator<Item, void, undefined>} Items
 */

/** Endpoints that share a transport and a scope. */
class Group {
  /**
   * @param {Transport} transport
   * @param {Scope} scope
   */
  constructor(transport, scope) {
    /** @protected */
    this._transport = transport;
    /** @protected */
    this._scope = scope;
  }

  /**
   * @protected
   * @param {string} method
   * @param {string} path
   * @param {Request} [request]
   * @returns {Promise<any>}
   */
  async _call(method, path, request) {
    const { document } = await this._transport.json(method, path, request);
    if (typeof document !== "object" || document === null) throw new InvalidAnswer("The answer is not one of a Memory Gateway.");
    return document;
  }

  /**
   * Return the answer with its `ETag`, the version for `if_match` of a change.
   *
   * @protected
   * @param {string} method
   * @param {string} path
   * @param {Request} [request]
   * @returns {Promise<any>}
   */
  async _versioned(method, path, request) {
    const { document, headers } = await this._transport.json(method, path, request);
    if (typeof document !== "object" || document === null) throw new InvalidAnswer("The answer is not one of a Memory Gateway.");
    return { ...document, etag: headers.get("ETag") ?? "" };
  }

  /**
   * @protected
   * @param {string} path
   * @param {string} key
   * @returns {Promise<any[]>}
   */
  async _list(path, key) {
    const { [key]: items } = await this._call("GET", path);
    if (!Array.isArray(items)) throw new InvalidAnswer("The answer is not one of a Memory Gateway.");
    return items;
  }

  /**
   * @protected
   * @param {string} path
   * @param {string} key
   * @param {{ pageSize?: number }} conditions
   * @param {(page: any) => Record<string, unknown> | undefined} [followingOf]
   */
  _pages(path, key, { pageSize = 100, ...conditions }, followingOf) {
    const query = { ...this._scope, ...conditions, limit: pageSize };
    return pages((following) => this._call("GET", path, { query: { ...query, ...following } }), key, followingOf);
  }
}

/** Stored memories: `client.memories`. */
export class Memories extends Group {
  /**
   * Search memories. The default `scope` here is `all_user_memory`.
   *
   * @param {string} query
   * @param {Fields<"SearchBodyRequest", "query">} [options]
   * @returns {Promise<Schemas["SearchOut"]>}
   */
  search(query, options) {
    const body = { ...this._scope, query, scope: ["all_user_memory"], ...options };
    return this._call("POST", "/memories/search", { body, isIdempotent: true });
  }

  /**
   * Return what an agent's prompt should hold: the profile, the facts, and the memories that fit `query`.
   *
   * @param {Fields<"ContextBodyRequest">} [options]
   * @returns {Promise<Schemas["PromptContext"]>}
   */
  context(options = {}) {
    return this._call("POST", "/memories/context", { body: { ...this._scope, ...options }, isIdempotent: true });
  }

  /**
   * Store a fact in one call. With an `external_id` that is known, its memory is changed.
   *
   * @param {string} text
   * @param {Fields<"FactBodyRequest", "text"> & Condition} [options]
   * @returns {Promise<Schemas["FactOut"] & Versioned>}
   */
  store(text, { if_match: etag, ...options } = {}) {
    const body = { ...this._scope, text, ...options };
    return this._versioned("POST", "/memories", { body, headers: matching(etag), isKeyed: true });
  }

  /**
   * Store up to 500 facts, each by itself.
   *
   * @param {Schemas["BulkBodyRequest"]["memories"]} memories
   * @returns {Promise<Schemas["BulkOut"]>}
   */
  storeMany(memories) {
    const items = memories.map((one) => ({ ...this._scope, ...one }));
    return this._call("POST", "/memories/bulk", { body: { memories: items }, isKeyed: true });
  }

  /**
   * Iterate over the memories, newest first.
   *
   * @param {Conditions<"list_memories">} [conditions]
   * @returns {Items<Schemas["MemoryOut"]>}
   */
  list(conditions = {}) {
    return this._pages("/memories", "memories", conditions);
  }

  /**
   * Return a memory with its history; with `as_of`, as it was then.
   *
   * @param {string} memoryId
   * @param {Conditions<"get_memory">} [conditions]
   * @returns {Promise<Schemas["MemoryDetail"] & Versioned>}
   */
  get(memoryId, conditions = {}) {
    return this._versioned("GET", path`/memories/${memoryId}`, { query: { ...this._scope, ...conditions } });
  }

  /**
   * Override the text (`override_text`), category or importance of a memory.
   *
   * @param {string} memoryId
   * @param {Fields<"PatchedOverrideBodyRequest"> & Condition} changes
   * @returns {Promise<Schemas["OverrideOut"] & Versioned>}
   */
  update(memoryId, { if_match: etag, ...changes }) {
    const request = { body: { ...this._scope, ...changes }, headers: matching(etag) };
    return this._versioned("PATCH", path`/memories/${memoryId}`, request);
  }

  /**
   * Remove a memory's override, so that its original text holds again.
   *
   * @param {string} memoryId
   * @param {{ copies?: boolean } & Condition} [options]
   * @returns {Promise<Schemas["OverrideOut"]>}
   */
  undoUpdate(memoryId, { if_match: etag, ...fields } = {}) {
    const request = { query: { ...this._scope, ...fields }, headers: matching(etag), isIdempotent: false };
    return this._call("DELETE", path`/memories/${memoryId}/override`, request);
  }

  /**
   * Move a memory to the trash.
   *
   * @param {string} memoryId
   * @param {Fields<"DeletionBodyRequest"> & { copies?: boolean } & Condition} [options]
   * @returns {Promise<Schemas["Deleted"]>}
   */
  delete(memoryId, { if_match: etag, copies, ...fields } = {}) {
    const body = { ...this._scope, ...fields };
    const request = { query: { copies }, body, headers: matching(etag), isIdempotent: etag === undefined };
    return this._call("DELETE", path`/memories/${memoryId}`, request);
  }

  /**
   * Move all memories that meet `filters` to the trash: first with `dry_run`, then with the `count` of its answer as
   * `expected_count`.
   *
   * @param {Fields<"FilteredDeletionBodyRequest">["filters"]} filters
   * @param {Fields<"FilteredDeletionBodyRequest", "filters">} [options]
   * @returns {Promise<Schemas["FilteredDeletion"]>}
   */
  deleteMany(filters, options) {
    return this._call("POST", "/memories/delete", { body: { ...this._scope, filters, ...options }, isKeyed: true });
  }

  /**
   * Move all memories that have all these words, with their copies, to the trash: first with `dry_run`, which returns
   * what would go, then with the `count` of its answer as `expected_count`.
   *
   * @param {string} words
   * @param {Fields<"ForgetBodyRequest", "words">} [options]
   * @returns {Promise<Schemas["FilteredDeletion"]>}
   */
  forget(words, options) {
    return this._call("POST", "/memories/forget", { body: { ...this._scope, words, ...options }, isKeyed: true });
  }

  /**
   * Return a deletion by `deleteMany` or `forget` that a worker carries out.
   *
   * @param {string} deletionId
   * @returns {Promise<Schemas["FilteredDeletion"]>}
   */
  deletion(deletionId) {
    return this._call("GET", path`/memories/delete/${deletionId}`);
  }

  /**
   * Restore what a deletion by `deleteMany` or `forget` moved to the trash.
   *
   * @param {string} deletionId
   * @returns {Promise<Schemas["FilteredDeletion"]>}
   */
  undoDeletion(deletionId) {
    return this._call("POST", path`/memories/delete/${deletionId}/undo`, { body: {}, isKeyed: true });
  }

  /**
   * Move the messages of a sender, of one session or of all, to the trash. Not available with EverOS.
   *
   * @param {string} senderId
   * @param {Fields<"SenderDeletionBodyRequest", "sender_id">} [options]
   * @returns {Promise<Schemas["SenderDeleted"]>}
   */
  deleteOfSender(senderId, options) {
    return this._call("DELETE", "/memories", { body: { ...this._scope, sender_id: senderId, ...options } });
  }

  /**
   * Restore a memory from the trash.
   *
   * @param {string} memoryId
   * @param {Fields<"MemoryRestoreBodyRequest"> & Condition} [options]
   * @returns {Promise<Schemas["Restored"]>}
   */
  restore(memoryId, { if_match: etag, ...fields } = {}) {
    const body = { ...this._scope, ...fields };
    return this._call("POST", path`/memories/${memoryId}/restore`, { body, headers: matching(etag), isKeyed: true });
  }

  /**
   * Iterate over deleted memories and sessions, newest first.
   *
   * @param {Conditions<"list_trash">} [conditions]
   * @returns {Items<Schemas["TrashItem"]>}
   */
  trash(conditions = {}) {
    return this._pages("/memories/trash", "trash", conditions);
  }
}

/** Conversations: `client.sessions`. */
export class Sessions extends Group {
  /**
   * Add messages, which can be searched at once. The session is created if it does not exist.
   *
   * `participants` are the other people of a group chat. The gateway stores a message with the same timestamp once; the
   * default is now.
   *
   * @param {string} sessionId
   * @param {NewMessage[]} messages
   * @param {Fields<"AddBodyRequest", "session_id" | "messages">} [options]
   * @returns {Promise<Schemas["AddOut"]>}
   */
  add(sessionId, messages, options) {
    const timed = messages.map((message) => ({ timestamp: Date.now(), ...message }));
    const body = { ...this._scope, session_id: sessionId, messages: timed, ...options };
    return this._call("POST", "/memories/add", { body, isKeyed: true });
  }

  /**
   * Turn the session's messages into memories, at the end of a conversation. `end: true` ends an incognito session.
   *
   * @param {string} sessionId
   * @param {Partial<Fields<"FlushBodyRequest", "session_id">>} [options]
   * @returns {Promise<Schemas["FlushOut"]>}
   */
  flush(sessionId, options = {}) {
    const body = { ...this._scope, session_id: sessionId, ...options };
    return this._call("POST", "/memories/flush", { body, isKeyed: true });
  }

  /**
   * Iterate over the sessions, or with `deleted` over those in the trash, newest first.
   *
   * @param {Conditions<"list_sessions">} [conditions]
   * @returns {Items<Schemas["SessionItem"]>}
   */
  list(conditions = {}) {
    return this._pages("/sessions", "sessions", conditions);
  }

  /**
   * Return a session, also one in the trash.
   *
   * @param {string} sessionId
   * @returns {Promise<Schemas["SessionItem"] & Versioned>}
   */
  get(sessionId) {
    return this._versioned("GET", path`/sessions/${sessionId}`, { query: this._scope });
  }

  /**
   * Move a session with all its memories to the trash.
   *
   * @param {string} sessionId
   * @param {Fields<"SessionDeletionBodyRequest"> & Condition} [options]
   * @returns {Promise<Schemas["SessionDecided"]>}
   */
  delete(sessionId, { if_match: etag, ...fields } = {}) {
    const request = { body: { ...this._scope, ...fields }, headers: matching(etag), isIdempotent: etag === undefined };
    return this._call("DELETE", path`/sessions/${sessionId}`, request);
  }

  /**
   * Restore a session from the trash.
   *
   * @param {string} sessionId
   * @param {Fields<"SessionRestoreBodyRequest"> & Condition} [options]
   * @returns {Promise<Schemas["SessionDecided"]>}
   */
  restore(sessionId, { if_match: etag, ...fields } = {}) {
    const request = { body: { ...this._scope, ...fields }, headers: matching(etag), isKeyed: true };
    return this._call("POST", path`/sessions/${sessionId}/restore`, request);
  }
}

/** Files: `client.resources`. */
export class Resources extends Group {
  /**
   * Upload a file, and wait until it can be searched; with `wait: false`, return before its ingestion.
   *
   * `file` is streamed: in Node, `openAsBlob` of `node:fs` opens one. The default of `filename` is the name of a `File`.
   *
   * @param {Blob} file
   * @param {Fields<"UploadFormRequest", "file" | "tags" | "metadata"> & {
   *   tags?: string[], metadata?: Record<string, unknown>, filename?: string, wait?: boolean
   * }} [options]
   * @returns {Promise<Schemas["ResourceAnswer"]>}
   */
  upload(file, { filename = "name" in file ? `${file.name}` : "file", wait = true, ...fields } = {}) {
    const form = new FormData();
    for (const [name, value] of Object.entries({ ...this._scope, ...fields })) {
      if (value) form.append(name, typeof value === "string" ? value : JSON.stringify(value));
    }
    form.append("file", file, filename);
    return this._call("POST", "/resources", { form, headers: preferring(wait), isKeyed: true });
  }

  /**
   * Register a file that is stored elsewhere: at `source_uri`, to be read once from `ingest_uri`.
   *
   * @param {string} filename
   * @param {string} sourceUri
   * @param {Fields<"ExternalBodyRequest", "filename" | "source_uri"> & { wait?: boolean }} [options]
   * @returns {Promise<Schemas["RegisteredAnswer"]>}
   */
  register(filename, sourceUri, { wait = true, ...fields } = {}) {
    const body = { ...this._scope, filename, source_uri: sourceUri, ...fields };
    return this._call("POST", "/resources/external", { body, headers: preferring(wait), isKeyed: true });
  }

  /**
   * Iterate over the files, or with `deleted` over those in the trash, newest first.
   *
   * @param {Conditions<"list_resources">} [conditions]
   * @returns {Items<Schemas["ResourceItem"]>}
   */
  list(conditions = {}) {
    return this._pages("/resources", "resources", conditions);
  }

  /**
   * Return a file's metadata.
   *
   * @param {string} resourceId
   * @returns {Promise<Schemas["ResourceItem"] & Versioned>}
   * @throws {NotFound}
   */
  async get(resourceId) {
    const { document, headers } = await this._transport.json("GET", path`/resources/${resourceId}`);
    if (document.resources?.length) return { ...document.resources[0], etag: headers.get("ETag") ?? "" };
    const requestId = headers.get("X-Request-ID") ?? undefined;
    throw new NotFound(404, "not_found", "There is no such resource.", { requestId });
  }

  /**
   * Iterate over the bytes of an uploaded file.
   *
   * @param {string} resourceId
   * @returns {Items<Uint8Array>}
   */
  content(resourceId) {
    return this._transport.stream(path`/resources/${resourceId}/content`);
  }

  /**
   * Replace the tags or the metadata of a file and of its memories; null for none.
   *
   * @param {string} resourceId
   * @param {Fields<"PatchedLabelsBodyRequest"> & Condition} options
   * @returns {Promise<Schemas["ResourceAnswer"]>}
   */
  update(resourceId, { if_match: etag, ...fields }) {
    return this._call("PATCH", path`/resources/${resourceId}`, { body: fields, headers: matching(etag) });
  }

  /**
   * Move a file to the trash, with its memories.
   *
   * @param {string} resourceId
   * @param {Condition} [options]
   * @returns {Promise<Schemas["ResourceAnswer"]>}
   */
  delete(resourceId, { if_match: etag } = {}) {
    return this._call("DELETE", path`/resources/${resourceId}`, { headers: matching(etag), isIdempotent: false });
  }

  /**
   * Restore a file from the trash; one that has expired with a new time, or null for never.
   *
   * @param {string} resourceId
   * @param {{ expires_at?: string | null }} [fields]
   * @returns {Promise<Schemas["ResourceAnswer"]>}
   */
  restore(resourceId, fields = {}) {
    return this._call("POST", path`/resources/${resourceId}/restore`, { body: fields, isKeyed: true });
  }
}

/** The documents `user` and `work`: `client.profiles`. `profiles.schema` describes their content. */
export class Profiles extends Group {
  /**
   * Return a document.
   *
   * @param {Kind} kind
   */
  get(kind) {
    return this.#profile("GET", path`/api/v1/memories/${kind}`);
  }

  /**
   * Return both documents.
   *
   * @returns {Promise<Schemas["BothMemories"]>}
   */
  getBoth() {
    return this._call("GET", "/api/v1/memories/");
  }

  /**
   * Change some fields of a document (JSON Merge Patch). `merge_lists` merges lists of entries by `name`.
   *
   * @param {Kind} kind
   * @param {Record<string, unknown>} changes
   * @param {{ merge_lists?: boolean, agent_id?: string, if_match?: string }} [options]
   */
  update(kind, changes, { if_match: etag, ...fields } = {}) {
    const body = { content: changes, ...fields };
    return this.#profile("PATCH", path`/api/v1/memories/${kind}`, { body, headers: { "If-Match": etag } });
  }

  /**
   * Replace a document. Absent fields take their defaults.
   *
   * @param {Kind} kind
   * @param {Record<string, unknown>} content
   * @param {{ agent_id?: string, if_match?: string }} [options]
   */
  replace(kind, content, { if_match: etag, ...fields } = {}) {
    const isIdempotent = etag === undefined; // the first attempt may have changed the ETag
    const headers = { "If-Match": etag };
    return this.#profile("PUT", path`/api/v1/memories/${kind}`, { body: { content, ...fields }, headers, isIdempotent });
  }

  /**
   * Iterate over the changes of a document, newest first.
   *
   * @param {Kind} kind
   * @param {{ pageSize?: number }} [conditions]
   * @returns {Items<Schemas["Change"]>}
   */
  history(kind, { pageSize = 100 } = {}) {
    return pages(
      (following) => this._call("GET", path`/api/v1/memories/${kind}/history`, { query: { limit: pageSize, ...following } }),
      "changes",
      ({ changes }) => (changes.length === pageSize ? { before: changes.at(-1).version } : undefined),
    );
  }

  /**
   * Return a document as it was after a change.
   *
   * @param {Kind} kind
   * @param {number} version
   * @returns {Promise<Schemas["Revision"]>}
   */
  version(kind, version) {
    return this._call("GET", path`/api/v1/memories/${kind}/history/${version}`);
  }

  /**
   * Make a former version of a document the current one.
   *
   * @param {Kind} kind
   * @param {number} version
   * @param {{ if_match?: string }} [options]
   */
  restore(kind, version, { if_match: etag } = {}) {
    const request = { body: {}, headers: { "If-Match": etag }, isKeyed: true };
    return this.#profile("POST", path`/api/v1/memories/${kind}/restore/${version}`, request);
  }

  /**
   * Return the documents as a text for the system prompt of a `router` or a `worker`.
   *
   * @param {Operations["get_profile_prompt"]["parameters"]["query"]["agent"]} agent
   * @param {Omit<Operations["get_profile_prompt"]["parameters"]["query"], "agent" | "user_id">} [options]
   * @returns {Promise<Schemas["Prompt"]>}
   */
  prompt(agent, options) {
    return this._call("GET", "/api/v1/memories/prompt", { query: { agent, ...options } });
  }

  /**
   * Return the JSON Schema of a document.
   *
   * @param {Kind} kind
   * @returns {Promise<Record<string, any>>}
   */
  schema(kind) {
    return this._call("GET", path`/api/v1/memories/schema/${kind}`);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Request} [request]
   * @returns {Promise<Profile>}
   */
  async #profile(method, path, request) {
    const { document, headers } = await this._transport.json(method, path, request);
    return { content: document, etag: headers.get("ETag") ?? "" };
  }
}

/** Users: `client.users`. */
export class Users extends Group {
  /**
   * Create a user with an API key. The production profile requires the provisioning token.
   *
   * @param {string} userId
   * @param {{ provisioningToken?: string }} [options]
   * @returns {Promise<Schemas["CreatedUser"]>}
   */
  create(userId, { provisioningToken } = {}) {
    return this._call("POST", "/users", { body: { user_id: userId }, headers: bearer(provisioningToken) });
  }

  /**
   * Set what operators know of a user. The production profile requires the provisioning token.
   *
   * @param {string} userId
   * @param {Without<Schemas["PatchedDescribeUserBodyRequest"], "user_id"> & { provisioningToken?: string }} [options]
   * @returns {Promise<Schemas["DescribedUser"]>}
   */
  describe(userId, { provisioningToken, ...values } = {}) {
    return this._call("PATCH", "/users", { body: { user_id: userId, ...values }, headers: bearer(provisioningToken) });
  }

  /**
   * Return what the person lets the gateway keep. Needs a key with the scope `controls`.
   *
   * @returns {Promise<Schemas["ControlsView"]>}
   */
  controls() {
    return this._call("GET", "/users/me/controls");
  }

  /**
   * Pause sources, and add words and topics that are never remembered. Only the person takes any of it back.
   *
   * @param {Fields<"ControlsBodyRequest">} controls
   * @returns {Promise<Schemas["ControlsView"]>}
   */
  tightenControls(controls) {
    return this._call("PUT", "/users/me/controls", { body: controls });
  }

  /**
   * Iterate over the bytes of a ZIP archive of all data of the user. Needs a key without limits.
   *
   * @returns {AsyncGenerator<Uint8Array, void, void>}
   */
  export() {
    return this._transport.stream("/users/me/export");
  }

  /**
   * Iterate over the events about the user's data, newest first. Needs a key without limits.
   *
   * @param {{ pageSize?: number }} [conditions]
   * @returns {Items<Schemas["AuditEventOut"]>}
   */
  audit({ pageSize = 100 } = {}) {
    const query = { limit: pageSize };
    return pages((following) => this._call("GET", "/users/me/audit", { query: { ...query, ...following } }), "events");
  }

  /**
   * Return after how many days memories expire that name no time.
   *
   * @returns {Promise<Schemas["ExpiryOut"] & Versioned>}
   */
  expiry() {
    return this._versioned("GET", "/users/me/expiry");
  }

  /**
   * Set after how many days memories expire that are stored from now on, by category, or `tag:` and a tag.
   *
   * @param {Schemas["ExpiryBodyRequest"]["days"]} days
   * @param {Condition} [options]
   * @returns {Promise<Schemas["ExpiryOut"] & Versioned>}
   */
  setExpiry(days, { if_match: etag } = {}) {
    return this._versioned("PUT", "/users/me/expiry", { body: { days }, headers: matching(etag), isIdempotent: etag === undefined });
  }

  /**
   * Erase a user with all data. It cannot be undone.
   *
   * @param {string} userId
   * @param {{ confirm: string, provisioningToken?: string }} options `confirm` is `erase:` and the user's id
   * @returns {Promise<Schemas["ErasureReceipt"]>}
   */
  erase(userId, { confirm, provisioningToken }) {
    const query = { user_id: userId, confirm };
    return this._call("DELETE", "/users", { query, headers: bearer(provisioningToken), isIdempotent: false });
  }

  /**
   * Make a one-time link to the user's own pages. Open it in the user's browser within ten minutes.
   *
   * @param {{ user_id?: string, frame_origin?: string, provisioningToken?: string }} [options] `user_id` is for the token
   * @returns {Promise<Schemas["NewPortalLink"]>}
   */
  portalLink({ provisioningToken, ...body } = {}) {
    return this._call("POST", "/portal-links", { body, headers: bearer(provisioningToken) });
  }

  /**
   * Make a key of at most an hour, for a page that calls the API from the user's browser.
   *
   * @param {string} userId
   * @param {Fields<"BrowserKeyBodyRequest"> & { provisioningToken?: string }} options
   * @returns {Promise<Schemas["NewKey"]>}
   */
  browserKey(userId, { provisioningToken, ...fields }) {
    const body = { user_id: userId, ...fields };
    return this._call("POST", "/browser-keys", { body, headers: bearer(provisioningToken) });
  }
}

/** The user's API keys: `client.keys`. */
export class Keys extends Group {
  /**
   * Return all keys, without their plaintext.
   *
   * @returns {Promise<Schemas["KeyView"][]>}
   */
  list() {
    return this._list("/users/me/keys", "keys");
  }

  /**
   * Create a key, for one device or application.
   *
   * @param {Without<Schemas["IssueKeyBodyRequest"], "user_id">} [options]
   * @returns {Promise<Schemas["NewKey"]>}
   */
  create(options) {
    return this._call("POST", "/users/me/keys", { body: { ...options }, isKeyed: true });
  }

  /**
   * Create a key in place of this client's key, which ends after the grace period. Continue with a new client.
   *
   * @param {Fields<"RotateKeyBodyRequest">} [options]
   * @returns {Promise<Schemas["RotatedKey"]>}
   */
  rotate(options) {
    return this._call("POST", "/users/me/keys/rotate", { body: { ...options }, isKeyed: true });
  }

  /**
   * End a key at once.
   *
   * @param {string} keyId
   * @returns {Promise<Schemas["RevokedKey"]>}
   */
  revoke(keyId) {
    return this._call("DELETE", path`/users/me/keys/${keyId}`, { isIdempotent: false });
  }
}

/** Addresses that get the user's events: `client.webhooks`. `verifyWebhook` checks what they receive. */
export class Webhooks extends Group {
  /**
   * Create a webhook for these types of `events`, or for all.
   *
   * @param {string} url
   * @param {Fields<"WebhookBodyRequest", "url">} [options]
   * @returns {Promise<Schemas["NewWebhook"]>}
   */
  create(url, options) {
    return this._call("POST", "/webhooks", { body: { url, ...options }, isKeyed: true });
  }

  /**
   * Return all webhooks, without their secrets.
   *
   * @returns {Promise<Schemas["WebhookView"][]>}
   */
  list() {
    return this._list("/webhooks", "webhooks");
  }

  /**
   * Return a webhook without its secret.
   *
   * @param {string} webhookId
   * @returns {Promise<Schemas["WebhookView"]>}
   */
  get(webhookId) {
    return this._call("GET", path`/webhooks/${webhookId}`);
  }

  /**
   * Change the given parts of a webhook.
   *
   * @param {string} webhookId
   * @param {Fields<"PatchedWebhookChangeBodyRequest">} changes
   * @returns {Promise<Schemas["WebhookView"]>}
   */
  update(webhookId, changes) {
    return this._call("PATCH", path`/webhooks/${webhookId}`, { body: { ...changes } });
  }

  /**
   * Delete a webhook with its deliveries.
   *
   * @param {string} webhookId
   * @returns {Promise<Schemas["DeletedWebhook"]>}
   */
  delete(webhookId) {
    return this._call("DELETE", path`/webhooks/${webhookId}`, { isIdempotent: false });
  }

  /**
   * Replace the secret. Events are signed by the old one too until the grace period ends.
   *
   * @param {string} webhookId
   * @param {Fields<"RotateSecretBodyRequest">} [options]
   * @returns {Promise<Schemas["NewWebhook"]>}
   */
  rotateSecret(webhookId, options) {
    return this._call("POST", path`/webhooks/${webhookId}/rotate-secret`, { body: { ...options }, isKeyed: true });
  }

  /**
   * Send the event `webhook.test`. `deliveries` shows the result.
   *
   * @param {string} webhookId
   * @returns {Promise<Schemas["WebhookDeliveryView"]>}
   */
  test(webhookId) {
    return this._call("POST", path`/webhooks/${webhookId}/test`, { body: {}, isKeyed: true });
  }

  /**
   * Iterate over the deliveries of the last 30 days, newest first.
   *
   * @param {string} webhookId
   * @param {Conditions<"list_webhook_deliveries">} [conditions]
   * @returns {Items<Schemas["WebhookDeliveryView"]>}
   */
  deliveries(webhookId, { pageSize = 100, ...conditions } = {}) {
    return pages(
      (following) =>
        this._call("GET", path`/webhooks/${webhookId}/deliveries`, {
          query: { limit: pageSize, ...conditions, ...following },
        }),
      "deliveries",
    );
  }
}

/** A client of one user. `app_id` and `project_id` are the scope of all its calls. */
export class Client extends Group {
  #again;

  /**
   * @param {string} baseUrl such as http://127.0.0.1:8010
   * @param {string} [apiKey]
   * @param {ClientOptions} [options]
   * @throws {TypeError} the address is not one of HTTP
   */
  constructor(baseUrl, apiKey, options = {}) {
    const { app_id, project_id, timeoutMs = 180_000, retries, fetch: given = fetch, sleep = slept } = options;
    const transport = new Transport({
      baseUrl: addressOf(baseUrl),
      apiKey,
      timeoutMs,
      retries: { attempts: 3, longestWait: 30, ...retries },
      fetch: (input, init) => given(input, init), // browsers refuse to call it as a method
      sleep,
    });
    const scope = { app_id, project_id };
    super(transport, scope);
    this.#again = (/** @type {Scope} */ { app_id, project_id }) =>
      new Client(baseUrl, apiKey, { ...options, app_id, project_id });
    this.memories = new Memories(transport, scope);
    this.sessions = new Sessions(transport, scope);
    this.resources = new Resources(transport, scope);
    this.profiles = new Profiles(transport, scope);
    this.users = new Users(transport, scope);
    this.keys = new Keys(transport, scope);
    this.webhooks = new Webhooks(transport, scope);
  }

  /**
   * Return a client of another scope, with the key of this one.
   *
   * @param {Scope} scope
   * @returns {Client}
   */
  inScope(scope) {
    return this.#again(scope);
  }

  /**
   * Return the state of the gateway and its engine.
   *
   * @returns {Promise<Schemas["HealthAnswer"]>}
   */
  health() {
    return this._call("GET", "/health");
  }
}

/**
 * Return the path with its values quoted.
 *
 * @param {TemplateStringsArray} parts
 * @param {(string | number)[]} values
 * @throws {TypeError} a value would change the path
 */
function path(parts, ...values) {
  return String.raw(
    { raw: parts },
    ...values.map((value) => {
      if (/^\.{0,2}$/.test(`${value}`)) throw new TypeError(`${JSON.stringify(value)} is no id.`);
      return encodeURIComponent(value);
    }),
  );
}

/** @param {string} baseUrl */
function addressOf(baseUrl) {
  const { protocol, search, hash } = URL.canParse(baseUrl) ? new URL(baseUrl) : { protocol: "", search: "", hash: "" };
  if (!["http:", "https:"].includes(protocol) || search || hash) {
    throw new TypeError(`The address must read like http://127.0.0.1:8010, not ${JSON.stringify(baseUrl)}.`);
  }
  return baseUrl.replace(/\/+$/, "");
}

/** @param {string | undefined} token */
function bearer(token) {
  return { ...(token && { Authorization: `Bearer ${token}` }) };
}

/** @param {string | undefined} etag */
function matching(etag) {
  return { "If-Match": etag };
}

/** @param {boolean} wait */
function preferring(wait) {
  return { Prefer: wait ? undefined : "respond-async" };
}

/** @param {number} seconds */
function slept(seconds) {
  return new Promise((/** @type {(value: void) => void} */ resolve) => setTimeout(resolve, seconds * 1000));
}
