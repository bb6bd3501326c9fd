import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  asked,
  keyOf,
  makePolicy,
  placePolicy,
  SPEC,
  verdictOn,
} from "../../test/support/served-policies.ts";
import { manualClock } from "../base/clock.ts";
import { rngFrom } from "../base/rng.ts";
import {
  type Checkpoint,
  decide,
  digestRouter,
  distribution,
  parseStaticTable,
  policyOf,
  writeCheckpoint,
} from "../policy/index.ts";
import { checkRouterConfig, type RouterConfigInput } from "./config.ts";
import type { ReleaseHistory } from "./released-routers.ts";
import { openRouter, type RouterPlace, type ServedRouter } from "./router.ts";

const TABLE = { default: ["small", "large"] };
const table = parseStaticTable(
  JSON.stringify({ schema: "rollbook.static-table.v1", ...TABLE }),
  "router.table",
);
const SUM = { prompt: "add one and two", fields: {} };
const PROOF = { prompt: "prove it", fields: {} };

/** Book that knows these verdicts and checkpoints. */
function bookOf(standing: ReleaseHistory, checkpoints: readonly Checkpoint[]) {
  const held = { standing };
  return {
    held,
    releases: {
      standing: async () => held.standing,
      checkpoint: async (revision: { digest: string }, family: string | undefined) =>
        checkpoints.find(
          ({ revision: { record } }) =>
            record.digest === revision.digest && (family === undefined || record.family === family),
        ),
    },
  };
}

async function open(config: RouterConfigInput, place: Partial<RouterPlace> = {}) {
  const lines: string[] = [];
  const router = await openRouter(checkRouterConfig({ table: TABLE, ...config }), {
    ...{ clock: manualClock(5000), candidates: asked(), log: (line) => lines.push(line) },
    ...place,
  });
  onTestFinished(() => router.close());
  return { router, lines };
}

const ask = (router: ServedRouter, call: string, context = SUM) =>
  router.choose({ alias: "auto", context, candidates: asked(), call });
const released = (checkpoint: Checkpoint, over: object = {}, atMs = 2000) => {
  const router = { policy: policyOf(checkpoint), table, floor: 0.5, exploration: 0.1, ...over };
  return verdictOn(checkpoint, { ...router, digest: digestRouter(router) }, { atMs });
};

