import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { parseId } from "../../src/base/ids.ts";
import { openInJournal } from "../../src/book/maintain/index.ts";
import { RolloutContent, RolloutEvent } from "../../src/contract/index.ts";
import { eraseRollouts } from "../../src/keep/erase/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import { openBook } from "../../src/store/index.ts";
import { filesHolding } from "../support/book-files.ts";
import { TestGateway } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const SECRET = "Ada Example";
const ask = (content: string) => ({ model: "tiny", messages: [{ role: "user", content }] });

async function contentOf(root: string, rollout: string) {
  const book = await openBook(root, { clock: systemClock, mode: "read" });
  for await (const item of book.scan())
    if (item.type === "blob" && item.kind === RolloutContent.kind)
      if (Buffer.from(item.bytes).includes(`"rolloutId":"${rollout}"`)) {
        await book.close();
        return { rollout: parseId(rollout), content: item.digest };
      }
  throw new Error(`${rollout} is not sealed`);
}

const erase = ({ root, signer }: TestGateway, subject: Awaited<ReturnType<typeof contentOf>>) =>
  eraseRollouts(root, {
    clock: systemClock,
    signer,
    subjects: [subject],
    reason: "request 17",
    by: parseId("owner"),
  });

it("a rollout that a gateway sealed goes with its events, its outcomes and what the gateway remembers of it", async () => {
  const test = await TestGateway.open();
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  const [{ id, basePath }, other] = [await test.openRollout(), await test.openRollout()];
  await test.post(basePath + CHAT, ask(`I am ${SECRET}`));
  await test.post(other.basePath + CHAT, ask("Hi"));
  for (const rollout of [id, other.id]) await test.post(`/v1/rollouts/${rollout}/close`);
  const outcome = { rollout: id, name: "good", value: 1, idempotencyKey: "k", source: SECRET };
  await test.post("/v1/feedback", outcome);
  const subject = await contentOf(test.root, id);
  await expect(erase(test, subject)).rejects.toMatchObject({ code: "erase-busy" });
  await test.stop();

  expect(filesHolding(test.root, SECRET).length).toBeGreaterThan(1);
  const report = await erase(test, subject);
  expect(report.records.map(({ kind }) => kind)).toContain(RolloutEvent.kind);
  expect(report.journal).toEqual([]);
  expect(filesHolding(test.root, SECRET)).toEqual([]);
  const book = await openBook(test.root, { clock: systemClock, mode: "read" });
  expect(await verifyBook(book)).toMatchObject({ ok: true, erased: { rollouts: [{ rollout: id }] } });
  await book.close();

  test.book = await openBook(test.root, { clock: systemClock });
  test.gateway = await test.openAnother({});
  expect(test.gateway.recovered).toEqual([]);
  expect((await test.post("/v1/rollouts", { id })).status).toBe(409);
  expect((await test.closed(other.id)).calls).toHaveLength(1);
});

it("names the journal segment that keeps calls of it because another rollout in it is open", async () => {
  const test = await TestGateway.open();
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  const [{ id, basePath }, open] = [await test.openRollout(), await test.openRollout()];
  await test.post(basePath + CHAT, ask(`I am ${SECRET}`));
  await test.post(open.basePath + CHAT, ask("Hi"));
  await test.post(`/v1/rollouts/${id}/close`);
  await test.stop();
  const subject = await contentOf(test.root, id);
  const { journal, tombstone } = await erase(test, subject);
  expect(journal).toHaveLength(1);
  expect(await openInJournal(test.root, journal)).toEqual([
    { path: journal[0], gateway: "gateway", open: [open.id] },
  ]);
  expect(filesHolding(test.root, SECRET)).toEqual(journal.map((path) => join(test.root, path)));

  // The journal still holds calls of the erased rollout. The gateway must not seal it again.
  test.book = await openBook(test.root, { clock: systemClock });
  test.gateway = await test.openAnother({});
  expect(test.gateway.recovered).toEqual([open.id]);
  await test.post(`/v1/rollouts/${open.id}/close`);
  expect(await erase(test, subject)).toMatchObject({ journal: [], tombstone, records: [], blobs: [] });
  expect(filesHolding(test.root, SECRET)).toEqual([]);
});

it("removes the list of closed rollouts that an earlier version left", async () => {
  const test = await TestGateway.open();
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  const { id, basePath } = await test.openRollout();
  await test.post(basePath + CHAT, ask("Hi"));
  await test.post(`/v1/rollouts/${id}/close`);
  await test.stop();
  writeFileSync(join(test.root, "journal/gateway/closed.db"), `an outcome of ${SECRET}`);
  await erase(test, await contentOf(test.root, id));
  expect(filesHolding(test.root, SECRET)).toEqual([]);
  test.book = await openBook(test.root, { clock: systemClock });
  test.gateway = await test.openAnother({});
  expect((await test.post(`/v1/rollouts/${id}/close`)).body.error.code).toBe("rollout-erased");
});
