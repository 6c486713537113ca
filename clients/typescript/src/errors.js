/**
 * All errors that a call can throw.
 *
 * MemoryGatewayError
 * ├── NoAnswer            no connection, a timeout, or a connection that broke
 * ├── InvalidAnswer       an answer that is not the gateway's, for example a proxy's page
 * ├── InvalidWebhook      thrown by `verifyWebhook`
 * └── Problem             the gateway refused the call: status, code, detail, errors, requestId, retryAfter
 *     ├── Unauthenticated 401, Forbidden 403, NotFound 404, Conflict 409, PreconditionFailed 412, TooLarge 413,
 *     │   UnsupportedType 415, InvalidInput 422, TooManyRequests 429
 *     └── Unavailable 502, 503, 504 · NoSpace 507
 */

/** Base class of all errors of this package. */
export class MemoryGatewayError extends Error {
  /**
   * @param {string} message
   * @param {ErrorOptions} [options]
   */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The gateway did not answer. A call that changes something may have been carried out. `cause` says why. */
export class NoAnswer extends MemoryGatewayError {}

/** The answer is not one of a Memory Gateway. Check the address. */
export class InvalidAnswer extends MemoryGatewayError {}

/** A request that is not a message of the gateway, or an old one. Answer it with 400. */
export class InvalidWebhook extends MemoryGatewayError {}

/**
 * The gateway refused the call.
 *
 * Programs read `code` and the names in `errors`; `detail` is for people. `code` is empty if the answer is a proxy's.
 */
export class Problem extends MemoryGatewayError {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   * @param {{ errors?: FieldProblem[], requestId?: string, retryAfter?: number }} [more]
   */
  constructor(status, code, detail, { errors = [], requestId, retryAfter } = {}) {
    super(`${detail.replace(/\.$/, "")} (${[status, code].join(" ").trim()}).`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    /** The wrong fields, with dots for nesting. */
    this.errors = errors;
    this.requestId = requestId;
    /** Seconds; undefined if the answer has none. */
    this.retryAfter = retryAfter;
  }
}

/** @typedef {{ field: string, message: string }} FieldProblem */

/** The API key is missing, wrong, expired or revoked. */
export class Unauthenticated extends Problem {}

/** The credential does not allow this call. */
export class Forbidden extends Problem {}

/** The object does not exist, or belongs to another user. */
export class NotFound extends Problem {}

/** The object's state forbids the call: read `detail`. */
export class Conflict extends Problem {}

/** The document was changed by another call: read it again. */
export class PreconditionFailed extends Problem {}

/** The file or the body is too large. */
export class TooLarge extends Problem {}

/** The gateway does not take files of this type. */
export class UnsupportedType extends Problem {}

/** Fields are wrong: `errors` names them. */
export class InvalidInput extends Problem {}

/** The user's rate limit is reached: wait `retryAfter` seconds. */
export class TooManyRequests extends Problem {}

/** The gateway, its engine or its database is not available. */
export class Unavailable extends Problem {}

/** The disk or the user's quota is full. */
export class NoSpace extends Problem {}

/** @type {Record<number, typeof Problem>} */
const BY_STATUS = {
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  412: PreconditionFailed,
  413: TooLarge,
  415: UnsupportedType,
  422: InvalidInput,
  429: TooManyRequests,
  502: Unavailable,
  503: Unavailable,
  504: Unavailable,
  507: NoSpace,
};

/**
 * Return the error for an answer that is not 2xx.
 *
 * @param {Response} response
 * @param {string} text its body
 * @returns {Problem}
 */
export function problemOf(response, text) {
  const { status, headers } = response;
  const more = { requestId: headers.get("X-Request-ID") ?? undefined, retryAfter: retryAfterOf(headers) };
  const kind = BY_STATUS[status] ?? Problem;
  const document = parsed(text);
  if (typeof document?.code === "string" && typeof document.detail === "string") {
    const errors = Array.isArray(document.errors) ? document.errors : [];
    return new kind(status, document.code, document.detail || document.title, { ...more, errors });
  }
  // A proxy's answer. Browsers hide status and address of a redirection.
  const isRedirected = response.type === "opaqueredirect" || headers.has("Location");
  const reason = isRedirected ? `The gateway redirects to ${headers.get("Location") ?? "another address"}` : "";
  return new kind(status, "", reason || response.statusText || "The call failed", more);
}

/**
 * @param {string} text
 * @returns {any} undefined if it is not JSON
 */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Return the seconds of `Retry-After`; undefined if it is missing or a date, which the gateway never sends.
 *
 * @param {Headers} headers
 */
function retryAfterOf(headers) {
  const value = headers.get("Retry-After") ?? "";
  return /^\d+$/.test(value) ? Number(value) : undefined;
}
