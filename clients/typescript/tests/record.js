// Reads calls, such as ["memories.search", ["tea", {}]], as JSON from stdin, and writes the request that each one sends.

import { text } from "node:stream/consumers";

import { Client, InvalidAnswer, NotFound } from "../src/index.js";

/** @param {FormData} form */
function fieldsOf(form) {
  return Object.fromEntries([...form].map(([name, value]) => [name, typeof value === "string" ? value : value.name]));
}

/**
 * @param {string} name
 * @param {any[]} args
 */
async function recorded(name, args) {
  /** @type {object[]} */
  const sent = [];
  const client = new Client("http://gateway", "uk_1", {
    app_id: "app",
    project_id: "project",
    async fetch(input, init) {
      const { pathname, searchParams } = /** @type {URL} */ (input);
      const { method, headers, body } = /** @type {RequestInit} */ (init);
      const fields = body instanceof FormData ? fieldsOf(body) : JSON.parse(`${body ?? "{}"}`);
      sent.push({ method, path: pathname, query: Object.fromEntries(searchParams), headers, body: fields });
      return new Response("{}");
    },
  });
  /** @type {any} */
  let method = client;
  let owner;
  for (const part of name.split(".")) [owner, method] = [method, method[part]];
  try {
    const outcome = method.apply(owner, args);
    if (Symbol.asyncIterator in outcome) await outcome.next();
    else await outcome;
  } catch (error) {
    if (!(error instanceof InvalidAnswer || error instanceof NotFound)) throw error; // lists are not in `{}`
  }
  return sent;
}

/** @type {[string, any[]][]} */
const calls = JSON.parse(await text(process.stdin));
const file = (/** @type {any} */ value) => (value === "(file)" ? new File(["x"], "x.txt") : value);
const requests = [];
for (const [name, args] of calls) requests.push(await recorded(name, args.map(file)));
const methods = Object.entries(new Client("http://gateway")).flatMap(([group, value]) =>
  group.startsWith("_")
    ? []
    : Object.getOwnPropertyNames(Object.getPrototypeOf(value)).map((name) => `${group}.${name}`),
);
console.log(JSON.stringify({ requests, methods: methods.filter((name) => !name.endsWith(".constructor")) }));
