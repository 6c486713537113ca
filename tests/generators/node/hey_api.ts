import { randomUUID } from "node:crypto";
import { addMessages, createUser, deleteResource, restoreResource, searchMemories, uploadResource } from "./index";
import { client } from "./client.gen";

const [baseUrl] = process.argv.slice(2);
if (baseUrl === undefined) throw new Error("Give the address of a gateway.");
const userId = `u-${randomUUID()}`;
client.setConfig({ baseUrl, throwOnError: true });
const created = await createUser({ body: { user_id: userId }, throwOnError: true });
client.setConfig({ auth: created.data.user_key });

const file = new File(["Payment is due within 30 days."], "contract.txt");
const uploaded = await uploadResource({ body: { file }, throwOnError: true });
const resource = { path: { resource_id: uploaded.data.resource_id }, throwOnError: true } as const;
const found = async (): Promise<string[]> => {
  const answer = await searchMemories({ body: { query: "payment", scope: ["resources"] }, throwOnError: true });
  return answer.data.results.map((result) => result.text);
};

const texts = [await found()];
await deleteResource(resource);
texts.push(await found());
await restoreResource(resource);
texts.push(await found());
await addMessages({
  body: {
    session_id: "chat:c_1",
    messages: [{ sender_id: userId, role: "user", timestamp: 1780300800000, content: "I prefer tea." }],
  },
  throwOnError: true,
});
console.log(JSON.stringify(texts));