describe("a learned policy", () => {
  const policy = makePolicy("r1");

  test("serves the very router that a verdict lets through, floor and exploration as judged", async () => {
    const { releases } = bookOf({ verdicts: [released(policy)], rollbacks: [] }, [policy]);
    const { router } = await open({ checkpoint: "released" }, { releases });
    const judged = { policy: policyOf(policy), table, floor: 0.5, exploration: 0.1 };
    expect(router.status()).toMatchObject({
      ...{ serving: "policy", policy: keyOf(policy), router: digestRouter(judged) },
    });
    const { decision, revision, family } = ask(router, "r.0");
    expect(revision.digest).toBe(digestRouter(judged));
    expect(family).toBe("router");
    expect(decision.probabilities).toEqual(distribution(SUM, asked(), judged).probabilities);
    expect(decision).toMatchObject({ reason: "policy", policy: keyOf(policy) });
  });

  test("is refused in words where the configuration is not what was judged", async () => {
    const { releases } = bookOf({ verdicts: [released(policy)], rollbacks: [] }, [policy]);
    for (const [over, words] of [
      [{ floor: 0.6 }, "floor 0.6, judged 0.5"],
      [{ exploration: 0.3 }, "exploration 0.3, judged 0.1"],
      [{ table: { default: ["large", "small"] } }, "another static table"],
      [{ constraints: { maxPriceUsdPerCall: 1 } }, "other constraints than were judged"],
    ] as [RouterConfigInput, string][]) {
      const { router } = await open({ checkpoint: "released", ...over }, { releases });
      expect(router.status()).toMatchObject({ serving: "static", policy: null });
      expect(router.status().why).toContain(words);
    }
  });

  test("without a verdict serves only where it is allowed, with exploration 0.02", async () => {
    const folder = placePolicy(policy);
    const { router } = await open({ checkpoint: folder });
    expect(router.status().why).toMatch(/no gate verdict releases revision r1/);
    const ungated = (await open({ checkpoint: folder, allowUngated: true })).router;
    expect(ungated.status()).toMatchObject({ serving: "policy", verdict: null });
    expect(ask(ungated, "r.0").served.router.exploration).toBe(0.02);
  });

  test("is released by a verdict file too, where there is no book", async () => {
    const folder = placePolicy(policy);
    const file = `${folder}.verdict.json`;
    writeFileSync(file, released(policy).bytes);
    const { router } = await open({ checkpoint: folder, verdict: file });
    expect(router.status()).toMatchObject({ serving: "policy", verdict: released(policy).digest });
  });

  test("that serves again after a rollback has no holdback, also after a restart", async () => {
    const bad = makePolicy("r2", { prefers: "large" });
    const [good, newer] = [released(policy), released(bad, {}, 2500)];
    const from = { digest: newer.record.candidates[0]!.router.digest };
    const standing = { verdicts: [newer, good], rollbacks: [{ from, atMs: 3000 }] };
    const { releases } = bookOf(standing, [policy, bad]);
    const { router } = await open({ checkpoint: "released", rollback: { holdback: 0.5 } }, { releases });
    expect(router.status()).toMatchObject({ serving: "policy", policy: keyOf(policy), previous: null });
    const by = Array.from({ length: 40 }, (_, i) => ask(router, `r${i}.0`).served.digest);
    expect(new Set(by)).toEqual(new Set([router.status().router]));
    // A verdict after the rollback makes the router new, so it is watched.
    const later = bookOf({ ...standing, verdicts: [released(policy, {}, 4000), newer, good] }, [policy, bad]);
    const watched = await open({ checkpoint: "released" }, { releases: later.releases });
    expect(watched.router.status().previous).not.toBeNull();
  });

  test("that is disabled, or was taken back after its verdict, leaves the table", async () => {
    const verdict = released(policy);
    const from = { digest: verdict.record.candidates[0]!.router.digest };
    const { releases } = bookOf({ verdicts: [verdict], rollbacks: [{ from, atMs: 3000 }] }, [policy]);
    const { router } = await open({ checkpoint: "released" }, { releases });
    expect(router.status()).toMatchObject({ serving: "static" });
    const again = bookOf(
      { verdicts: [released(policy, {}, 4000), verdict], rollbacks: [{ from, atMs: 3000 }] },
      [policy],
    );
    const back = await open({ checkpoint: "released" }, { releases: again.releases });
    expect(back.router.status().serving).toBe("policy");
    const off = await open({ checkpoint: "released", enabled: false }, { releases: again.releases });
    expect(off.router.status().why).toMatch(/disabled/);
  });

  test("that the environment names and does not enable leaves the strategy of the file", async () => {
    const candidates = { small: { quality: 0.9 }, large: { quality: 0.1 } };
    const config = checkRouterConfig(
      { strategy: "softmax", exploration: 0, candidates },
      { env: { ROLLBOOK_CHECKPOINT: "nowhere" } },
    );
    const { router, lines } = await open(config);
    expect(lines).toEqual([
      expect.stringMatching(/disabled, so strategy softmax decides.*ROLLBOOK_POLICY=1/),
    ]);
    expect(ask(router, "r.0").decision.probabilities[0]).toBeGreaterThan(0.99);
  });

  test("below its floor leaves the decision to the table, and says how sure it was", async () => {
    const unsure = makePolicy("r2", { sure: 0.4 });
    const config = { checkpoint: placePolicy(unsure), allowUngated: true, floor: 0.9, exploration: 0 };
    const { router } = await open(config);
    const { decision } = ask(router, "r.0");
    expect(decision).toMatchObject({ chosen: 0, reason: "below-floor", policy: keyOf(unsure) });
    expect(ask(router, "r.0", PROOF).decision).toMatchObject({ chosen: 1, reason: "policy" });
  });
});

