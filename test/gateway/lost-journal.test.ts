import { cpSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };

const call = (test: TestGateway, rollout: string) => test.post(`/r/${rollout}${CHAT}`, ASK);

async function opened(): Promise<TestGateway> {
  const test = await TestGateway.open();
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  return test;
}

/** Every run of a gateway fills segments of its own: this moves those of one run out of the journal, and says how to put
 *  them back. Only while the gateway is stopped. */
function moveAway(test: TestGateway, run: number): () => void {
  const name = `${String(run).padStart(10, "0")}.log`;
  const [here, away] = [join(test.root, "journal", "gateway", name), join(test.root, name)];
  renameSync(here, away);
  return () => renameSync(away, here);
}

async function rolloutEvents(test: TestGateway): Promise<Record<string, number>> {
  const page = await fetch(`${test.gateway.url}/metrics`, { headers: { "x-api-key": TOKEN } });
  const found = (await page.text()).matchAll(/^rollbook_gateway_rollouts_total\{event="([\w-]+)"\} (\d+)$/gm);
  return Object.fromEntries([...found].map(([, event, count]) => [event, Number(count)]));
}

describe("a segment of the journal that was moved away", () => {
  it("takes calls from rollouts that go on: the start names them, and their artifacts are failures of the infrastructure", async () => {
    const test = await opened();
    for (const id of ["hurt", "whole"]) {
      await test.openRollout({ id });
      await call(test, id);
    }
    await test.restart();
    for (let i = 0; i < 2; i++) await call(test, "hurt");
    await test.restart();
    for (const id of ["hurt", "whole"]) await call(test, id);
    await test.stop();
    const putBack = moveAway(test, 2);

    await test.start();
    expect(test.gateway.damaged).toEqual([{ rollout: "hurt", missing: [1, 2] }]);
    expect(test.logs.join()).toContain("rollout hurt goes on, but calls 1, 2 are missing from the journal");
    expect(await rolloutEvents(test)).toMatchObject({ recovered: 2, "calls-lost": 1 });

    // Put back, nothing has happened.
    await test.stop();
    putBack();
    await test.start();
    expect(test.gateway.damaged).toEqual([]);
    await test.stop();
    moveAway(test, 2);
    await test.start();
    const hurt = await test.closed("hurt", {
      ending: { kind: "terminal" },
      scores: [{ name: "s", value: 1 }],
    });
    expect(hurt.calls).toHaveLength(2);
    expect(hurt.ending).toEqual({
      kind: "failed",
      owner: "infrastructure",
      message: "calls 1, 2 are missing: a part of the journal is gone. It was closed as terminal.",
    });
    expect((await test.closed("whole")).ending).toEqual({ kind: "terminal" });
    expect((await test.verify()).problems).toEqual([]);
  });

  it("takes the beginning of rollouts: the start names them, and what is left waits for the segment", async () => {
    const test = await opened();
    await test.openRollout({ id: "torn" });
    await call(test, "torn");
    await test.restart();
    await call(test, "torn");
    await test.stop();
    const putBack = moveAway(test, 1);

    await test.start();
    expect([test.gateway.recovered, test.gateway.damaged]).toEqual([[], [{ rollout: "torn" }]]);
    expect(test.logs.join()).toContain("rollout torn is in the journal without its beginning");
    expect(await rolloutEvents(test)).toMatchObject({ "beginning-lost": 1 });
    expect((await test.post("/v1/rollouts", { id: "torn" })).body.error.code).toBe("rollout-damaged");
    await test.stop();
    putBack();
    await test.start();
    expect([test.gateway.recovered, test.gateway.damaged]).toEqual([["torn"], []]);
    expect((await test.closed("torn")).calls).toHaveLength(2);
  });
});

it("a call that was in progress at a crash is not missing: nobody got its reply", async () => {
  const test = await opened();
  const copy = mkdtempSync(join(tmpdir(), "rollbook-journal-"));
  onTestFinished(() => rmSync(copy, { recursive: true }));
  let answer: () => void = () => {};
  const told = new Promise<void>((done) => (answer = done));
  await test.openRollout({ id: "a" });
  test.upstream.play((response, asked) => told.then(() => test.upstream.otherwise(response, asked)));
  const held = call(test, "a");
  await expect.poll(() => test.upstream.asked.length).toBe(1);
  for (let i = 0; i < 2; i++) await call(test, "a");
  const journal = join(test.root, "journal", "gateway");
  cpSync(journal, copy, { recursive: true });
  answer();
  await held;
  await test.stop();
  for (const name of readdirSync(journal)) rmSync(join(journal, name));
  cpSync(copy, journal, { recursive: true });
  await test.start();
  expect([test.gateway.recovered, test.gateway.damaged]).toEqual([["a"], []]);
  expect(await test.closed("a")).toMatchObject({ calls: [{}, {}], ending: { kind: "terminal" } });
});
