import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { digestJson } from "../../src/base/index.ts";
import { openGateway } from "../../src/book/collect/index.ts";
import type { Explanation } from "../../src/serve/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { rollBack } from "../support/rolled-back.ts";
import { routingWorld } from "../support/routing-world.ts";

/** Configuration of the same policy with candidates that it does not know. */
const OTHER = "router:\n  checkpoint: DIR\n  candidates: { tiny: {}, huge: {} }\n";

/** A bandit trained and judged on a routing log, and a configuration that serves it. */
async function trained(gate = "--exploration 0.02") {
  const cli = new Cli();
  const data = cli.file("decisions.jsonl", lines(...routingWorld(3000, 3)));
  const checkpoint = join(cli.folder, "bandit");
  await cli.ok("init");
  await cli.ok(`train linucb --data ${data} --out ${checkpoint} --id bandit --alpha 0.1`);
  await cli.ok(`gate --data ${data} --candidate ${checkpoint} --epsilon-quality 0.05 ${gate}`);
  const config = join(cli.folder, "router.yaml");
  const write = (more: string) =>
    writeFileSync(
      config,
      `router:\n  checkpoint: ${checkpoint}\n  candidates: { cheap: {}, strong: {} }\n${more}`,
    );
  write("");
  const ask = async (words = "", env: Record<string, string> = {}) => {
    const { code, out, err } = await cli.run(
      [
        ..."route ask --json --prompt".split(" "),
        "Prove theorem 5 about the group",
        ...words.split(" ").filter(Boolean),
      ],
      "",
      env,
    );
    return code === 0 ? JSON.parse(out) : { code, error: JSON.parse(err.trim().split("\n").at(-1)!).error };
  };
  return { cli, data, checkpoint, config, write, ask };
}