describe("a policy that may not serve leaves every request to the static table", () => {
  const good = placePolicy(makePolicy("r1"));
  const corrupt = placePolicy(makePolicy("r1"));
  writeFileSync(join(corrupt, "policy.safetensors"), "not weights");
  const features = `${good}.features.json`;
  writeFileSync(features, JSON.stringify({ ...SPEC, maxWords: 7 }));
  const needsPrice = { ...SPEC, candidate: ["price"] };
  test.each([
    ["missing", { checkpoint: "/no/such/folder" }, /folder \/no\/such\/folder does not exist/],
    ["corrupt", { checkpoint: corrupt }, /the bytes hash to/],
    [
      "of another family",
      { checkpoint: placePolicy(makePolicy("r1", { family: "judge" })) },
      /is of family judge/,
    ],
    ["of another feature spec", { checkpoint: good, features }, /they differ in maxWords/],
    [
      "of features that no candidate has",
      { checkpoint: placePolicy(makePolicy("r1", { spec: needsPrice })) },
      /feature price is missing/,
    ],
    [
      "of other candidates",
      { checkpoint: placePolicy(makePolicy("r1", { arms: ["a", "b"], prefers: "a" })) },
      /knows none of the candidates/,
    ],
    ["not released", { checkpoint: good, allowUngated: false }, /no gate verdict/],
    ["asked of a book that is not there", { checkpoint: "released" }, /needs a book with gate verdicts/],
  ] as const)("%s", async (_, config, why) => {
    const { router, lines } = await open({ allowUngated: true, exploration: 0, ...config });
    expect(router.status()).toMatchObject({ serving: "static" });
    expect(router.status().why).toMatch(why);
    expect(lines[0]).toMatch(
      /^warning: router: the configured policy cannot serve, so the static table decides: /,
    );
    for (let i = 0; i < 50; i++) expect(ask(router, `r.${i}`).decision.chosen).toBe(0);
  });

  test("one that fails on a request, which the table then decides under its own digest", async () => {
    const spec = { ...SPEC, fields: [{ name: "turn", kind: "number" as const }] };
    const checkpoint = placePolicy(makePolicy("r1", { spec }));
    const { router, lines } = await open({ checkpoint, allowUngated: true, exploration: 0 });
    const odd = { prompt: "hello", fields: { turn: "first" } };
    const answers = [0, 1, 2].map((i) => ask(router, `r.${i}`, odd as typeof SUM));
    for (const { decision, revision } of answers) {
      expect(decision).toMatchObject({ chosen: 0, reason: "no-policy" });
      expect(revision.digest).toBe(digestRouter({ table, floor: 0, exploration: 0 }));
    }
    expect(router.status().counts.fallbacks).toBe(3);
    expect(lines.filter((line) => line.includes("could not decide"))).toHaveLength(1);
  });
});

describe("a static table", () => {
  test("with a typo is refused at the start, with what is known", async () => {
    await expect(open({ table: { default: ["smal"] } })).rejects.toThrow(/"smal".*Did you mean small\?/);
    await expect(open({ table: { defualt: ["small"] } })).rejects.toThrow(/Did you mean default\?/);
    await expect(open({ table: "/no/such/table.yaml" })).rejects.toThrow(/cannot be read/);
    const on = (fields: Record<string, number | string | { min: number }>) =>
      open({ table: { rules: [{ when: { fields }, choose: "small" }], default: "small" } });
    for (const wanted of [0, { min: 1 }])
      await expect(on({ tool: wanted })).rejects.toThrow(
        /the field tool, which no call has\. Did you mean tools\?/,
      );
    // A field that only /v1/route has.
    expect((await on({ tool: "sql", team: "maths" })).lines).toHaveLength(1);
  });

  test("that names none of the candidates left still serves, in the order of the list", async () => {
    const { router } = await open({ table: { default: ["small"] }, exploration: 0 });
    const first = ask(router, "r.0");
    const next = router.chooseNext(first, ["small"]);
    expect(next.decision).toMatchObject({ chosen: 1, probabilities: [0, 1] });
    expect(next.decision.candidates![0]!.reasons).toEqual(["failed"]);
  });

  test("explores 0.02 of the choices, epsilon-greedy 0.1, and softmax follows what is declared", async () => {
    const candidates = { small: { quality: 0.6, callPrice: 0 }, large: { quality: 0.8, callPrice: 0.1 } };
    const probabilities = async (config: RouterConfigInput) => {
      const { router } = await open({ ...config, candidates });
      return ask(router, "r.0").decision.probabilities;
    };
    expect(await probabilities({})).toEqual([0.99, 0.01]);
    expect((await probabilities({ strategy: "epsilon-greedy" }))[1]).toBe(0.05);
    const [p = 0, q = 0] = await probabilities({ strategy: "softmax", exploration: 0 });
    // (0.8 − 0.1 − 0.6) / 0.1 = 1, so the ratio is e.
    expect(q / p).toBeCloseTo(Math.E, 6);
  });

  test("that is not configured ranks the candidates by declared worth", async () => {
    const candidates = { small: { quality: 0.6 }, large: { quality: 0.8 } };
    const config = checkRouterConfig({ candidates, exploration: 0 });
    const router = await openRouter(config, { clock: manualClock(0) });
    expect(ask(router, "r.0").decision.chosen).toBe(1);
  });
});

