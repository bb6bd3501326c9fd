import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { type Digest, digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import { Journal } from "../../src/collect/gateway/journal/journal.ts";
import { NamedRecords } from "../../src/collect/gateway/rollouts/named-records.ts";
import { makeOpening } from "../../src/collect/gateway/rollouts/opening.ts";
import { Assignment, sampleSeed, seal, sealMessage, Task } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { TestGateway } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
const NOWHERE = digestJson("test.nowhere.v1", "nobody has it");
const environment = "env.test@1" as Task["environment"];
const task = seal(Task, { id: parseId("t-1"), environment, payload: { a: 1 }, dataSource: "real" });
const named = { id: task.record.id, digest: task.digest };
const assignment = seal(Assignment, {
  ...{ id: parseId("a-1"), environment, task: named, samples: 2, seed: 7n },
});

async function opened(config: object = {}) {
  const test = await TestGateway.open(config);
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  return test;
}

/** Puts blobs as a launcher does: another writer of the same book makes them durable before the gateway gets their
 *  digests. */
async function putElsewhere(root: string, blobs: readonly { kind: string; bytes: Uint8Array }[]) {
  const book = await openBook(root, { clock: systemClock });
  for (const { kind, bytes } of blobs) book.put(kind, bytes);
  await book.flush();
  return book;
}

async function callAndClose(test: TestGateway, opening: object, closing: object = {}) {
  const { id, apiKey } = await test.openRollout(opening);
  expect((await test.post(CHAT, ASK, { authorization: `Bearer ${apiKey}` })).status).toBe(200);
  return test.closed(id, closing);
}

describe("a rollout that is opened", () => {
  it.each([
    ["task.digest", { task: { id: "t", digest: NOWHERE } }, "rollbook.task.v1"],
    ["assignment.digest", { assignment: { digest: NOWHERE, sample: 0 } }, "rollbook.assignment.v1"],
  ])(
    "with a %s that the book does not hold is refused, and the book stays verifiable",
    async (field, opening, kind) => {
      const test = await opened();
      const refused = await test.post("/v1/rollouts", { id: "run-1", ...opening });
      expect(refused).toMatchObject({ status: 422, body: { error: { code: "missing-blob" } } });
      expect(refused.headers.get("x-should-retry")).toBe("false");
      for (const part of [field, kind, NOWHERE, "does not hold", "artifact import"])
        expect(refused.body.error.message).toContain(part);
      // The refused opening leaves no trace: the name is free, and a restart recovers nothing.
      await callAndClose(test, { id: "run-1", task: { id: "t" } });
      await test.restart();
      expect(test.gateway.recovered).toEqual([]);
      expect((await test.verify()).problems).toEqual([]);
    },
  );

  it("with a digest that is another kind of record is refused", async () => {
    const test = await opened();
    const message = sealMessage({ role: "user", content: "Hi" });
    const other = await putElsewhere(test.root, [message, task]);
    for (const opening of [
      { task: { id: "t", digest: message.digest } },
      { assignment: { digest: task.digest, sample: 0 } },
    ]) {
      const { status, body } = await test.post("/v1/rollouts", opening);
      expect([status, body.error.code]).toEqual([422, "missing-blob"]);
      expect(body.error.message).toMatch(/is a rollbook\.(message|task)\.v1 in this gateway's book/);
    }
    await other.close();
  });

  it("may name what another process has put into the book, as soon as that is durable", async () => {
    const test = await opened();
    expect((await test.post("/v1/rollouts", { task: named })).status).toBe(422);
    const other = await putElsewhere(test.root, [task]);
    expect((await callAndClose(test, { task: named })).task).toEqual(named);
    other.put(assignment.kind, assignment.bytes);
    await other.flush();
    const bound = { digest: assignment.digest, sample: 1 };
    const seed = String(sampleSeed(assignment.digest, 1));
    const artifact = await callAndClose(test, { environment, task: named, assignment: bound, seed });
    expect(artifact.assignment).toEqual(bound);
    expect((await test.verify()).problems).toEqual([]);
    await other.close();
  });

  it.each([
    ["seed", { seed: "1" }],
    ["sample", { assignment: { digest: assignment.digest, sample: 2 } }],
    ["task", { task: { id: "another" } }],
    ["environment", { environment: "env.other@1" }],
    ["group", { group: "g" }],
  ])("and does not fit the assignment it names, by its %s, is refused", async (field, change) => {
    const test = await opened();
    const other = await putElsewhere(test.root, [task, assignment]);
    const fitting = {
      ...{ environment, task: named, assignment: { digest: assignment.digest, sample: 0 } },
      seed: String(sampleSeed(assignment.digest, 0)),
    };
    const { status, body } = await test.post("/v1/rollouts", { ...fitting, ...change });
    expect([status, body.error.code]).toEqual([422, "not-bound"]);
    expect(body.error.message).toContain(field);
    expect((await test.post("/v1/rollouts", fitting)).status).toBe(201);
    await other.close();
  });

  it("twice at once, under one name and with a digest, is one rollout", async () => {
    const test = await opened();
    const other = await putElsewhere(test.root, [task]);
    const open = () => test.post("/v1/rollouts", { id: "once", task: named });
    const statuses = (await Promise.all([open(), open(), open()])).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 201]);
    await other.close();
  });
});