describe("rollbook route ask", () => {
  it("serves what the gate let through, with the exploration it was judged with, and says why", async () => {
    const { cli, config, ask } = await trained();
    const asked = await ask(`--config ${config}`);
    expect(asked.status).toMatchObject({ serving: "policy", policy: { id: "bandit" } });
    expect(asked.candidates).toEqual([
      { id: "cheap", probability: 0.01 },
      { id: "strong", probability: 0.99 },
    ]);
    expect(asked.explanation).toMatchObject({ chosen: "strong", reason: "policy" });
    expect(asked.explanation.scores.map(({ id }: { id: string }) => id)).toEqual(["strong", "cheap"]);
    expect(await ask(`--config ${config}`)).toEqual(asked);
    const text = await cli.ok([
      "route",
      "ask",
      "--config",
      config,
      "--prompt",
      "Prove theorem 5 about the group",
    ]);
    expect(text).toMatch(/strong +0\.99 +chosen/);
    // Without a configuration the policy's own candidates are used. The prompt needs no flag.
    const alone = [
      "route",
      "ask",
      "--checkpoint",
      join(cli.folder, "bandit"),
      "--allow-ungated",
      "Prove theorem 5",
    ];
    expect(await cli.ok(alone)).toMatch(/strong +0\.\d+ +chosen/);
    expect((await cli.run([...alone, "--prompt", "again"])).err).toContain("the prompt is given twice");
    expect((await cli.run(alone.slice(0, -1))).code).toBe(2);
    expect(text).toMatch(/The policy decided/);
    expect(text).toMatch(/^ {2}Policy used: revision bandit, released by the gate verdict \w+\.$/m);
    const other = await ask(
      `--config ${cli.file("other.yaml", OTHER.replace("DIR", join(cli.folder, "bandit")))}`,
    );
    expect(other.explanation.lines).toContainEqual(
      expect.stringMatching(
        /^Policy used: none; the configured policy cannot serve, and no table is configured, so the router prefers tiny: .*revision bandit knows none of the candidates \(tiny, huge\): it was trained on decisions among cheap, strong\. Name candidates that it knows/,
      ),
    );
    expect(text).toMatch(
      /^ {2}For an average training request, the estimated reward of strong minus that of cheap is \S+\. For this request, it is \S+\.\n {2}(Raised|Lowered) most by: /m,
    );
    expect(text).toMatch(/The policy reads words through 16 hash buckets\./);
  });

  const DIFFERENCES =
    /^For an average training request, the (?:estimated reward|score) of \w+ minus that of \w+ is (\S+)\. For this request, it is (\S+)\.$/m;
  it.each(["auto", "ridge", "logistic", "bc", "linucb", "thompson --form linear"])(
    "names what sets a request apart from the others, of %s",
    async (kind) => {
      const cli = new Cli();
      const data = cli.file("decisions.jsonl", lines(...routingWorld(1200, 3)));
      const checkpoint = join(cli.folder, "policy");
      await cli.ok(`train ${kind} --data ${data} --out ${checkpoint} --id policy`);
      const ask = async (prompt: string, words: number) => {
        const { out } = await cli.run([
          ...["route", "ask", "--json", "--checkpoint", checkpoint, "--allow-ungated", prompt],
          ...["--field", `words=${words}`],
        ]);
        return JSON.parse(out).explanation as Explanation;
      };
      const hard = await ask("Prove theorem 5 about the group", 6);
      const easy = await ask("Say hello to item 5", 4);
      for (const { scores, features, lines: told } of [hard, easy]) {
        for (const { score, mean, usual, parts } of scores)
          expect(usual! + parts.reduce((sum, { part }) => sum + part, 0)).toBeCloseTo((mean ?? score)!, 9);
        expect(features.map(({ feature }) => feature)).not.toContain("bias of the prompt");
        // The features lead from one printed difference to the other.
        const [, usual, here] = told.join("\n").match(DIFFERENCES)!.map(Number);
        const moved = features.reduce((sum, { part }) => sum + part, 0);
        expect(Math.abs(usual! + moved - here!)).toBeLessThan(0.01 * (Math.abs(usual!) + Math.abs(here!)));
      }
      // One line lists only positive parts, the other only negative parts.
      for (const { lines: told } of [hard, easy]) {
        const side = (head: RegExp) => told.find((line) => head.test(line)) ?? "";
        expect(side(/^Raised /)).not.toMatch(/\(-/);
        expect(side(/^Lowered /)).not.toMatch(/\(\+/);
      }
      if (!/linucb|thompson/.test(kind))
        expect(hard.lines.find((line) => line.startsWith("Raised"))).toMatch(/“(the|group|about|Prove)”/);
      // The average is the same for both requests; their features differ.
      const usualOf = ({ scores }: Explanation) => new Map(scores.map(({ id, usual }) => [id, usual]));
      for (const [id, usual] of usualOf(hard)) expect(usualOf(easy).get(id)).toBeCloseTo(usual!, 9);
      const toward = ({ chosen, features }: Explanation, id: string) =>
        features
          .slice(0, 5)
          .map(({ feature, part }) => [feature, Math.sign(part) * (chosen === id ? 1 : -1)]);
      expect(toward(hard, "strong")).not.toEqual(toward(easy, "strong"));
    },
  );

  it("takes the policy from the environment, only where it is enabled and released", async () => {
    const { checkpoint, ask } = await trained();
    const words = "--candidate cheap strong";
    const named = { ROLLBOOK_CHECKPOINT: checkpoint };
    expect((await ask(words, named)).status).toMatchObject({ serving: "static" });
    expect((await ask(words, { ...named, ROLLBOOK_POLICY: "1" })).status).toMatchObject({
      serving: "policy",
    });
    const other = { ...named, ROLLBOOK_POLICY: "1", ROLLBOOK_EXPLORATION: "0.5" };
    const { status } = await ask(words, other);
    expect(status).toMatchObject({ serving: "static" });
    expect(status.why).toContain("exploration 0.5, judged 0.02");
    expect((await ask(`${words} --allow-ungated`, other)).status).toMatchObject({ serving: "policy" });
  });

  it("serves the newest release of a book that fits, of a policy trained from its rollouts", async () => {
    const cli = new Cli({ clock: systemClock });
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("log.jsonl", lines(...routingWorld(1500, 3)))}`);
    const policy = join(cli.folder, "policy");
    await cli.ok(`train linucb --id bandit --alpha 0.1 --out ${policy}`);
    await cli.ok(`gate --candidate ${policy} --epsilon-quality 0.1 --epsilon-cost 1 --exploration 0.02`);
    const config = cli.file(
      "router.yaml",
      "router: { checkpoint: released, candidates: { cheap: {}, strong: {} } }\n",
    );
    const [asked] = await cli.json(`route ask --config ${config} --prompt Prove`);
    expect(asked.status).toMatchObject({ serving: "policy", policy: { id: "bandit" } });
    // Without a list of candidates, those of the released policy are used.
    const bare = cli.file("bare.yaml", "router: { checkpoint: released }\n");
    expect(await cli.json(`route ask --config ${bare} --prompt Prove`)).toMatchObject([
      { candidates: asked.candidates, status: { policy: { id: "bandit" } } },
    ]);
    const other = cli.file("other.yaml", "router: { checkpoint: released, family: other }\n");
    expect((await cli.run(`route ask --config ${other} --prompt Prove`)).err).toContain(
      "no candidate to choose among: no released policy of other is in the book.",
    );

    // Judged without --router. The gate reports the limit of its PASS. A router that explores keeps the earlier
    // release.
    const newer = join(cli.folder, "newer");
    await cli.ok(`train linucb --id newer --alpha 0.2 --out ${newer}`);
    const gated = await cli.run(`gate --candidate ${newer} --epsilon-quality 0.1 --epsilon-cost 1`);
    expect([gated.code, gated.err]).toEqual([
      0,
      expect.stringMatching(
        /note: this PASS is for exploration 0, .*sets none of these serves newer with these values\. .* does not serve newer: judge it again with --router FILE/,
      ),
    ]);
    const exploring = { ROLLBOOK_EXPLORATION: "0.02" };
    const { out } = await cli.run(`route ask --json --config ${config} --prompt Prove`, "", exploring);
    const { status } = JSON.parse(out);
    expect(status).toMatchObject({ serving: "policy", policy: { id: "bandit" } });
    expect(status.why).toMatch(/serves in place of newer, which cannot: revision newer .*0\.02, judged 0\./);
    const [open] = await cli.json(`route ask --config ${config} --prompt Prove`);
    expect(open.status).toMatchObject({ serving: "policy", policy: { id: "newer" } });
  });

  it("serves constraints only as they were judged", async () => {
    const cli = new Cli();
    const priced = routingWorld(3000, 3).map((row) => ({
      ...row,
      state: {
        ...row.state,
        candidates: row.state!.candidates!.map((one) => ({
          ...one,
          features: { callPrice: one.id === "strong" ? 1 : 0.1 },
        })),
      },
    }));
    const data = cli.file("decisions.jsonl", lines(...priced));
    const policy = join(cli.folder, "policy");
    await cli.ok("init");
    await cli.ok(`train linucb --data ${data} --out ${policy} --id bandit --alpha 0.1`);
    const config = (limit: number) =>
      cli.file(
        `router-${limit}.yaml`,
        `router: { checkpoint: ${policy}, constraints: { maxPriceUsdPerCall: ${limit} }, candidates: { cheap: { callPrice: 0.1 }, strong: { callPrice: 1 } } }\n`,
      );
    const [verdict] = await cli.json(
      `gate --data ${data} --candidate ${policy} --epsilon-quality 0.05 --router ${config(5)}`,
    );
    expect(verdict.candidates[0].router).toMatchObject({
      ...{ exploration: 0.02, constraints: { maxPriceUsdPerCall: 5 } },
    });
    const ask = async (limit: number) =>
      (await cli.json(`route ask --config ${config(limit)} --prompt Prove`))[0];
    expect((await ask(5)).status).toMatchObject({ serving: "policy" });
    const other = await ask(0.5);
    expect(other.status.why).toContain("other constraints than were judged");
    expect(other.explanation.masked).toEqual([{ id: "strong", reasons: ["over-price"] }]);
  });

  it("answers wrong settings with the nearest right one, and falls back where the checkpoint is gone", async () => {
    const { config, write, ask, checkpoint } = await trained();
    write("  exploraton: 0.1\n");
    expect((await ask(`--config ${config}`)).error).toMatchObject({ code: "bad-config" });
    expect((await ask(`--config ${config}`)).error.message).toContain("Did you mean exploration?");
    write("  table: { default: [strnog] }\n");
    expect((await ask(`--config ${config}`)).error.message).toContain("Did you mean strong?");
    expect((await ask("--config no-such.yaml")).error.code).toBe("no-config");
    writeFileSync(join(checkpoint, "policy.safetensors"), "torn");
    write("  exploration: 0.02\n");
    const { status, candidates } = await ask(`--config ${config}`);
    expect(status).toMatchObject({ serving: "static" });
    expect(status.why).toContain("the bytes hash to");
    expect(candidates[0]).toEqual({ id: "cheap", probability: 0.99 });
  });

  it("asks what the gateway asks: the same candidates, fields and answer, unless --field says otherwise", async () => {
    const { cli, checkpoint } = await trained();
    const table = `{ rules: [{ when: { fields: { requestTokens: { min: 20 }, messages: { max: 1 }, tools: { max: 0 } } }, choose: strong }], default: [cheap] }`;
    const yaml = `upstreams: { own: { baseUrl: "local:own" } }
models: { cheap: { upstream: own }, strong: { upstream: own } }
routes: { auto: [cheap, strong] }
router: { exploration: 0, table: ${table} }
`;
    const config = cli.file("gateway.yaml", yaml);
    const gateway = await openGateway({
      ...{ book: join(cli.folder, "other"), config, port: 0, env: {} },
      local: { own: async () => new Response() },
    });
    onTestFinished(() => gateway.close());
    const ask = async (prompt: string, ...more: string[]) => {
      const { code, out, err } = await cli.run([
        ...["route", "ask", "--json", "--config", config, "--prompt", prompt],
        ...more,
      ]);
      expect(code, err).toBe(0);
      return JSON.parse(out);
    };
    for (const [prompt, chosen] of [
      ["hi", "cheap"],
      ["Prove theorem 5 about the group", "strong"],
    ] as const) {
      const body = JSON.stringify({ model: "auto", messages: [{ role: "user", content: prompt }] });
      const reply = await fetch(`${gateway.url}/v1/route`, { method: "POST", body });
      const { model, candidates } = (await reply.json()) as { model: string; candidates: object[] };
      const asked = await ask(prompt);
      expect([model, asked.explanation.chosen]).toEqual([chosen, chosen]);
      expect(candidates).toMatchObject(asked.candidates);
    }
    const long = "Prove theorem 5 about the group";
    expect((await ask(long, "--field", "tools=2")).explanation.chosen).toBe("cheap");
    const huge = await cli.run(["route", "ask", "--config", config, "--prompt", long, "--candidate", "huge"]);
    expect([huge.code, huge.err]).toEqual([
      1,
      expect.stringMatching(/^error: --candidate huge: .* It has cheap, strong\. \[no-candidate\]/),
    ]);
    const named = await ask(long, "--checkpoint", checkpoint, "--allow-ungated");
    expect(named.status).toMatchObject({ serving: "policy", policy: { id: "bandit" } });
  });

  it("says that the environment names a checkpoint and does not enable it; --checkpoint does", async () => {
    const { checkpoint, ask } = await trained();
    const words = "--candidate cheap strong";
    const { status } = await ask(words, { ROLLBOOK_CHECKPOINT: checkpoint });
    expect(status.why).toContain("ROLLBOOK_CHECKPOINT names needs ROLLBOOK_POLICY=1");
    expect((await ask(`${words} --checkpoint ${checkpoint}`)).status).toMatchObject({ serving: "policy" });
  });

  it("tells no release yet from a verdict whose checkpoint is not in the book", async () => {
    const released = "router: { checkpoint: released, candidates: { cheap: {}, strong: {} } }\n";
    const cli = new Cli();
    await cli.ok("init");
    const [before] = await cli.json(`route ask --config ${cli.file("r.yaml", released)} --prompt hello`);
    expect(before.status.why).toBe("no policy is released yet, so cheap serves, the first of the list");
    const { config, ask } = await trained();
    writeFileSync(config, released);
    const { status } = await ask(`--config ${config}`);
    expect(status.why).toMatch(
      /revision bandit.* passed the gate \(verdict \w+\), but the book has no copy of its checkpoint.* Set router\.checkpoint .*without --data/,
    );
  });

  it("asks the checkpoint that is named, and says that no gate verdict releases it", async () => {
    const cli = new Cli();
    const data = cli.file("decisions.jsonl", lines(...routingWorld(600, 3)));
    const checkpoint = join(cli.folder, "bandit");
    await cli.ok(`train linucb --data ${data} --out ${checkpoint} --id bandit --alpha 0.1`);
    const ask = (...words: string[]) =>
      cli.run(["route", "ask", ...words, "Prove theorem 5 about the group"]);
    const { out } = await ask("--checkpoint", checkpoint);
    expect(out).toContain("The policy decided");
    expect(out).toContain("revision bandit, not released by a gate verdict.");
    const served = cli.file(
      "router.yaml",
      `router: { checkpoint: ${checkpoint}, candidates: { cheap: {}, strong: {} } }\n`,
    );
    const first =
      "No learned policy is in use and no table is configured, so the router prefers the first candidate (cheap).";
    expect((await ask("--config", served)).out).toContain(first);
    const table = cli.file(
      "table.yaml",
      "router: { table: { default: [strong] }, candidates: { cheap: {}, strong: {} } }\n",
    );
    expect((await ask("--config", table)).out).toContain(
      "The static table decided: no learned policy serves.",
    );
    writeFileSync(join(checkpoint, "policy.safetensors"), "torn");
    const torn = await ask("--checkpoint", checkpoint, "--candidate", "cheap", "strong", "--prompt");
    expect(torn.code).toBe(1);
    expect(torn.err).toContain("the bytes hash to");
  });

  it("asks for a whole chat request, from a file or from standard input", async () => {
    const { cli, checkpoint } = await trained();
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Say hello to item 5" },
      { role: "assistant", content: "Hello." },
      { role: "user", content: "Prove theorem 5 about the group" },
    ];
    const file = cli.file("request.json", JSON.stringify({ model: "auto", messages, tools: [] }));
    const ask = (request: string, stdin = "") =>
      cli.run(`route ask --json --checkpoint ${checkpoint} --request ${request}`, stdin);
    const { out } = await ask(file);
    expect(JSON.parse(out).explanation).toMatchObject({ chosen: "strong", reason: "policy" });
    // A bare list is a list of messages.
    expect(JSON.parse((await ask("-", JSON.stringify(messages))).out).explanation.chosen).toBe("strong");
    const bad = await ask("-", '{"prompt":"hello"}');
    expect([bad.code, bad.err]).toEqual([1, expect.stringContaining("has no list of messages")]);
    expect((await ask(`${file} hello`)).code).toBe(2);
  });

  it("answers a request for the route that it names, and asks the named checkpoint for every call", async () => {
    const { cli, checkpoint } = await trained();
    const yaml = `upstreams: { own: { baseUrl: "local:own" } }
models: { cheap: { upstream: own }, strong: { upstream: own }, haiku: { upstream: own }, sonnet: { upstream: own } }
routes: { auto: [cheap, strong], claude-auto: [haiku, sonnet] }
router:
  aliases: [auto, claude-auto]
  exploration: 0
  checkpoint: ${checkpoint}
  table: { default: [cheap, sonnet] }
  rollback: { holdback: 0.5 }
`;
    const config = cli.file("gateway.yaml", yaml);
    const messages = [{ role: "user", content: "Prove theorem 5 about the group" }];
    const ask = async (model: string, ...words: string[]) => {
      const request = cli.file("rq.json", JSON.stringify({ model, messages }));
      return cli.run(["route", "ask", "--json", "--config", config, "--request", request, ...words]);
    };
    const claude = JSON.parse((await ask("claude-auto")).out);
    expect(claude.candidates.map(({ id }: { id: string }) => id)).toEqual(["haiku", "sonnet"]);
    expect(claude.explanation.chosen).toBe("sonnet");
    expect((await ask("claude-atuo")).err).toMatch(
      /"unknown-route".*the request names the model claude-atuo, which is not a route.* Did you mean claude-auto\?/,
    );
    for (let i = 0; i < 8; i++) {
      const { out } = await ask("auto", "--checkpoint", checkpoint, "--call", `r-${i}.0`);
      expect(JSON.parse(out).explanation).toMatchObject({ reason: "policy", chosen: "strong" });
    }
  });

  it("takes a file that begins with a mark of its byte order, and refuses a list of something else", async () => {
    const cli = new Cli();
    const ask = (text: string) =>
      cli.run(`route ask --candidate cheap --request ${cli.file("request.json", text)}`);
    expect((await ask('\ufeff[{"role":"user","content":"hello"}]')).code).toBe(0);
    for (const text of ["[1]", "[]", '{"messages":[{"role":"user"}]}']) {
      const { code, err } = await ask(text);
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/request\.json has no list of messages, .* role and content/),
      ]);
    }
  });

  it("says of a file without a router section that it has none", async () => {
    const cli = new Cli();
    const file = cli.file("other.yaml", "models: { cheap: {} }\n");
    expect((await cli.run(`route ask --prompt hello --config ${file}`)).err).toContain(
      `${file} has no \`router:\` section.`,
    );
  });

  it("refuses a field that nothing reads, unless a checkpoint cannot be read", async () => {
    const { cli, checkpoint } = await trained();
    const ask = (router: string, field: string) =>
      cli.run(
        `route ask --prompt hello --field ${field}=2 --config ${cli.file("asked.yaml", `router: { candidates: { cheap: {}, strong: {} }, ${router} }\n`)}`,
      );
    const table =
      "table: { rules: [{ when: { fields: { toolsUsed: { min: 1 } } }, choose: strong }], default: [cheap] }";
    expect((await ask(table, "toolsUsed")).code).toBe(0);
    expect((await ask(table, "toolsUse")).err).toMatch(/Did you mean toolsUsed\?.*unknown-field/s);
    for (const more of ["", ", enabled: false"])
      expect((await ask(`${table}, checkpoint: nowhere${more}`, "other")).code).toBe(0);
    // Fields that only the shadow reads are accepted.
    expect((await ask(table, "words")).err).toContain("unknown-field");
    expect((await ask(`${table}, shadow: { checkpoint: ${checkpoint} }`, "words")).code).toBe(0);
  });

  it("refuses a field with a value of another kind", async () => {
    const cli = new Cli();
    const ask = async (field: string) =>
      (await cli.run(`route ask --prompt hello --candidate a b --field ${field}`)).err;
    expect(await ask("tools=many")).toMatch(
      /--field tools=many: tools is a number\. Give a number, such as tools=0\. \[bad-field\]/,
    );
    expect(await ask("maxTokens=true")).toContain("maxTokens is a number");
    expect(await ask("stream=2")).toContain("stream is true or false");
  });

  it("needs candidates", async () => {
    const cli = new Cli();
    const { code, err } = await cli.run("route ask --prompt hello");
    expect(code).toBe(1);
    expect(err).toContain("--candidate");
  });
});

