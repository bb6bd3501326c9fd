/** Books, journals, replay stores and checkpoints of earlier versions. test/fixtures/books holds each one, with its
 *  content and the output of its own version. Neither is ever made again to pass. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { rngFrom, systemClock } from "../src/base/index.ts";
import { checkGatewayConfig, type Gateway, openGateway } from "../src/collect/gateway/index.ts";
import { inlineRollout } from "../src/contract/index.ts";
import { readCheckpoint } from "../src/policy/index.ts";
import { type Book, openBook } from "../src/store/index.ts";
import { Cli } from "./support/cli.ts";

interface Report {
  readonly counts: Readonly<Record<string, number>>;
  readonly trust: { readonly artifacts: number };
}
interface Batch {
  readonly arguments: string;
  readonly digest: string;
  readonly totals: object;
  readonly reasons: readonly object[];
}
interface Expected {
  readonly verified: Report;
  readonly catalog: object;
  /** By rollout id: the digest of the content, then the digests of its envelopes. */
  readonly artifacts: Readonly<Record<string, readonly string[]>>;
  readonly revisions: Readonly<Record<string, string>>;
  /** Digests by kind. */
  readonly roots: Readonly<Record<string, readonly string[]>>;
  readonly batches: readonly Batch[];
  readonly replay: Readonly<Record<string, { digest: string; rows: { chains: number }; segments: number }>>;
  readonly trained: Readonly<Record<string, { revision: string; weights: string }>>;
  readonly evaluated: readonly { arguments: string; rows: number; contenders: readonly object[] }[];
  readonly gated: readonly { arguments: string; outcome: "pass" | "refuse" }[];
  readonly killed: { verified: Report; open: Readonly<Record<string, number>>; sealed: readonly string[] };
}

const VERSION = "v0.1";
const FIXTURES = fileURLToPath(new URL("./fixtures/books/", import.meta.url));
const EXPECTED: Expected = JSON.parse(readFileSync(join(FIXTURES, `${VERSION}.json`), "utf8"));

