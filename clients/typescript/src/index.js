/** Client of Memory Gateway. */

export { Client } from "./client.js";
export {
  Conflict,
  Forbidden,
  InvalidAnswer,
  InvalidInput,
  InvalidWebhook,
  MemoryGatewayError,
  NoAnswer,
  NoSpace,
  NotFound,
  PreconditionFailed,
  Problem,
  TooLarge,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
  UnsupportedType,
} from "./errors.js";
export { verifyWebhook } from "./webhooks.js";

/** @typedef {import("../schema.js").components["schemas"]} Schemas the documents that the gateway takes and returns */
/** @typedef {import("./client.js").ClientOptions} ClientOptions */
/** @typedef {import("./client.js").NewMessage} NewMessage */
/** @typedef {import("./client.js").Profile} Profile */
/** @typedef {import("./transport.js").Retries} Retries */
/** @typedef {import("./webhooks.js").WebhookEvent} WebhookEvent */