describe("zero budget", () => {
  const candidates = { small: { callPrice: 0.1 }, large: { callPrice: 1 } };
  const constraints = { maxPriceUsdPerCall: 0 };

  test("serves the cheapest, and the log says that no candidate kept the limit", async () => {
    const { router } = await open({ candidates, constraints });
    const { decision } = ask(router, "r.0");
    expect(decision).toMatchObject({ chosen: 0, reason: "constraints-relaxed", probabilities: [1, 0] });
    const { lines } = router.explain(ask(router, "r.0"));
    expect(lines).toContain("large could not be chosen: it costs more than the limit.");
    expect(lines).toContain("small was taken although it costs more than the limit.");
  });

  test("refuses where the configuration says so", async () => {
    const { router } = await open({ candidates, constraints: { ...constraints, onNone: "refuse" } });
    expect(() => ask(router, "r.0")).toThrow(/small: over-price; large: over-price/);
  });
});

describe("a draw", () => {
  const config = { exploration: 0.5, seed: 7 };

  test("follows from the seed and the call, in any order and any process", async () => {
    const [{ router: a }, { router: b }] = [await open(config), await open(config)];
    const calls = Array.from({ length: 40 }, (_, i) => `r.${i}`);
    const first = new Map(calls.map((call) => [call, ask(a, call).decision.chosen]));
    for (const call of [...calls].reverse()) expect(ask(b, call).decision.chosen).toBe(first.get(call));
    expect(new Set(first.values()).size).toBe(2);
    const { drawKey, served } = ask(a, "r.3");
    expect(decide(SUM, asked(), served.router, rngFrom(7).split(drawKey)).chosen).toBe(first.get("r.3"));
  });

  test("of calls without a name is another each time", async () => {
    const { router } = await open(config);
    const chosen = Array.from(
      { length: 40 },
      () => router.choose({ alias: "auto", context: SUM, candidates: asked() }).decision.chosen,
    );
    expect(new Set(chosen).size).toBe(2);
  });

  test("after a failure is a second step among what remains, the same through choose and chooseNext", async () => {
    const { router } = await open(
      { ...config, table: { default: ["a", "b", "c"] } },
      { candidates: asked("a", "b", "c") },
    );
    const three = asked("a", "b", "c");
    for (let i = 0; i < 20; i++) {
      const question = { alias: "auto", context: SUM, candidates: three, call: `r.${i}` };
      const next = router.chooseNext(router.choose(question), ["a"]);
      expect(next.decision.probabilities).toEqual([0, 0.75, 0.25]);
      const gone = three.map((one) =>
        one.id === "a" ? { ...one, selectable: false, reasons: ["failed"] } : one,
      );
      expect(router.choose({ ...question, candidates: gone }).decision).toEqual(next.decision);
      const last = router.chooseNext(next, ["a", "b"]);
      expect(last.decision).toMatchObject({ chosen: 2, probabilities: [0, 0, 1] });
      expect(() => router.chooseNext(last, ["a", "b", "c"])).toThrow(/none of the 3 candidates/);
    }
  });
});

describe("a shadow", () => {
  test("decides on the same question, is logged, and does not act", async () => {
    const shadow = { checkpoint: placePolicy(makePolicy("s1")), exploration: 0 };
    const { router } = await open({ exploration: 0, shadow });
    const plain = (await open({ exploration: 0 })).router;
    const { decision } = ask(router, "r.0");
    expect(decision.chosen).toBe(ask(plain, "r.0").decision.chosen);
    expect(decision.shadow).toMatchObject({ chosen: 1 });
    expect(router.explain(ask(router, "r.1")).lines.at(-1)).toMatch(/would have chosen large/);
    expect(router.status().counts).toMatchObject({ shadowed: 2, disagreed: 2 });
  });

  test("that cannot be loaded costs no request", async () => {
    const { router, lines } = await open({ shadow: { checkpoint: "/no/such/folder" } });
    expect(ask(router, "r.0").decision.shadow).toBeUndefined();
    expect(lines.some((line) => line.includes("the shadow is not used"))).toBe(true);
  });
});

