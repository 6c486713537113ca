// The reference client of OpenClaw against a gateway of ours. One JSON line per thing that happens; a line on stdin
// ends the part that waits for a restart.
//
//   node client.mjs URL TOKEN WIRE IDLE_MS CALLS      CALLS: [[method, params], …] as JSON

import { EventFrameSchema, HelloOkSchema, ResponseFrameSchema } from "@openclaw/gateway-protocol/schema";
import { GatewayClient } from "@openclaw/gateway-client";
import { Value } from "typebox/value";
import WebSocket from "ws";

const [url, token, wire, idleMs, calls] = process.argv.slice(2);
const say = (what, about = {}) => console.log(JSON.stringify({ what, ...about }));
const hellos = [];
const waiting = [];
const nextHello = () => new Promise((resolve) => (hellos.length ? resolve(hellos.shift()) : waiting.push(resolve)));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Everything that arrives is held against the published schema, which allows no other key.
const schemas = { res: ResponseFrameSchema, event: EventFrameSchema };
const emit = WebSocket.prototype.emit;
WebSocket.prototype.emit = function (name, data, ...rest) {
  if (name === "message") {
    const frame = JSON.parse(data.toString());
    const schema = schemas[frame.type];
    if (!schema || !Value.Check(schema, frame)) say("unexpected frame", { frame });
  }
  return emit.call(this, name, data, ...rest);
};

const client = new GatewayClient({
  url,
  token,
  minProtocol: Number(wire),
  maxProtocol: Number(wire),
  onHelloOk: (hello) => (waiting.length ? waiting.shift()(hello) : hellos.push(hello)),
  onConnectError: (error) => say("connect error", { message: error.message }),
  onReconnectPaused: (info) => say("paused", { info }),
  onClose: (code, reason) => say("close", { code, reason }),
  onEvent: (event) => say("event", { event: event.event, payload: event.payload }),
  onGap: (gap) => say("gap", gap),
});

client.start();
const hello = await nextHello();
say("hello", { hello, isValid: Value.Check(HelloOkSchema, hello) });
for (const [method, params] of JSON.parse(calls)) {
  try {
    say("answer", { method, payload: await client.request(method, params) });
  } catch (error) {
    say("refused", { method, message: error.message, code: error.gatewayCode, payload: error.responsePayload });
  }
}
say("idle");
await pause(Number(idleMs));
say("waiting");
const again = await nextHello();
say("again", { protocol: again.protocol, health: await client.request("health") });
client.stop();
