// Runs the plugin's real hooks in Node alone, without OpenClaw: a line of JSON on stdin is a hook or a tool call, and a
// line on stdout its result. test_hooks.py gives it the plugin's folder with a stand-in for OpenClaw's SDK.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder = "", config = "{}"] = process.argv.slice(2);
const { default: entry } = await import(pathToFileURL(`${folder}/index.js`).href);
/** @type {Record<string, (event: object, ctx: object) => Promise<unknown>>} */
const hooks = {};
/** @type {(ctx: object) => { name: string, execute: (id: string, args: object) => Promise<unknown> }[] | null} */
let tools = () => null;
entry.register({
  pluginConfig: JSON.parse(config),
  logger: { warn: console.error },
  on: (/** @type {string} */ name, /** @type {any} */ hook) => (hooks[name] = hook),
  registerTool: (/** @type {any} */ made) => (tools = made),
  registerMemoryCapability() {},
  registerCli() {},
});
for await (const line of createInterface({ input: process.stdin })) {
  const { hook, tool, event = {}, args = {}, ctx } = JSON.parse(line);
  const start = performance.now();
  const called = tool ? tools(ctx)?.find(({ name }) => name === tool)?.execute("1", args) : hooks[hook]?.(event, ctx);
  const result = (await called) ?? null;
  console.log(JSON.stringify({ result, seconds: (performance.now() - start) / 1000 }));
}
