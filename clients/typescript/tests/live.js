// On the gateway at MEMORY_GATEWAY_BASE_URL; test_typescript_client.py starts one.

import assert from "node:assert/strict";
import { openAsBlob } from "node:fs";
import { before, test } from "node:test";

import { Client, InvalidInput, NotFound, PreconditionFailed, Unauthenticated } from "../src/index.js";

const URL = process.env.MEMORY_GATEWAY_BASE_URL ?? "";
/** @type {Client} */
let client;

before(async () => {
  const { user_key: key } = await new Client(URL).users.create("ann");
  client = new Client(URL, key);
});

test("a conversation is stored, found, changed, deleted and restored", async () => {
  /** @type {import("../src/index.js").NewMessage} */
  const message = { sender_id: "ann", role: "user", content: "I prefer short answers." };
  const added = await client.sessions.add("chat:c_1", [message]);
  assert.equal(added.backend.data.message_count, 1);
  assert.equal((await client.sessions.flush("chat:c_1")).backend.data.memory_count, 1);
  const { results } = await client.memories.search("answers", { context: 1 });
  assert.equal(results[0]?.text, "I prefer short answers.");
  const id = results[0]?.id ?? "";
  assert.equal((await client.memories.update(id, { override_text: "I prefer long answers." })).status, "active");
  assert.equal((await client.memories.get(id)).memory.text, "I prefer long answers.");
  await client.memories.undoUpdate(id);
  await client.memories.delete(id, { reason: "outdated" });
  assert.equal((await client.memories.trash().next()).value?.text, "I prefer short answers.");
  assert.equal((await client.memories.restore(id)).status, "restored");
  assert.deepEqual((await client.memories.get(id)).history.map(({ action }) => action).slice(0, 2), ["original", "override"]);
});

test("lists span pages", async () => {
  const texts = Array.from({ length: 5 }, (_, number) => `Note ${number} about maps.`);
  const messages = texts.map((content, number) => {
    const timestamp = 1_780_300_800_000 + number;
    return { sender_id: "ann", role: /** @type {const} */ ("user"), content, timestamp };
  });
  await client.sessions.add("chat:c_2", messages);
  await client.sessions.flush("chat:c_2");
  const listed = [];
  for await (const { text } of client.memories.list({ session_id: "chat:c_2", pageSize: 2 })) listed.push(text);
  assert.deepEqual(listed, texts.toReversed());
  const sessions = [];
  for await (const session of client.sessions.list({ pageSize: 1 })) sessions.push(session.session_id);
  assert.ok(sessions.includes("chat:c_2"));
});

test("a file is uploaded, found, read and deleted", async () => {
  const file = await openAsBlob(new globalThis.URL("../LICENSE", import.meta.url));
  const { resource_id: id, status } = await client.resources.upload(file, { filename: "license.txt", title: "License" });
  assert.equal(status, "extracted");
  const { results } = await client.memories.search("without restriction");
  assert.equal(results[0]?.attachments[0]?.name, "license.txt");
  const decoder = new TextDecoder();
  let read = "";
  for await (const chunk of client.resources.content(id)) read += decoder.decode(chunk, { stream: true });
  assert.equal(read, await file.text());
  assert.equal((await client.resources.get(id)).title, "License");
  assert.equal((await client.resources.delete(id)).status, "deleted");
  await assert.rejects(client.resources.get("r_none"), NotFound);
});

test("a profile is changed, guarded by its ETag, and restored", async () => {
  const { etag } = await client.profiles.get("user");
  const changed = await client.profiles.update("user", { occupation: "architect" }, { if_match: etag });
  assert.equal(changed.content.occupation, "architect");
  assert.notEqual(changed.etag, etag);
  await assert.rejects(client.profiles.replace("user", {}, { if_match: etag }), PreconditionFailed);
  await client.profiles.update("user", { occupation: "baker" });
  const versions = [];
  for await (const change of client.profiles.history("user", { pageSize: 1 })) versions.push(change.version);
  assert.equal(versions.length, 2);
  const restored = await client.profiles.restore("user", versions[1] ?? 0);
  assert.equal(restored.content.occupation, "architect");
  assert.ok((await client.profiles.prompt("router")).prompt.includes("architect"));
});

test("scopes are apart", async () => {
  const scoped = client.inScope({ app_id: "notes", project_id: "p" });
  await scoped.sessions.add("chat:n_1", [{ sender_id: "ann", role: "user", content: "A note of another app." }]);
  await scoped.sessions.flush("chat:n_1");
  assert.equal((await scoped.memories.list().next()).value?.text, "A note of another app.");
  const texts = [];
  for await (const { text } of client.memories.list()) texts.push(text);
  assert.ok(!texts.includes("A note of another app."));
});

test("errors have their types", async () => {
  await assert.rejects(new Client(URL, "uk_wrong").keys.list(), Unauthenticated);
  await assert.rejects(
    client.memories.search("tea", { top_k: 1000 }),
    (error) => error instanceof InvalidInput && error.errors[0]?.field === "top_k",
  );
});

test("keys are created, listed and revoked", async () => {
  const { key_id: id, user_key: key } = await client.keys.create({ label: "laptop" });
  const other = new Client(URL, key);
  assert.equal((await other.keys.list()).length, 2);
  await client.keys.revoke(id);
  await assert.rejects(other.keys.list(), Unauthenticated);
});