describe("a reload", () => {
  const [one, two] = [makePolicy("r1"), makePolicy("r2", { prefers: "small" })];
  const replace = (folder: string, checkpoint: Checkpoint) => {
    rmSync(folder, { recursive: true });
    writeCheckpoint(`${folder}.new`, checkpoint);
    renameSync(`${folder}.new`, folder);
  };

  test("swaps to a new checkpoint in the folder, and keeps the old one as the previous", async () => {
    const folder = placePolicy(one);
    const { router } = await open({ checkpoint: folder, allowUngated: true, exploration: 0 });
    const before = ask(router, "r.0");
    expect(await router.reload()).toBe("unchanged");
    replace(folder, two);
    expect(await router.reload()).toBe("swapped");
    expect(before.decision.chosen).toBe(1);
    expect(ask(router, "r.0").decision.chosen).toBe(0);
    expect(router.status()).toMatchObject({ previous: before.served.digest, policy: keyOf(two) });
    // A failover of a call stays with the router that began the call.
    expect(router.chooseNext(before, ["small"]).served.digest).toBe(before.served.digest);
  });

  test("keeps the old router where the new file is bad or gone, and says so once for each change", async () => {
    const folder = placePolicy(one);
    const { router, lines } = await open({ checkpoint: folder, allowUngated: true });
    const { router: digest } = router.status();
    writeFileSync(join(folder, "policy.safetensors"), "torn");
    expect(await router.reload()).toBe("kept");
    expect(await router.reload()).toBe("unchanged");
    rmSync(folder, { recursive: true });
    expect(await router.reload()).toBe("kept");
    expect(router.status()).toMatchObject({
      router: digest,
      serving: "policy",
      counts: { refusedReloads: 2 },
    });
    expect(lines.filter((line) => line.startsWith("warning: router: kept"))).toHaveLength(2);
    writeCheckpoint(folder, two);
    expect(await router.reload()).toBe("swapped");
  });

  test("follows the newest release of the book, and a rollback by another process", async () => {
    const standing = { verdicts: [released(one)], rollbacks: [] };
    const { releases, held } = bookOf(standing, [one, two]);
    const { router } = await open({ checkpoint: "released" }, { releases });
    const first = router.status().router;
    held.standing = { ...standing, verdicts: [released(two, {}, 3000), released(one)] };
    expect(await router.reload()).toBe("swapped");
    expect(router.status()).toMatchObject({ policy: keyOf(two), previous: first });
    const from = { digest: router.status().router };
    held.standing = { ...held.standing, rollbacks: [{ from, atMs: 4000 }] as never };
    expect(await router.reload()).toBe("swapped");
    expect(router.status()).toMatchObject({ policy: keyOf(one), router: first });
  });

  test("and a start pass over a newer release that the configuration does not fit, and say why", async () => {
    const three = makePolicy("r3", { sure: 3 });
    const verdicts = [released(one)];
    const { releases, held } = bookOf({ verdicts, rollbacks: [] }, [one, two, three]);
    const config = { checkpoint: "released", exploration: 0.1 };
    const { router, lines } = await open(config, { releases });
    const first = router.status().router;
    held.standing = { verdicts: [released(two, { exploration: 0 }, 3000), ...verdicts], rollbacks: [] };
    expect(await router.reload()).toBe("kept");
    expect(lines.at(-1)).toMatch(/kept .* revision r2 is not released as configured: .*0\.1, judged 0/);
    const started = await open(config, { releases });
    expect(started.router.status()).toMatchObject({ serving: "policy", policy: keyOf(one), router: first });
    expect(started.lines[0]).toMatch(
      /^warning: router: revision r1, released by .*serves in place of r2, which cannot: revision r2 is not .*exploration 0\.1, judged 0/,
    );
    expect(started.router.active.previous!.model).toBeUndefined();
    // A change elsewhere in the book is not reported as another refusal.
    held.standing = { ...held.standing, rollbacks: [{ from: keyOf(three), atMs: 3500 }] };
    expect(await router.reload()).toBe("unchanged");
    held.standing = { verdicts: [released(three, {}, 4000), ...held.standing.verdicts], rollbacks: [] };
    expect(await router.reload()).toBe("swapped");
    expect(router.status()).toMatchObject({ policy: keyOf(three), previous: first });
  });

  test("says that the book does not hold the checkpoint of a newer release, whatever serves", async () => {
    const said =
      /kept .*revision r2.* passed the gate \(verdict \w+\), but the book has no copy of its checkpoint, /;
    for (const verdicts of [[], [released(one)]]) {
      const { releases, held } = bookOf({ verdicts, rollbacks: [] }, [one]);
      const { router, lines } = await open({ checkpoint: "released" }, { releases });
      const first = router.status().router;
      held.standing = { verdicts: [released(two, {}, 3000), ...verdicts], rollbacks: [] };
      expect(await router.reload()).toBe("kept");
      expect(lines.at(-1)).toMatch(said);
      expect(router.status().router).toBe(first);
    }
  });

  test("to the table warns after a rollback, and no line before the first release does", async () => {
    const { releases, held } = bookOf({ verdicts: [], rollbacks: [] }, [one]);
    const { router, lines } = await open({ checkpoint: "released" }, { releases });
    held.standing = { verdicts: [released(one)], rollbacks: [] };
    expect(await router.reload()).toBe("swapped");
    expect(lines).toEqual([
      "router: no policy is released yet, so the table decides",
      expect.stringMatching(/^router: now revision r1, released by/),
    ]);
    const from = { digest: router.status().router };
    held.standing = { ...held.standing, rollbacks: [{ from, atMs: 3000 }] };
    expect(await router.reload()).toBe("swapped");
    expect(lines.at(-1)).toMatch(
      /^warning: router: now the configured policy cannot serve, so the static table decides: a rollback withdrew the newest released policy of router, revision r1, at 1970-01-01T00:00:03\.000Z, and no verdict/,
    );
  });

  test("names the family of the release, where the router has another one", async () => {
    const { releases } = bookOf({ verdicts: [released(one)], rollbacks: [] }, [one]);
    const { lines } = await open({ checkpoint: "released", family: "agent" }, { releases });
    expect(lines[0]).toMatch(
      /no policy of family agent is released\. The newest release of the book, revision r1, is of family router\. Set router\.family to router/,
    );
  });

  test("passes over a release of another family in silence", async () => {
    const other = makePolicy("r9", { family: "other", sure: 3 });
    const { releases, held } = bookOf({ verdicts: [released(one)], rollbacks: [] }, [one, other]);
    const { router } = await open({ checkpoint: "released" }, { releases });
    held.standing = { verdicts: [released(other, {}, 3000), released(one)], rollbacks: [] };
    expect(await router.reload()).toBe("unchanged");
  });

  test("of a table with a typo keeps the table that serves", async () => {
    const file = `${placePolicy(one)}.table.yaml`;
    const write = (choice: string) =>
      writeFileSync(file, `schema: rollbook.static-table.v1\ndefault: ${choice}\n`);
    write("[small, large]");
    const { router, lines } = await open({ table: file, exploration: 0 });
    write("[smal, large]");
    expect(await router.reload()).toBe("kept");
    expect(ask(router, "r.0").decision.chosen).toBe(0);
    expect(lines.at(-1)).toMatch(/smal/);
    write("[large, small]   ");
    expect(await router.reload()).toBe("swapped");
    expect(ask(router, "r.0").decision.chosen).toBe(1);
  });

  test("of a table that stays unreadable reports the reason once, and again after a repair", async () => {
    const file = `${placePolicy(one)}.table.yaml`;
    const write = (choice: string) =>
      writeFileSync(file, `schema: rollbook.static-table.v1\ndefault: ${choice}\n`);
    write("[small, large]");
    const { router, lines } = await open({ table: file, exploration: 0 });
    const kept = () => lines.filter((line) => line.includes("router: kept")).length;
    for (const [round, choice] of ["[large, small]   ", "[small, large]      "].entries()) {
      rmSync(file);
      expect(await router.reload()).toBe("kept");
      expect(await router.reload()).toBe("unchanged");
      expect(await router.reload()).toBe("unchanged");
      expect([kept(), router.status().counts.refusedReloads]).toEqual([round + 1, round + 1]);
      write(choice);
      expect(await router.reload()).toBe("swapped");
    }
  });

  test("of a book that cannot be read rejects nothing, and follows the book once it can be read", async () => {
    const { releases, held } = bookOf({ verdicts: [released(one)], rollbacks: [] }, [one, two]);
    let looks = 0;
    const failing = {
      ...releases,
      standing: () => (++looks > 3 ? Promise.reject(new Error("the disk is gone")) : releases.standing()),
    };
    const { router, lines } = await open({ checkpoint: "released" }, { releases: failing });
    held.standing = { verdicts: [released(two, {}, 3000), released(one)], rollbacks: [] };
    looks = 1; // The signature and the router are read, the rollbacks are not.
    expect(await router.reload()).toBe("kept");
    expect(lines.at(-1)).toContain("the disk is gone");
    expect(await router.reload()).toBe("unchanged");
    looks = 0;
    expect(await router.reload()).toBe("swapped");
    expect(router.status()).toMatchObject({ policy: keyOf(two) });
  });

  test("under way at the close has ended when the close resolves", async () => {
    const { releases } = bookOf({ verdicts: [released(one)], rollbacks: [] }, [one]);
    const book = { isOpen: true, answer: Promise.resolve() };
    const standing = async () => {
      await book.answer;
      if (!book.isOpen) throw new Error("the book is closed");
      return releases.standing();
    };
    const { router, lines } = await open({ checkpoint: "released" }, { releases: { ...releases, standing } });
    const before = [...lines];
    let answer = () => {};
    book.answer = new Promise((resolve) => {
      answer = resolve;
    });
    const reload = router.reload();
    const closed = router.close().then(() => {
      book.isOpen = false;
    });
    answer();
    await closed;
    expect(await reload).toBe("unchanged");
    expect(lines).toEqual(before);
  });

  test("reads an edited feature spec", async () => {
    const folder = placePolicy(one);
    const features = `${folder}.features.json`;
    writeFileSync(features, JSON.stringify(SPEC));
    const { router, lines } = await open({ checkpoint: folder, allowUngated: true, features });
    expect(await router.reload()).toBe("unchanged");
    writeFileSync(features, JSON.stringify({ ...SPEC, wordBuckets: 1024 }));
    expect(await router.reload()).toBe("kept");
    expect(lines.at(-1)).toContain("feature");
  });

  test("reports a verdict that no trusted key signed", async () => {
    const { releases, held } = bookOf({ verdicts: [], rollbacks: [], distrusted: 0 }, [one]);
    const { router, lines } = await open({ checkpoint: "released" }, { releases });
    held.standing = { ...held.standing, distrusted: 1 };
    expect(await router.reload()).toBe("kept");
    expect(lines.at(-1)).toContain("(1 verdict not signed by a trusted key)");
  });

  test("every few milliseconds under 2 000 requests answers each of them with a distribution of one router", async () => {
    const folder = placePolicy(one);
    const { router } = await open({
      checkpoint: folder,
      allowUngated: true,
      exploration: 0.1,
      reload: { everyMs: 1 },
    });
    const seen = new Set<string>();
    for (let i = 0; i < 2000; i++) {
      if (i % 100 === 0) replace(folder, i % 200 === 0 ? two : one);
      if (i % 20 === 0) await new Promise((done) => setTimeout(done, 2));
      const { decision, revision, served } = ask(router, `r.${i}`);
      expect(decision.probabilities).toEqual(distribution(SUM, asked(), served.router).probabilities);
      seen.add(revision.digest);
    }
    expect(seen.size).toBe(2);
    expect(router.status().counts).toMatchObject({ decisions: 2000, fallbacks: 0 });
    expect(router.status().counts.reloads).toBeGreaterThan(5);
  });
});

