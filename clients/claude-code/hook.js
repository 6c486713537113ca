/**
 * The command of the hooks: `run.js` with the input of a hook, which is JSON on stdin.
 *
 * It fails open: whatever happens, it ends with 0 within two seconds. `claude --debug` shows what it writes to stderr.
 */

import { text } from "node:stream/consumers";

import { loaded } from "./links.js";

try {
  const { main } = await loaded(() => import("./run.js"));
  await main(JSON.parse(await text(process.stdin)));
} catch (error) {
  console.error(`memory-gateway: ${error instanceof Error ? error.message : error}`);
}
process.exit(0); // open sockets do not keep Claude Code waiting
