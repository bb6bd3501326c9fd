import { describe, expect, it } from "vitest";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";
import { draftWire, makeRevision } from "../support/shelf.ts";

const unlabelled = draftWire("r-1", {}, { rewards: undefined });

async function withRollout(): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("keys new");
  await cli.ok("init");
  const revision = encodeWire(PolicyRevision, makeRevision("policy-r1", { number: 1n }).record);
  await cli.ok(`artifact import ${cli.file("r.jsonl", lines(revision, unlabelled))}`);
  return cli;
}

describe("rollbook feedback", () => {
  it("labels a sealed rollout, signed, and batches read it; the artifact stays as it was", async () => {
    const cli = await withRollout();
    const before = await cli.ok("artifact show r-1 --json");
    const assemble = "batch assemble --target policy-r1 --level token --advantage none";
    expect((await cli.run(assemble)).err).toContain("unlabelled 1");
    expect(await cli.ok("feedback r-1 --name solved --value 0.75")).toBe("added\n");
    const [{ batch }] = await cli.json(`${assemble} --feedback solved`);
    expect(batch.totals.rewardSum).toBe(0.75);
    expect(await cli.ok("artifact show r-1 --json")).toBe(before);
    expect(await cli.ok("verify --require-trusted")).toContain("1");
  });

  it("counts once per key: the same again changes nothing, another value under the key is refused", async () => {
    const cli = await withRollout();
    const add = (words: string) => cli.run(`feedback r-1 --name solved ${words}`);
    const [first] = await cli.json("feedback r-1 --name solved --value 1 --key k");
    expect(first).toEqual({ added: true, feedback: expect.stringMatching(/^sha256:/) });
    expect(await cli.json("feedback r-1 --name solved --value 1 --key k")).toEqual([
      { added: false, feedback: first.feedback },
    ]);
    expect(await add("--value 0 --key k")).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        'r-1 already has the outcome solved = 1 (key "k"). The value 0 was not stored. To add a second outcome, give another --key. [key-reused]',
      ),
    });
    expect((await add("--value 0 --key other")).out).toBe("added\n");
    expect((await add("--value -1e-3")).out).toBe("added\n");
    expect(await cli.ok("artifact show r-1")).toMatch(/(feedback +solved.*\n.*){3}/);
  });

  it("with one key is shown once, also if a command and a gateway both wrote it", async () => {
    const cli = await withRollout();
    const [{ content }] = await cli.json("artifact ls");
    await cli.ok("feedback r-1 --name solved --value 0.5");
    const again = {
      ...{ schema: "rollbook.feedback.v1", subject: content, name: "solved", value: 0.5 },
      ...{ source: "gateway", idempotencyKey: "solved", atMs: Date.now() + 60_000 },
    };
    await cli.ok("artifact import - --no-sign", lines(again));
    expect((await cli.ok("artifact show r-1")).match(/feedback +solved 0\.5 from \w+/g)).toEqual([
      expect.stringMatching(/from feedback$/),
    ]);
    expect((await cli.json("artifact ls"))[0].feedback).toEqual([{ name: "solved", value: 0.5 }]);
  });

  it("tells a running gateway, before the rollout is sealed and after, of the rollout and of a call", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const rollout = await test.openRollout({ id: "run-1" });
    const ask = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
    await test.post("/v1/chat/completions", ask, { authorization: `Bearer ${rollout.apiKey}` });
    const cli = new Cli();
    const tell = (words: string, token = TOKEN) =>
      cli.run(`feedback run-1 ${words} --gateway ${test.gateway.url}/v1 --gateway-token-env T --json`, "", {
        T: token,
      });
    expect((await tell("--name good --value 1 --call 0")).out).toBe('{"added":true}\n');
    expect((await tell("--name good --value 1 --call 0")).out).toBe('{"added":false}\n');
    await test.closed("run-1");
    expect((await tell("--name late --value 2")).out).toBe('{"added":true}\n');
    expect(await test.feedback()).toMatchObject([
      { name: "good", value: 1, call: 0, idempotencyKey: "good" },
      { name: "late", value: 2, idempotencyKey: "late" },
    ]);
    expect((await tell("--name x --value 1", "wrong")).err).toContain("401");
    expect((await tell("--name good --value 7 --call 0")).err).toContain("409");
  });

  it("takes the name of a call, in the book and at a gateway, and refuses another --call", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok("artifact import examples/rollouts.jsonl");
    const [first] = await cli.json("feedback r-0036.0 --name good --value 1");
    expect(first.added).toBe(true);
    for (const words of ["r-0036 --call 0", "r-0036.0 --call 0"])
      expect(await cli.json(`feedback ${words} --name good --value 1`)).toEqual([
        { added: false, feedback: first.feedback },
      ]);

    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    // A rollout id may look like a call id. The rollout has precedence.
    for (const id of ["run-1", "run-1.1"]) {
      const { apiKey } = await test.openRollout({ id });
      const ask = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
      await test.post("/v1/chat/completions", ask, { authorization: `Bearer ${apiKey}` });
    }
    const tell = (words: string) =>
      cli.run(`feedback ${words} --value 1 --gateway ${test.gateway.url} --gateway-token-env T`, "", {
        T: TOKEN,
      });
    expect(await tell("run-1.0 --name good")).toMatchObject({ code: 0, out: "added\n" });
    expect((await tell("run-1 --call 0 --name good")).out).toBe("there already\n");
    expect((await tell("run-1.1 --name whole")).out).toBe("added\n");
    expect(await tell("run-1.0 --call 1 --name good")).toMatchObject({
      code: 2,
      err: expect.stringContaining("run-1.0 names call 0, and --call names call 1"),
    });
    expect((await tell("run-1.7 --name good")).err).toContain("unknown-call");
    // A rollout of another book: the error names the book of the gateway.
    expect((await tell("r-0036 --name good")).err).toMatch(
      /^error: the gateway at http:\S+, which writes to the book \S+, has no rollout r-0036\. Check .* leave --gateway out and name that book with --book\. \[unknown-rollout\]$/m,
    );
    expect((await tell("run-9.0 --name good")).err).toContain("has no rollout run-9.0.");
    // A name can exist in both books. With --book, the books are compared first.
    expect(await tell(`run-1 --name other --book ${cli.book}`)).toMatchObject({
      ...{
        code: 1,
        err: expect.stringMatching(/writes to the book .* these rollouts belong to .*\[other-book\]/),
      },
    });
    for (const id of ["run-1", "run-1.1"]) await test.closed(id);
    const added = (await test.feedback()).map(({ name, call }) => ({ name, call }));
    expect(added).toHaveLength(2);
    expect(added).toEqual(
      expect.arrayContaining([
        { name: "good", call: 0 },
        { name: "whole", call: undefined },
      ]),
    );
  });

  it.each([
    ["feedback r-1.0 --name n --value 1 --call 1", 2, "r-1.0 names call 0, and --call names call 1"],
    ["feedback r-1.3 --name n --value 1", 1, "unknown-call"],
    ["feedback none --name n --value 1", 1, "not-found"],
    ["feedback r-1 --name n --value 1 --call 3", 1, "unknown-call"],
    ["feedback r-1 --name n --value many", 2, "number"],
    ["feedback r-1 --name a/b --value 1", 1, "bad-id"],
    ["feedback r-1 --name n", 2, "--value"],
    ["feedback r-1 --name n --value 1 --gateway http://127.0.0.1:9", 1, "gateway-away"],
    ["feedback r-1 --name n --value 1 --gateway http://127.0.0.1:9 --gateway-token-env NO", 1, "no-key"],
  ])("%s is refused", async (words, code, message) => {
    const cli = await withRollout();
    expect(await cli.run(words)).toMatchObject({ code, err: expect.stringContaining(message) });
  });
});