describe("a rollback", () => {
  test("returns to the router before, and the file alone does not bring the new one back", async () => {
    const [one, two] = [makePolicy("r1"), makePolicy("r2", { prefers: "small" })];
    const folder = placePolicy(one);
    const { router } = await open({ checkpoint: folder, allowUngated: true, exploration: 0 });
    expect(router.rollBack("the table is the router before the first policy")?.to.model).toBeUndefined();
    const again = (await open({ checkpoint: folder, allowUngated: true, exploration: 0 })).router;
    rmSync(folder, { recursive: true });
    writeCheckpoint(folder, two);
    await again.reload();
    expect(again.rollBack("harm")).toMatchObject({ to: { router: { policy: { revision: keyOf(one) } } } });
    expect(ask(again, "r.0").decision.chosen).toBe(1);
    expect(again.rollBack("there is nothing before it")).toBeUndefined();
    rmSync(folder, { recursive: true });
    writeCheckpoint(folder, two);
    expect(await again.reload()).toBe("kept");
    expect(again.status()).toMatchObject({ policy: keyOf(one), counts: { rollbacks: 1 } });
  });

  test("holds where a newer release does not fit: falling back chooses no policy that was taken back", async () => {
    const [one, two, three] = [
      makePolicy("r1"),
      makePolicy("r2", { sure: 3 }),
      makePolicy("r3", { sure: 2 }),
    ];
    const [first, second] = [released(one), released(two, {}, 3000)];
    const unfit = released(three, { exploration: 0 }, 5000);
    const from = { digest: second.record.candidates[0]!.router.digest };
    const rollbacks = [{ from, atMs: 4000 }];
    const serves = async (standing: ReleaseHistory, config: RouterConfigInput = { exploration: 0.1 }) => {
      const { releases } = bookOf(standing, [one, two, three]);
      const { router } = await open({ checkpoint: "released", ...config }, { releases });
      return router.status().policy;
    };
    expect(await serves({ verdicts: [unfit, second, first], rollbacks: [] })).toEqual(keyOf(two));
    expect(await serves({ verdicts: [unfit, second, first], rollbacks })).toEqual(keyOf(one));
    expect(await serves({ verdicts: [unfit, second], rollbacks })).toBeNull();
    // Another router around the same policy, judged before the rollback, does not restore the policy.
    const around = released(two, { floor: 0.4 }, 3500);
    expect(await serves({ verdicts: [around, second, first], rollbacks }, {})).toEqual(keyOf(two));
    expect(await serves({ verdicts: [unfit, around, second, first], rollbacks })).toEqual(keyOf(one));
    // A newer verdict restores the policy.
    const again = released(two, {}, 4500);
    expect(await serves({ verdicts: [unfit, again, second, first], rollbacks })).toEqual(keyOf(two));
  });

  test("holds a share of the rollouts with the previous router while the new one is watched", async () => {
    const folder = placePolicy(makePolicy("r1"));
    const { router } = await open({
      checkpoint: folder,
      allowUngated: true,
      exploration: 0,
      rollback: { holdback: 0.5 },
    });
    const chosen = Array.from({ length: 400 }, (_, i) => [ask(router, `r${i}.0`), ask(router, `r${i}.1`)]);
    for (const [first, second] of chosen) expect(first!.served.digest).toBe(second!.served.digest);
    const held = chosen.filter(([each]) => each!.served.model === undefined).length;
    // Four standard deviations of the number of heads in 400 fair coin flips.
    expect(Math.abs(held - 200)).toBeLessThan(40);
  });
});

