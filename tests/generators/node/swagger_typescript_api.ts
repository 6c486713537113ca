import { randomUUID } from "node:crypto";
import { Api } from "./api";

const [baseUrl] = process.argv.slice(2);
if (baseUrl === undefined) throw new Error("Give the address of a gateway.");
const userId = `u-${randomUUID()}`;
const api = new Api<string>({
  baseUrl,
  securityWorker: (key) => (key === null ? {} : { headers: { Authorization: `Bearer ${key}` } }),
});
const created = await api.users.createUser({ user_id: userId });
api.setSecurityData(created.data.user_key);

const file = new File(["Payment is due within 30 days."], "contract.txt");
const uploaded = await api.resources.uploadResource({ file });
const found = async (): Promise<string[]> => {
  const answer = await api.memories.searchMemories({ query: "payment", scope: ["resources"] });
  return answer.data.results.map((result) => result.text);
};
const resourceId = uploaded.data.resource_id;

const texts = [await found()];
await api.resources.deleteResource(resourceId);
texts.push(await found());
await api.resources.restoreResource(resourceId, {});
texts.push(await found());
await api.memories.addMessages({
  session_id: "chat:c_1",
  messages: [{ sender_id: userId, role: "user", timestamp: 1780300800000, content: "I prefer tea." }],
});
console.log(JSON.stringify(texts));