describe("rollbook route rollbacks", () => {
  it("lists what was taken back, when, for which router, and on what evidence", async () => {
    const cli = new Cli();
    await cli.ok("init");
    expect(await cli.run("route rollbacks")).toMatchObject({
      ...{ code: 0, out: "", err: expect.stringContaining("holds no rollback") },
    });
    const [first, second] = ["first", "second"].map((name) => digestJson("test.router", name));
    await rollBack(cli.book, first!, { atMs: 1_000 });
    await rollBack(cli.book, second!, { policy: "bandit", feedback: "solved", atMs: 3_600_000 });
    const listed = await cli.json("route rollbacks");
    expect(listed.map(({ from, atMs, state }) => [from.digest, atMs, state])).toEqual([
      [second, 3_600_000, "holds"],
      [first, 1_000, "holds"],
    ]);
    expect(listed[0]).toMatchObject({
      ...{ from: { policy: { id: "bandit" } }, to: { digest: digestJson("test.router", "before") } },
      evidence: { feedback: "solved", pairs: 1, fresh: 0, before: 1, difference: -1, upper: -0.1 },
    });
    expect(await cli.ok(`cat ${listed[0].record}`)).toContain("rollbook.rollback.v1");
    const text = await cli.ok("route rollbacks");
    expect(text).toMatch(
      /^1970-01-01 01:00:00 UTC, family router: router-\w{12} \(policy bandit\) was taken back for router-\w{12} \(no policy\)$/m,
    );
    expect(text).toContain("Outcomes: the feedback solved, 1 pair. Mean 0; of the router before it 1");
    expect(text).toContain("Difference -1, upper bound -0.1, below 0 (minus the margin) at alpha 0.05.");
    expect(text).toContain(`Record: ${listed[1].record}.`);
  });
});