test("an explanation names the reason, the confidence and the words that mattered", async () => {
  const folder = placePolicy(makePolicy("r1", { sure: 0.1 }));
  const { router } = await open({ checkpoint: folder, allowUngated: true, floor: 0.6, exploration: 0 });
  const { lines, features } = router.explain(ask(router, "r.0", PROOF));
  expect(lines[0]).toMatch(/^large was chosen with probability 0\.9\d+\.$/);
  expect(lines[1]).toMatch(/The policy decided with confidence 0\.9\d+, at or above its floor of 0\.6/);
  expect(features[0]!.feature).toBe("the hash bucket of “prove”");
  const { lines: other } = router.explain(ask(router, "r.0"));
  expect(other[1]).toMatch(
    /The static table decided: the policy answered with confidence 0\.5\d+, below its floor/,
  );
});

test("an explanation says that the draw took a less probable candidate", async () => {
  const folder = placePolicy(makePolicy("r1", { sure: 40 }));
  const { router } = await open({ checkpoint: folder, allowUngated: true, exploration: 0.2 });
  const answers = Array.from({ length: 100 }, (_, i) => ask(router, `r${i}.0`));
  const linesOf = (chosen: number) =>
    router.explain(answers.find(({ decision }) => decision.chosen === chosen)!).lines;
  expect(linesOf(0).slice(0, 2)).toEqual([
    "small was chosen with probability 0.1.",
    "large was more probable (0.9); the random draw took small for exploration: 0.2 of choices are uniform over the candidates.",
  ]);
  expect(linesOf(1).join("\n")).not.toContain("draw");
});

test("an explanation compares the choice with no candidate that the policy has never seen", async () => {
  const folder = placePolicy(makePolicy("r1"));
  const { router } = await open(
    { checkpoint: folder, allowUngated: true, exploration: 0, table: { default: ["large", "tiny"] } },
    { candidates: asked("large", "tiny") },
  );
  const candidates = asked("large", "tiny");
  const { lines } = router.explain(router.choose({ alias: "auto", context: PROOF, candidates, call: "r.0" }));
  expect(lines).toContain("The policy decided: of these candidates it knows only large.");
  expect(lines).toContain("tiny: the policy has never seen it.");
  expect(lines.join("\n")).not.toMatch(/confidence|rather than|minus/);
});