describe(`what ${VERSION} has written`, () => {
  const tree = mkdtempSync(join(tmpdir(), "rollbook-old-"));
  beforeAll(() => {
    execFileSync("tar", ["-xzf", join(FIXTURES, `${VERSION}.tar.gz`), "-C", tree]);
  });
  afterAll(() => rmSync(tree, { recursive: true, force: true }));

  /** A command line on a copy of these parts. It uses the system clock, so that the rollouts are not from the
   *  future. */
  function copyOf(...parts: readonly string[]): Cli {
    const cli = new Cli({ clock: systemClock });
    for (const part of ["home", ...parts])
      cpSync(join(tree, part), join(cli.folder, part), { recursive: true });
    return cli;
  }
  /** The words of a recorded command, with its file paths changed to those of the copy. */
  const wordsIn = (cli: Cli, words: string) =>
    words.replaceAll(/ (input|checkpoints|replay)\//g, ` ${cli.folder}/$1/`);

  it("verifies with the counts it had, every artifact signed by the key that made it", async () => {
    const cli = copyOf("book");
    const [report] = await cli.json("verify");
    expect(report).toMatchObject({ ...EXPECTED.verified, ok: true, problems: [], catalog: [] });
    expect(report.counts).toEqual(EXPECTED.verified.counts);
    // Version 0.1 did not sign verdicts. They must not count as signed now.
    expect(report.trust.roots["rollbook.gate-verdict.v1"]).toMatchObject({ count: 2, signed: 0 });
    expect(await cli.run("verify --require-trusted")).toMatchObject({
      code: 1,
      err: expect.stringContaining("[not-trusted]"),
    });
  });

  it("holds the same records under the same names", async () => {
    const cli = copyOf("book");
    const artifacts = (await cli.json("artifact ls")).map(({ rolloutId, content, envelopes }) => [
      rolloutId,
      [content, ...envelopes],
    ]);
    expect(Object.fromEntries(artifacts)).toEqual(EXPECTED.artifacts);
    const revisions = (await cli.json("artifact ls --revisions")).map(({ family, id, record }) => [
      `${family}/${id}`,
      record,
    ]);
    expect(Object.fromEntries(revisions)).toEqual(EXPECTED.revisions);
    expect(await digestsByKind(cli.book, Object.keys(EXPECTED.roots))).toEqual(EXPECTED.roots);
    // Exported artifacts import again as the same artifacts.
    for (const name of ["gw-both-0", "gw-named", "writer-swapped", "writer-twice", "arms.csv:3"])
      expect(
        await cli.ok("artifact import - --no-sign", await cli.ok(`artifact show ${name} --json`)),
      ).toMatch(/^0 imported, [12] already there/);
  });

  it("gives the same catalog when that is made anew, and none is needed to read it", async () => {
    const cli = copyOf("book");
    expect(await cli.json("catalog rebuild")).toMatchObject([EXPECTED.catalog]);
    rmSync(join(cli.book, "catalog.db"));
    expect(await cli.json("artifact ls")).toHaveLength(Object.keys(EXPECTED.artifacts).length);
    expect(await cli.json("verify")).toMatchObject([{ ok: true, catalog: [] }]);
  });

  it("has batches that follow from their manifests", async () => {
    const cli = copyOf("book");
    const digests = EXPECTED.batches.map(({ digest }) => digest);
    const listed = (await cli.json("batch show")).map(({ digest }) => digest);
    expect(listed.sort()).toEqual([...digests].sort());
    const reports = await cli.json(`batch verify ${digests.join(" ")}`);
    expect(reports.map(({ digest, ok }) => [digest, ok])).toEqual(digests.map((digest) => [digest, true]));
  });

  it("gives the same batches when they are cut anew, and nothing else", async () => {
    const cli = copyOf("book");
    for (const { arguments: words, ...said } of EXPECTED.batches) {
      const [{ digest, batch, ledger }] = await cli.json(words);
      expect({ words, totals: batch.totals, reasons: ledger.reasons, digest }).toEqual({ words, ...said });
    }
    expect((await cli.json("verify"))[0].counts).toEqual(EXPECTED.verified.counts);
  });

  it("takes news: feedback on an old rollout is in the next batch", async () => {
    const cli = copyOf("book");
    const { arguments: words, totals } = EXPECTED.batches.find(({ arguments: all }) =>
      all.includes("accepted"),
    )!;
    await cli.ok("feedback writer-unlabelled --name accepted --value 1");
    const [{ batch }] = await cli.json(words);
    expect(batch.totals.rows).toBe((totals as { rows: number }).rows + 1);
    expect(await cli.json("verify")).toMatchObject([{ ok: true }]);
  });

  it.each([
    ["none", "router", "d-30"],
    ["zstd", "writer", "writer-3-0"],
  ])("has a replay store (%s) that is valid and takes another segment", async (name, family, artifact) => {
    const cli = copyOf("book", "replay");
    const store = join(cli.folder, "replay", name);
    const { digest, rows, segments } = EXPECTED.replay[name]!;
    expect(await cli.json(`replay validate ${store}`)).toMatchObject([{ valid: true, rows }]);
    const [{ manifest }] = await cli.json(`replay info ${store}`);
    expect([manifest.digest, manifest.rows, manifest.segments.length]).toEqual([digest, rows, segments]);
    await cli.ok(`replay append ${store} --family ${family} --artifact ${artifact}`);
    expect(await cli.json(`replay validate ${store}`)).toMatchObject([
      { valid: true, rows: { chains: rows.chains + 1 } },
    ]);
    const plain = join(cli.folder, "plain.zarr");
    await cli.ok(`replay compact ${store} ${plain}`);
    expect(await cli.json(`replay validate ${plain}`)).toMatchObject([{ valid: true }]);
  });

  it("has checkpoints that load, and revisions of them in the book that verify", async () => {
    const cli = copyOf("book", "checkpoints");
    for (const [name, { revision, weights }] of Object.entries(EXPECTED.trained)) {
      const loaded = readCheckpoint(join(cli.folder, "checkpoints", name)).revision;
      expect([name, loaded.digest, loaded.record.digest]).toEqual([name, revision, weights]);
      if (name !== "file") expect(await cli.json(`verify ${revision}`)).toMatchObject([{ ok: true }]);
    }
  });

  // Estimators improve from version to version and use more of the log. Contenders and verdicts stay the same.
  it("has policies that are judged against the same contenders, to the same verdicts", async () => {
    const cli = copyOf("book", "checkpoints", "input");
    for (const { arguments: words, contenders } of EXPECTED.evaluated) {
      const [found] = await cli.json(wordsIn(cli, words));
      const names = (each: readonly object[]) => each.map((one) => (one as { name: string }).name);
      expect(names(found.contenders)).toEqual(names(contenders));
      for (const { values } of found.contenders)
        for (const { value } of Object.values(values) as { value: number }[])
          expect(value).toBeTypeOf("number");
    }
    for (const { arguments: words, outcome } of EXPECTED.gated) {
      const { code, out } = await cli.run(`${wordsIn(cli, words)} --json`);
      expect([words, code, JSON.parse(out).outcome]).toEqual([words, outcome === "pass" ? 0 : 1, outcome]);
    }
  });

  it("has states of bandits that go on learning", async () => {
    const cli = copyOf("book", "checkpoints");
    const parent = join(cli.folder, "checkpoints", "linucb-again");
    for (const words of ["ucb --id next-ucb", `linucb --id next-linucb --parent ${parent}`])
      await cli.ok(`train ${words} --family router --out ${cli.folder}/${words.split(" ")[0]}`);
    expect(await cli.json("verify")).toMatchObject([{ ok: true }]);
  });

  it("has the journal of a killed gateway, whose open rollouts go on and are sealed with their calls", async () => {
    const cli = copyOf("killed");
    const root = join(cli.folder, "killed");
    expect(await cli.json(`verify --book ${root}`)).toMatchObject([EXPECTED.killed.verified]);
    const { gateway, book, post, stop } = await startGateway(root);
    const { open, sealed } = EXPECTED.killed;
    expect(gateway.damaged).toEqual([]);
    expect([...gateway.recovered].sort()).toEqual(Object.keys(open).sort());
    for (const [id, calls] of Object.entries(open)) {
      const status = await fetch(`${gateway.url}/v1/rollouts/${id}`);
      expect(await status.json()).toMatchObject({ id, usage: { calls } });
    }
    for (const id of sealed) expect((await post("/v1/rollouts", { id })).status).toBe(409);

    const closed = async (id: string) => {
      const { status, body } = await post(`/v1/rollouts/${id}/close`);
      expect([id, status]).toEqual([id, 200]);
      return (await inlineRollout((digest) => book.get(digest), body)) as unknown as Inlined;
    };
    const tokens = await closed("killed-tokens");
    expect(tokens.calls.map(({ response }) => response.messages[0]!.content)).toEqual([
      "answer 1",
      "answer 3",
    ]);
    expect(tokens).toMatchObject({
      ending: { kind: "terminal" },
      streams: [{ level: "token", family: "writer", logprobKind: "sampling" }],
    });
    expect(tokens.streams[0]!.mask!.filter((each) => each === 1)).toHaveLength(18);

    const routed = await closed("killed-routed");
    expect(routed).toMatchObject({
      ending: { kind: "failed", owner: "provider" },
      streams: [{ level: "step" }],
    });
    expect(routed.calls).toHaveLength(2);

    const ask = { model: "small", messages: [{ role: "user", content: "go on" }] };
    expect((await post("/v1/chat/completions", ask, "killed-in-call")).status).toBe(200);
    expect((await closed("killed-in-call")).calls).toHaveLength(2);
    expect((await post("/v1/rollouts/killed-empty/close")).status).toBe(200);
    await stop();

    const [after] = await cli.json(`verify --book ${root}`);
    expect(after).toMatchObject({ ok: true, trust: { artifacts: 4 } });
    // The feedback came while the rollout was open. The book records it together with the artifact.
    expect(after.counts["rollbook.feedback.v1"]).toBe(1);
  });
});

interface Inlined {
  readonly calls: readonly { response: { messages: readonly { content: string }[] } }[];
  readonly streams: readonly { readonly mask?: readonly number[] }[];
}

async function digestsByKind(root: string, kinds: readonly string[]): Promise<Record<string, string[]>> {
  const book = await openBook(root, { clock: systemClock, mode: "read" });
  const found = Object.fromEntries(kinds.map((kind): [string, string[]] => [kind, []]));
  for await (const item of book.scan()) if (item.type === "blob") found[item.kind]?.push(item.digest);
  await book.close();
  return Object.fromEntries(Object.entries(found).map(([kind, digests]) => [kind, digests.sort()]));
}

interface Started {
  readonly gateway: Gateway;
  readonly book: Book;
  post(path: string, body?: object, rollout?: string): Promise<{ status: number; body: never }>;
  stop(): Promise<void>;
}

/** A gateway on the book, under the name of the killed gateway. Its upstream answers "ok". */
async function startGateway(root: string): Promise<Started> {
  const book = await openBook(root, { clock: systemClock });
  const message = { role: "assistant", content: "ok" };
  const gateway = await openGateway({
    config: checkGatewayConfig({
      listen: { port: 0 },
      upstreams: { main: { baseUrl: "local:ok" } },
      models: { small: { upstream: "main" } },
    }),
    ...{ book, clock: systemClock, rng: rngFrom(1), newId: () => "r-new", env: {} },
    local: { ok: () => Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }] }) },
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= gateway.close(10_000, 100).then(() => book.close());
    return stopped;
  };
  onTestFinished(stop);
  const post: Started["post"] = async (path, body = {}, rollout) => {
    const response = await fetch(gateway.url + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(rollout === undefined ? {} : { authorization: `Bearer rb-${rollout}` }),
      },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as never };
  };
  return { gateway, book, post, stop };
}
