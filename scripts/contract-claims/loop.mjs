/** "One bounded but real loop", on the command line. */
import { deepStrictEqual as equal, ok, strictEqual as same } from "node:assert";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { draft, LOOP_INPUT, lines, PROOFS, revisionJson, weights, withCli } from "./world.mjs";

const ASSEMBLE = "batch assemble --level token --advantage claimed --target";

export const loopRows = [
  {
    name: "loop-revisions",
    claim: "the loop creates checkpoint-backed policy revisions",
    sound: () => lines(revisionJson(1), revisionJson(2)),
    broken: () =>
      lines(revisionJson(1), {
        ...revisionJson(2),
        checkpoint: { ...revisionJson(2).checkpoint, objectDigest: "latest" },
      }),
    prove: (input) =>
      withCli(async ({ json }) => {
        const summary = await json("artifact import -", input);
        same(summary.imported, 2);
        const report = await json("verify");
        same(report.counts["rollbook.policy-revision.v1"], 2);
        same(report.external, 2, "a revision without the object of its checkpoint");
      }),
  },
  {
    name: "loop-artifacts",
    claim:
      "artifacts carry ref@version, token ids, logprobs, rewards, advantages and proof references, and give them back",
    sound: () => draft("rollout-b"),
    broken: () => draft("rollout-b", { environment: "env.weather" }),
    prove: (input) =>
      withCli(async ({ cli, json }) => {
        await cli("artifact import -", lines(revisionJson(2), input));
        const shown = await json("artifact show rollout-b");
        same(shown.environment, "env.weather@1");
        const { ids, logprobs, rewards, advantages } = shown.streams[0];
        equal({ ids, logprobs, rewards, advantages }, pick(draft("rollout-b").streams[0]));
        equal(shown.envelope.proofs, PROOFS["rollout-b"]);
        const again = await json("artifact import -", JSON.stringify(shown));
        equal([again.imported, again.already], [0, 1], "import does not know what show gave");
      }),
  },
  {
    name: "loop-batch",
    claim: "artifacts are assembled into a trainer batch that targets a later policy revision",
    sound: () => "policy-r3",
    broken: () => "policy-r1",
    prove: (target) =>
      withCli(async ({ cli, json }) => {
        await cli("artifact import -", LOOP_INPUT());
        const { batch, lineage, ledger } = await json(`${ASSEMBLE} ${target}`);
        equal([batch.totals.rows, batch.totals.samples, batch.tokens], [2, 4, 4]);
        equal(ledger.excluded, { artifacts: 0, samples: 0, streams: 0, tokens: 0 });
        ok(
          lineage.sources.every(({ drift }) => drift !== null && BigInt(drift) > 0n),
          "the target is not later than every source",
        );
      }),
  },
  {
    name: "loop-digests",
    claim: "batch and lineage digests are surfaced for replay and review, and verify recomputes them",
    sound: () => () => {},
    broken: () => flipByteOfBatch,
    prove: (between) =>
      withCli(async ({ cli, json, book }) => {
        await cli("artifact import -", LOOP_INPUT());
        const { digest, batch } = await json(`${ASSEMBLE} policy-r3`);
        for (const each of [digest, batch.lineage, batch.manifest, batch.ledger])
          ok(/^sha256:[0-9a-f]{64}$/.test(each));
        between(book, batch);
        same((await json(`batch verify ${digest}`)).ok, true);
        same((await json("verify --require-trusted")).ok, true);
      }),
  },
];

function pick({ ids, logprobs, rewards, advantages }) {
  return { ids, logprobs, rewards, advantages };
}

/** Changes a total inside the sealed batch, in its pack file. */
function flipByteOfBatch(book) {
  for (const name of readdirSync(join(book, "packs"))) {
    const file = join(book, "packs", name);
    const bytes = readFileSync(file);
    const at = bytes.indexOf(weights("policy-r3").slice(7));
    if (at < 0) continue;
    bytes[bytes.indexOf('"rewardSum":') + 12] ^= 1;
    writeFileSync(file, bytes);
  }
}