describe("a rollout that is closed", () => {
  it("may name scorers that are nowhere, and keeps its state in the book: the book stays verifiable", async () => {
    const test = await opened();
    const closing = { scores: [{ name: "s", value: 1, scorer: NOWHERE }], finalState: { named: NOWHERE } };
    const { id } = await test.openRollout();
    await test.post("/v1/feedback", { rollout: id, name: "f", value: 1, idempotencyKey: NOWHERE });
    await test.post(CHAT, ASK, { "x-rollbook-rollout": id });
    await test.closed(id, closing);
    expect((await test.verify()).problems).toEqual([]);
  });
});

describe("an open rollout in the journal of an older gateway that names what the book does not hold", () => {
  it("is taken up and sealed as it was opened, and verify names what is missing", async () => {
    const test = await opened();
    await test.stop();
    const journal = Journal.open(join(test.root, "journal", "gateway"), { event() {}, called() {} });
    const id = parseId("old-1");
    const at = { gatewayName: parseId("gateway"), atMs: systemClock.nowMs() };
    const rollouts = { idleMs: 1, environment: "gateway@1", dataSource: "real" } as const;
    const task = { id: parseId("t"), digest: NOWHERE };
    journal.event(id, makeOpening(id, { task }, { rollouts, ...at }));
    await journal.flush();
    await journal.close();
    await test.start();
    expect(test.gateway.recovered).toEqual(["old-1"]);
    // The client that opened the rollout may open it again, and learns that it is open.
    expect((await test.post("/v1/rollouts", { id: "old-1", task })).status).toBe(200);
    expect((await test.post(CHAT, ASK, { "x-rollbook-rollout": "old-1" })).status).toBe(200);
    expect((await test.closed("old-1")).task).toEqual(task);
    await callAndClose(test, {});
    const { problems } = await test.verify();
    expect(problems.map(({ code, record }) => [code, record])).toEqual([
      ["missing-blob", "rollout-content old-1"],
    ]);
  });
});

describe("records that openings name", () => {
  const rollouts = { idleMs: 1, environment: "gateway@1", dataSource: "real" } as const;
  const opening = (digest?: Digest) =>
    makeOpening(
      "r",
      { task: { id: parseId("t"), ...(digest === undefined ? {} : { digest }) } },
      { rollouts, gatewayName: parseId("w"), atMs: 1 },
    );

  it("are looked up once if they are there, every time if not, and never where none is named", async () => {
    const asked: Digest[] = [];
    const records = new NamedRecords(async (digests) => {
      asked.push(...digests);
      return digests.map((digest) =>
        digest === task.digest ? { kind: Task.kind, bytes: new Uint8Array() } : null,
      );
    });
    const id = parseId("r");
    expect(records.check(id, opening())).toBeUndefined();
    for (let i = 0; i < 3; i++) await records.check(id, opening(task.digest));
    for (let i = 0; i < 2; i++)
      await expect(records.check(id, opening(NOWHERE))).rejects.toMatchObject({ code: "missing-blob" });
    expect(asked).toEqual([task.digest, NOWHERE, NOWHERE]);
  });

  it("are forgotten past a few thousand", async () => {
    let looks = 0;
    const records = new NamedRecords(async (digests) => {
      looks++;
      return digests.map(() => ({ kind: Task.kind, bytes: new Uint8Array() }));
    });
    const digests = Array.from({ length: 5000 }, (_, i) => digestJson("test.task.v1", i));
    for (const digest of digests) await records.check(parseId("r"), opening(digest));
    await records.check(parseId("r"), opening(digests[4999]));
    await records.check(parseId("r"), opening(digests[0]));
    expect(looks).toBe(5001);
  });
});
