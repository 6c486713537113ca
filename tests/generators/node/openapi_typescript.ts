import createClient from "openapi-fetch";
import { randomUUID } from "node:crypto";
import type { components, paths } from "./schema";

const [baseUrl] = process.argv.slice(2);
if (baseUrl === undefined) throw new Error("Give the address of a gateway.");
const userId = `u-${randomUUID()}`;

function got<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.status}: ${JSON.stringify(answer.error)}`);
  return answer.data;
}

const nobody = createClient<paths>({ baseUrl });
const created = got(await nobody.POST("/users", { body: { user_id: userId } }));
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${created.user_key}` } });

const form = new FormData();
form.set("file", new Blob(["Payment is due within 30 days."]), "contract.txt");
const uploaded = got(
  await client.POST("/resources", { body: { file: "" }, bodySerializer: () => form }),
);
const search = { body: { query: "payment", scope: ["resources"] } } satisfies {
  body: components["schemas"]["SearchBodyRequest"];
};
const found = async (): Promise<string[]> =>
  got(await client.POST("/memories/search", search)).results.map((result) => result.text);
const resource = { params: { path: { resource_id: uploaded.resource_id } } };

const texts = [await found()];
got(await client.DELETE("/resources/{resource_id}", resource));
texts.push(await found());
got(await client.POST("/resources/{resource_id}/restore", resource));
texts.push(await found());
const message = { sender_id: userId, role: "user" as const, timestamp: 1780300800000, content: "I prefer tea." };
got(await client.POST("/memories/add", { body: { session_id: "chat:c_1", messages: [message] } }));
console.log(JSON.stringify(texts));
