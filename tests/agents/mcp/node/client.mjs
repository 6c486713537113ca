// The official TypeScript client against a running gateway. It calls the tools that stdin names, and prints a JSON line
// for the list of tools and for each answer. It checks answers against the tools' output schemas itself.
//
//   node client.mjs URL KEY      stdin: {"name": …, "arguments": …} per line

import { createInterface } from "node:readline";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, key] = process.argv.slice(2);
const say = (value) => console.log(JSON.stringify(value));
const client = new Client({ name: "tests", version: "1" });
await client.connect(
  new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }),
);
say({ instructions: client.getInstructions(), ...(await client.listTools()) });
for await (const line of createInterface({ input: process.stdin })) {
  try {
    say(await client.callTool(JSON.parse(line)));
  } catch (error) {
    say({ thrown: String(error) });
  }
}
await client.close();
