import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, makeRevision, weightsOf } from "../support/shelf.ts";

const revisionWire = (id: string) => encodeWire(PolicyRevision, makeRevision(id).record) as object;
const stray = draftWire("stray", {}, { revision: { id: "policy-r9", digest: weightsOf("policy-r9") } });

/** A book with a key, one revision and two of its rollouts. */
async function filled(): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("keys new");
  await cli.ok("artifact import -", lines(revisionWire("policy-r1"), draftWire("a"), draftWire("b")));
  return cli;
}
const assemble = "batch assemble --target policy-r1 --level token";

describe("batch assemble", () => {
  it("leaves out what is excluded, and the refusal of a revision without a record says so", async () => {
    const cli = await filled();
    await cli.ok("artifact import -", lines(stray));
    const refused = await cli.run(assemble);
    expect(refused.err).toMatch(/policy-r9.*--exclude.*\[unknown-revision\]/);
    expect((await cli.json(`${assemble} --exclude stray`))[0].batch.totals.rows).toBe(2);
    expect((await cli.json(`${assemble} --exclude stray a`))[0].batch.totals.rows).toBe(1);
    expect((await cli.run(`${assemble} --exclude nobody`)).err).toContain("[not-found]");
  });

  it("says of which family a target is, and which feedback there is", async () => {
    const cli = await filled();
    expect((await cli.run(`${assemble} --family router`)).err).toContain(
      "policy-r1 is a revision of family train.decoder, not of router",
    );
    expect((await cli.run(`${assemble} --feedback nosuch`)).err).toContain("It has no feedback at all");
  });

  it("shows no drift between a revision and itself, numbered or not", async () => {
    const cli = await filled();
    expect(await cli.ok(assemble)).toMatch(/policy-r1 +0 +2/);
  });
});

describe("artifact", () => {
  it("ls refuses an ending that does not exist and names those that do", async () => {
    const cli = await filled();
    const { code, err } = await cli.run("artifact ls --ending foo");
    expect(code).toBe(2);
    expect(err).toContain("failed-infrastructure");
  });

  it("show --json gives every envelope of a content that was run twice", async () => {
    const cli = await filled();
    const again = draftWire("a", { envelope: { worker: "worker-b", startedAtMs: 1, endedAtMs: 2 } });
    await cli.ok("artifact import -", lines(again));
    const shown = await cli.json("artifact show a");
    expect(shown.map((each) => each.envelope.worker).sort()).toEqual(["worker-a", "worker-b"]);
    expect(new Set(shown.map((each) => each.contentDigest)).size).toBe(1);
    expect(await cli.ok("artifact import -", lines(...shown))).toContain("2 already there");
  });

  it("verify ends with a total", async () => {
    const cli = await filled();
    expect(await cli.ok("artifact verify")).toMatch(
      /total: 2 verifications, all self-consistent, 2 signed, 2 by a trusted key\n$/,
    );
  });
});

describe("verify", () => {
  it("of one rollout knows the revisions of the book", async () => {
    const cli = await filled();
    expect(await cli.ok("verify a")).not.toContain("without a record");
    await cli.ok("artifact import -", lines(stray));
    expect(await cli.ok("verify stray")).toContain("revisions without a record: train.decoder/policy-r9");
  });

  it("tells no signature from a signer that is not trusted", async () => {
    const cli = await filled();
    await cli.ok("artifact import --no-sign -", lines(draftWire("c")));
    const unsigned = await cli.run("verify --require-trusted");
    expect(unsigned.err).toContain("1 not signed at all");
    expect(unsigned.err).not.toContain("keys trust");
    const stranger = await new Cli().run(["verify", "a", "--require-trusted", "--book", cli.book]);
    expect(stranger.err).toContain("keys trust");
    expect(stranger.err).not.toContain("not signed at all");
  });

  it("needs no private key: one that cannot be read is named once", async () => {
    const cli = await filled();
    writeFileSync(join(cli.home, "key.pem"), "no key");
    const { code, err } = await cli.run("verify");
    expect(code).toBe(0);
    expect(err.match(/your own key cannot be used/g)).toHaveLength(1);
  });
});

describe("keys", () => {
  it.skipIf(process.platform === "win32")("that others may read sign nothing", async () => {
    const cli = await filled();
    const path = join(cli.home, "key.pem");
    chmodSync(path, 0o644);
    for (const words of ["artifact import -", assemble, "keys show"])
      expect(await cli.run(words, lines(draftWire("c")))).toMatchObject({
        code: 1,
        err: expect.stringContaining(`chmod 600 ${path}`),
      });
    expect((await cli.json("artifact ls")).length).toBe(2);
    expect(await cli.run("doctor")).toMatchObject({ out: expect.stringMatching(/^bad +key .*chmod 600/m) });
    chmodSync(path, 0o600);
    await cli.ok("artifact import -", lines(draftWire("c")));
  });

  it("that were replaced stay trusted until that is ended", async () => {
    const cli = await filled();
    const [{ publicKey }] = await cli.json("keys show");
    const { err } = await cli.run("keys new --force");
    expect(err).toContain(`rollbook keys untrust ${publicKey}`);
    await cli.ok("verify --require-trusted");
    expect(await cli.ok(`keys untrust ${publicKey}`)).toContain("no longer trusted");
    expect((await cli.run("verify --require-trusted")).code).toBe(1);
    expect((await cli.json("keys show"))[0].trusted).toEqual([]);
    expect((await cli.run(`keys untrust ${publicKey}`)).code).toBe(0);
    expect(await cli.ok("doctor")).toContain("0 other keys trusted");
  });
});
