// The official TypeScript client, connected by the URL alone: it discovers the authorization server, registers, and
// prints the address of the consent page. Then as client.mjs.
//
//   node oauth.mjs URL      stdin: the parameters of the answer, then {"name": …, "arguments": …} per line;
//                           {"expire": true} forgets the access token, so that the client has to refresh it

import { createInterface } from "node:readline";

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

const url = new URL(process.argv[2]);
const say = (value) => console.log(JSON.stringify(value));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const read = async () => JSON.parse((await lines.next()).value);
const kept = {};
const authProvider = {
  redirectUrl: "http://127.0.0.1:33418/callback",
  clientMetadata: { client_name: "TypeScript agent", redirect_uris: ["http://127.0.0.1:33418/callback"] },
  state: () => "state of the agent",
  clientInformation: () => kept.client,
  saveClientInformation: (value) => void (kept.client = value),
  tokens: () => kept.tokens,
  saveTokens: (value) => void (kept.tokens = value),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (value) => void (kept.verifier = value),
  discoveryState: () => kept.discovery,
  saveDiscoveryState: (value) => void (kept.discovery = value),
  redirectToAuthorization: (address) => say({ authorize: String(address) }),
};
const connect = async () => {
  const client = new Client({ name: "tests", version: "1" });
  const transport = new StreamableHTTPClientTransport(url, { authProvider });
  try {
    await client.connect(transport);
    return client;
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(new URLSearchParams(await read()));
    return connect();
  }
};
const client = await connect();
say({ instructions: client.getInstructions(), ...(await client.listTools()) });
for (let line = await lines.next(); !line.done; line = await lines.next()) {
  const request = JSON.parse(line.value);
  if (request.expire) {
    kept.tokens = { ...kept.tokens, access_token: "oat_expired" };
    say({});
    continue;
  }
  try {
    say(await client.callTool(request));
  } catch (error) {
    say({ thrown: String(error) });
  }
}
await client.close();
