import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { parseLoopConfig, runLoop } from "../../src/loop/index.ts";
import { Cli } from "../support/cli.ts";
import { statusOf, withLoop } from "../support/loop-runs.ts";
import { LOOP, SMALL, UNEQUAL, writeConfig } from "../support/loop-world.ts";
import { json, ScriptedUpstream } from "../support/scripted-upstream.ts";

describe("asynchronous windows", () => {
  it("collect while the window before them learns, within the drift allowed, and are repeated by following the book", async () => {
    const config = { ...UNEQUAL, mode: "asynchronous", maxDrift: 1 };
    const first = withLoop(config);
    const { digest, windows } = await statusOf(first.cli, `start --config ${first.config}`);
    // Window 2 began before window 1 had ended; window 3 had to wait for the end of window 1.
    expect(windows.map(({ collectedBy }) => collectedBy).slice(0, 2)).toEqual(["behaviour", "behaviour"]);
    expect(["loop-w1", "loop-w2"]).toContain(windows[2]!.collectedBy);
    const again = withLoop(config);
    const book = join(first.cli.folder, "book");
    const followed = await statusOf(again.cli, `start --config ${again.config} --follow ${book}`);
    expect(followed.digest).toBe(digest);
  }, 240_000);
});

describe("a configuration", () => {
  it.each([
    [{ upstreams: {} }, "this is the file of a gateway, not of a loop. Start the gateway with"],
    [{ widows: 3 }, "unknown key widows. Did you mean windows?"],
    [{ world: { ...LOOP.world, modles: "m" } }, "unknown key world.modles. Did you mean models?"],
    [{ learner: { kind: "linucb", alhpa: 1 } }, "unknown key learner.alhpa. Did you mean alpha?"],
    [{ learner: { kind: "lin" } }, "learner.kind"],
    [{ rollouts: 145 }, "is not a multiple of samples"],
    [{ split: { shares: [0.5, 0, 0.6] } }, "split.shares: they add up to 1.1"],
    [{ split: { shares: [1, 0, 0] } }, "train and judge need a share above 0"],
    [{ workers: 0 }, "workers: 0 runs nothing"],
    [{ queue: "nats://127.0.0.1/q" }, "queue has no effect with world.kind: simulator"],
    [{ maxDrift: 3 }, "maxDrift has no effect with mode: synchronous"],
  ])("with %j is refused before anything is made", async (change, problem) => {
    const { cli, config } = withLoop({ ...LOOP, ...change });
    const { code, err } = await cli.run(`run start --config ${config}`);
    expect([code, err]).toEqual([1, expect.stringContaining(problem)]);
    expect(await cli.run(`run status --config ${config}`)).toMatchObject({ code: 1 });
  });

  it("whose gate has no bounds for the discount that it states is refused before the run is recorded", async () => {
    const gate = { method: "empirical-bernstein" };
    const { cli, config } = withLoop({ ...SMALL, gate, discount: 0.9 });
    const { code, err } = await cli.run(`run start --config ${config}`);
    expect([code, err]).toEqual([1, expect.stringContaining("[no-bounds]")]);
    expect(err).not.toContain("run resume");
    expect((await statusOf(cli, `status --config ${config}`)).windows).toEqual([]);
  });

  it("whose gate bounds the cost without its range starts no run, and does not hinder one that began with it", async () => {
    const settings = { ...SMALL, gate: { method: "empirical-bernstein", epsilonCost: 0 } };
    const { cli, config } = withLoop({ ...settings, windows: 1 });
    const { code, err } = await cli.run(`run start --config ${config}`);
    expect([code, err]).toEqual([1, expect.stringMatching(/needs gate\.costRange.*\[no-bounds\]/)]);
    const began = parseLoopConfig(readFileSync(config, "utf8"), config, cli.folder);
    await runLoop({ config: began, book: cli.book, how: "repeat" });
    writeConfig(cli.folder, settings);
    const { windows } = await statusOf(cli, `resume --config ${config}`);
    expect(windows.map(({ state, reasons }) => [state, reasons])).toEqual(
      windows.map(() => ["kept", [expect.stringContaining("needs the range of cost")]]),
    );
    expect(windows).toHaveLength(2);
    await cli.ok(`run status --config ${config}`);
    await cli.ok(`run report --config ${config} --out ${join(cli.folder, "report.html")}`);
    await cli.ok(`run stop --config ${config}`);
  }, 60_000);

  it("whose gate states limits that the rows break refuses the policy, and the run goes on", async () => {
    const gate = { method: "empirical-bernstein", propensityFloor: 0.9 };
    const { cli, config } = withLoop({ ...UNEQUAL, windows: 1, gate });
    const { code, err, out } = await cli.run(`run start --config ${config}`);
    const told = /below --propensity-floor 0\.9.* start another run, under/s;
    expect([code, err + out]).toEqual([0, expect.stringMatching(told)]);
  }, 120_000);

  it("names the setting of a models file that does not exist, and the command that begins a run without a book", async () => {
    const { cli, config } = withLoop({ ...SMALL, world: { ...LOOP.world, models: "none.yaml" } });
    expect(await cli.run(`run start --config ${config}`)).toMatchObject({
      ...{
        code: 1,
        err: expect.stringMatching(/none\.yaml cannot be read as world\.models: it does not exist/),
      },
    });
    const { code, err } = await cli.run(`run report --config ${config} --out ${join(cli.folder, "r.html")}`);
    expect([code, err]).toEqual([1, expect.stringContaining(`Begin it with \`rollbook run start --config`)]);
  });

  it("that asks for more tasks than there are is refused before the run is recorded, and its name stays free", async () => {
    const { cli, config } = withLoop({ ...SMALL, windows: 1, rollouts: 40 });
    const { code, err } = await cli.run(`run start --config ${config}`);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("a window needs 40 tasks (rollouts / samples) and the world has 36. Lower"),
    ]);
    expect(err).not.toContain("run resume");
    writeConfig(cli.folder, { ...SMALL, windows: 1, rollouts: 40, samples: 4 });
    expect(await statusOf(cli, `start --config ${config}`)).toMatchObject({ ended: 1 });
  }, 60_000);
});

const AGENT = `export default async ({ question }, { baseUrl, apiKey }) => {
  const response = await fetch(baseUrl + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + apiKey, "content-type": "application/json" },
    body: JSON.stringify({ model: "auto", messages: [{ role: "user", content: question }] }),
  });
  const { choices } = await response.json();
  return choices[0].message.content === "strong" ? 1 : 0;
};
`;

/** Blames the provider for a reply that is no answer. */
const BLAMING_AGENT = AGENT.replace(
  "const { choices }",
  `if (!response.ok) return { error: { owner: "provider", message: await response.text() } };
  const { choices }`,
);

async function strongUpstream(): Promise<ScriptedUpstream> {
  const upstream = await ScriptedUpstream.open();
  upstream.otherwise = json({
    choices: [{ message: { role: "assistant", content: "strong" }, finish_reason: "stop" }],
  });
  return upstream;
}

/** Windows of the agent (default: 1), on models without a price. */
function agentLoop(
  cli: Cli,
  {
    upstream,
    family,
    gate = {},
    windows = 1,
    keyEnv,
  }: { upstream: ScriptedUpstream; family?: string; gate?: object; windows?: number; keyEnv?: string },
): string {
  cli.file(
    "gateway.yaml",
    JSON.stringify({
      ...{ listen: { port: 0 }, upstreams: { up: { baseUrl: upstream.url, keyEnv } } },
      models: { weak: { upstream: "up" }, strong: { upstream: "up" } },
      routes: { auto: ["weak", "strong"] },
    }),
  );
  cli.file("agent.mjs", AGENT);
  const rows = Array.from({ length: 36 }, (_, i) => JSON.stringify({ question: `What is ${i}?` }));
  cli.file("tasks.jsonl", rows.join("\n"));
  const agent = { kind: "agent", agent: "agent.mjs", tasks: "tasks.jsonl", gateway: "gateway.yaml" };
  return writeConfig(cli.folder, {
    ...{ ...LOOP, windows, rollouts: 36, samples: 1, world: { ...agent, family }, gate },
    learner: { kind: "ucb", exploration: 0.1 },
  });
}

describe("rollbook run with an agent of the user's", () => {
  it("names the missing agent, starts once it is there, and learns which model to ask", async () => {
    const upstream = await ScriptedUpstream.open();
    upstream.otherwise = (response, asked) => {
      const { model } = JSON.parse(asked.body) as { model: string };
      return json({ choices: [{ message: { role: "assistant", content: model }, finish_reason: "stop" }] })(
        response,
        asked,
      );
    };
    try {
      const cli = new Cli({ clock: systemClock });
      const up = { upstream: "up", price: { prompt: 1, completion: 1 } };
      cli.file(
        "gateway.yaml",
        JSON.stringify({
          listen: { port: 0 },
          upstreams: { up: { baseUrl: upstream.url } },
          models: { weak: up, strong: up },
          routes: { auto: ["weak", "strong"] },
        }),
      );
      const rows = Array.from({ length: 36 }, (_, i) => JSON.stringify({ question: `What is ${i}?` }));
      cli.file("tasks.jsonl", rows.join("\n"));
      const config = writeConfig(cli.folder, {
        ...LOOP,
        windows: 2,
        world: { kind: "agent", agent: "agent.mjs", tasks: "tasks.jsonl", gateway: "gateway.yaml" },
        learner: { kind: "ucb", exploration: 0.1 },
      });
      const missing = await cli.run(`run start --config ${config}`);
      // The error message gives a next step that fits its cause.
      expect([missing.code, missing.err]).toEqual([
        ...[
          1,
          expect.stringMatching(/agent\.mjs cannot be read.*No step was recorded\. Repeat the command/s),
        ],
      ]);
      writeFileSync(join(cli.folder, "agent.mjs"), AGENT);
      const { windows } = await statusOf(cli, `start --config ${config}`);
      expect(windows[0]).toMatchObject({ state: "released", serves: "loop-w1" });
      expect(windows[0]!.behaviourValue).toBeUndefined();
      expect(windows[1]!.rewardMean).toBeGreaterThan(windows[0]!.rewardMean!);
      // The gateway serves the router under the name in the plan. Its steps name the policy behind the router.
      const decided = [];
      for (const { rolloutId } of (await cli.json("artifact ls")).slice(0, 24))
        decided.push((await cli.json(`route explain ${rolloutId}.0`))[0].steps[0]);
      const learned = decided.filter(({ policy }) => policy !== null);
      expect(learned.length).toBeGreaterThan(0);
      for (const { policy, reason } of learned) expect([policy.id, reason]).toEqual(["loop-w1", "policy"]);
      // Decisions are logged under the default router family, so that commands that read a log find them without
      // --family.
      const families = (await cli.json("artifact ls --revisions")).map(
        ({ family }: { family: string }) => family,
      );
      expect(new Set(families)).toEqual(new Set(["agent", "router"]));
      writeFileSync(join(cli.folder, "agent.mjs"), `${AGENT}// edited\n`);
      const { err } = await cli.run(`run resume --config ${config}`);
      expect(err).toMatch(
        /the agent, the tasks or the models of the run loop have changed since window 2 began \(\w{12}, now/,
      );
    } finally {
      await upstream.close();
    }
  }, 240_000);

  it("logs choices and trains under the family that the configuration names", async () => {
    const upstream = await strongUpstream();
    try {
      const cli = new Cli({ clock: systemClock });
      const config = agentLoop(cli, { upstream, family: "models" });
      await statusOf(cli, `start --config ${config}`);
      const revisions = await cli.json("artifact ls --revisions");
      expect(new Set(revisions.map(({ family }) => family))).toEqual(new Set(["agent", "models"]));
      expect(revisions).toContainEqual(expect.objectContaining({ id: "loop-w1", family: "models" }));
    } finally {
      await upstream.close();
    }
  }, 240_000);

  it.each([
    ["as wide as the rewards", { epsilonQuality: 1 }, /any policy would pass\..* start another run, under/s],
    ["on a cost that no row has", { epsilonCost: 0 }, /no cost is known of .* start another run, under/s],
  ])(
    "refuses every policy if the gate has a margin %s, and goes on",
    async (_, gate, reason) => {
      const upstream = await strongUpstream();
      try {
        const cli = new Cli({ clock: systemClock });
        const config = agentLoop(cli, { upstream, gate, windows: 2 });
        const { code, err, out } = await cli.run(`run start --config ${config}`);
        expect([code, err + out]).toEqual([0, expect.stringMatching(reason)]);
        const { ended, windows } = await statusOf(cli, `status --config ${config}`);
        expect(ended).toBe(2);
        expect(windows.map(({ state, serves }) => [state, serves])).toEqual(
          Array(2).fill(["kept", "behaviour"]),
        );
      } finally {
        await upstream.close();
      }
    },
    240_000,
  );

  it.each([
    [
      "teach every one of its decisions",
      { learner: { kind: "ucb" } },
      1,
      /note: 12 rollouts with more than one decision. Each .* the return from there on \(discount 1\), and the gate judges whole/,
    ],
    [
      "teach a learner of chains at its own discount",
      { learner: { kind: "cql", discount: 0.9, steps: 20 } },
      0.9,
      /\(discount 0\.9\), and the gate judges whole/,
    ],
    [
      "are refused by a gate that has no bounds for them, and the run goes on",
      { learner: { kind: "ucb" }, gate: { method: "empirical-bernstein" } },
      undefined,
      /warning: 12 rollouts .* start another run with gate\.method: student-t or discount: 0.*not offered for chains.* start another run, under/s,
    ],
  ])(
    "several calls of one rollout %s",
    async (_, change, discount, told) => {
      const upstream = await ScriptedUpstream.open();
      upstream.otherwise = json({
        choices: [{ message: { role: "assistant", content: "strong" }, finish_reason: "stop" }],
      });
      try {
        const cli = new Cli({ clock: systemClock });
        cli.file(
          "gateway.yaml",
          JSON.stringify({
            ...{ listen: { port: 0 }, upstreams: { up: { baseUrl: upstream.url } } },
            models: { weak: { upstream: "up" }, strong: { upstream: "up" } },
            routes: { auto: ["weak", "strong"] },
          }),
        );
        cli.file(
          "agent.mjs",
          AGENT.replace(
            "async (",
            "async (...all) => (await once(...all), once(...all));\nconst once = async (",
          ),
        );
        cli.file(
          "tasks.jsonl",
          Array.from({ length: 12 }, (_, i) => `{"question":"What is ${i}?"}`).join("\n"),
        );
        const world = { kind: "agent", agent: "agent.mjs", tasks: "tasks.jsonl", gateway: "gateway.yaml" };
        const split = { unit: "task", shares: [0.5, 0, 0.5] };
        const config = writeConfig(cli.folder, { ...SMALL, windows: 1, world, split, ...change });
        const { code, err, out } = await cli.run(`run start --config ${config}`);
        expect([code, err + out]).toEqual([0, expect.stringMatching(told)]);
        const { windows } = await statusOf(cli, `status --config ${config}`);
        expect(windows[0]).toMatchObject({ state: "kept", serves: "behaviour" });
        expect(windows[0]!.discount).toBe(discount);
      } finally {
        await upstream.close();
      }
    },
    60_000,
  );

  it("hides the keys of the model servers from the agent, names them once, and leaves it the other variables", async () => {
    const cli = new Cli({ clock: systemClock });
    const upstream = await strongUpstream();
    vi.stubEnv("TEST_MODEL_KEY", "a-key-of-a-server");
    vi.stubEnv("TEST_MODEL_NAME", "seen");
    try {
      const config = agentLoop(cli, { upstream, keyEnv: "TEST_MODEL_KEY" });
      cli.file(
        "agent.mjs",
        `if (process.env.TEST_MODEL_KEY !== undefined || process.env.TEST_MODEL_NAME !== "seen") throw new Error("wrong variables");\n${AGENT}`,
      );
      const { code, err } = await cli.run(`run start --config ${config}`);
      expect([code, err.match(/the agent does not get .*?,/g)]).toEqual([
        0,
        ["the agent does not get TEST_MODEL_KEY,"],
      ]);
    } finally {
      vi.unstubAllEnvs();
      await upstream.close();
    }
  }, 60_000);

  it("counts a rollout that will be tried again as still to run", async () => {
    const cli = new Cli({ clock: systemClock });
    cli.file(
      "agent.mjs",
      `export default async () => ({ error: { owner: "provider", message: "503: the server is down" } });\n`,
    );
    const [models, routes] = [
      { weak: { upstream: "up" }, strong: { upstream: "up" } },
      { auto: ["weak", "strong"] },
    ];
    const upstreams = { up: { baseUrl: "http://127.0.0.1:9" } };
    cli.file("gateway.yaml", JSON.stringify({ listen: { port: 0 }, upstreams, models, routes }));
    const rows = Array.from({ length: 80 }, (_, i) => JSON.stringify({ question: `What is ${i}?` }));
    cli.file("tasks.jsonl", rows.join("\n"));
    const world = { kind: "agent", agent: "agent.mjs", tasks: "tasks.jsonl", gateway: "gateway.yaml" };
    const config = writeConfig(cli.folder, { ...LOOP, windows: 1, rollouts: 80, samples: 1, world });
    const { err } = await cli.run(`run start --config ${config}`);
    expect(err).toContain("It runs the rollouts of the window that have no result yet");
    const [, ended, rest] = /has results of (\d+) of 80 rollouts, and (\d+) are still to run\n/.exec(
      await cli.ok(`run status --config ${config}`),
    )!;
    // Rollouts that failed once are tried again, so they have no result.
    expect(Number(rest) + Number(ended)).toBe(80);
    expect(Number(rest)).toBeGreaterThan(0);
  }, 60_000);

  it("of rollouts that fail one after another by the provider stops unsealed, and a resume runs them again", async () => {
    const cli = new Cli({ clock: systemClock });
    const upstream = await strongUpstream();
    try {
      const config = agentLoop(cli, { upstream });
      cli.file("agent.mjs", BLAMING_AGENT);
      const answer = upstream.otherwise;
      let answers = 8;
      upstream.otherwise = (...asked) => (answers-- > 0 ? answer : json("{}", 503))(...asked);
      // The first process collects some rollouts, so the failures are not the first results of the window.
      const stopped = await cli.run(`run start --config ${config}`);
      expect([stopped.code, stopped.err]).toEqual([
        1,
        expect.stringMatching(
          /loop-w1 stopped: \d+ rollouts in a row failed, by the provider: .* It runs the rollouts of the window that have no result yet.*\[window-failing\]/,
        ),
      ]);
      const before = await statusOf(cli, `status --config ${config}`);
      expect([before.windows.length, before.windows[0]!.state]).toEqual([1, "collecting"]);
      upstream.otherwise = answer;
      const { err, code } = await cli.run(`run resume --config ${config}`);
      expect([code, err]).toEqual([0, expect.not.stringContaining("failed by the provider")]);
      const whole = new Cli({ clock: systemClock });
      await whole.ok(`run start --config ${agentLoop(whole, { upstream })}`);
      const assignments = async (of: Cli) =>
        (await of.json("artifact ls --ending terminal")).map(({ task }) => task).sort();
      expect(await assignments(cli)).toEqual(await assignments(whole));
      expect(new Set(await assignments(cli)).size).toBe(36);
    } finally {
      await upstream.close();
    }
  }, 120_000);

  it.each([
    [
      72,
      /loop-w1 stopped: the first 20 rollouts that ended all failed, by the agent: .*no model weak\. .* then run `rollbook run resume --config \S+loop\.yaml`\. It runs the rollouts of the window that have no result yet/,
    ],
    [12, /window 1: .* Failed rollouts: 12 \(agent\): .*no model weak.* another name under run:/],
  ])(
    "of %d rollouts that all fail stops with the reason and what to do",
    async (rollouts, told) => {
      const cli = new Cli({ clock: systemClock });
      cli.file(
        "agent.mjs",
        `export default async () => { throw new Error("404: there is no model weak"); };\n`,
      );
      cli.file(
        "gateway.yaml",
        JSON.stringify({
          ...{ listen: { port: 0 }, upstreams: { up: { baseUrl: "http://127.0.0.1:9" } } },
          ...{
            models: { weak: { upstream: "up" }, strong: { upstream: "up" } },
            routes: { auto: ["weak", "strong"] },
          },
        }),
      );
      const rows = Array.from({ length: 36 }, (_, i) => JSON.stringify({ question: `What is ${i}?` }));
      cli.file("tasks.jsonl", rows.join("\n"));
      const world = { kind: "agent", agent: "agent.mjs", tasks: "tasks.jsonl", gateway: "gateway.yaml" };
      const config = writeConfig(cli.folder, { ...LOOP, windows: 1, rollouts, samples: 2, world });
      const { code, err } = await cli.run(`run start --config ${config}`);
      expect([code, err]).toEqual([1, expect.stringMatching(told)]);
      expect(err).not.toContain("sim.router");
      const status = await cli.ok(`run status --config ${config}`);
      expect(status).toMatch(
        rollouts === 12
          ? /window 1 is sealed and has no rollout to learn from.*another name under run:/
          : /not running: `rollbook run resume --config \S+loop\.yaml` continues it/,
      );
      const sealed = (await cli.json("artifact ls")).length;
      expect(sealed).toBeGreaterThanOrEqual(Math.min(rollouts, 20));
      expect(sealed).toBeLessThan(60);
    },
    60_000,
  );

  it("names the gateway's own configuration, not the loop's, if a gateway cannot be reached", async () => {
    const cli = new Cli({ clock: systemClock });
    cli.file("agent.mjs", "export default async () => ({ reward: 1 });\n");
    const models = { weak: { upstream: "up" }, strong: { upstream: "up" } };
    const upstreams = { up: { baseUrl: "http://127.0.0.1:9" } };
    cli.file("gateway.yaml", JSON.stringify({ upstreams, models, routes: { auto: ["weak", "strong"] } }));
    cli.file("tasks.jsonl", Array.from({ length: 12 }, (_, i) => `{"question":"What is ${i}?"}`).join("\n"));
    const world = { kind: "agent", agent: "agent.mjs", tasks: "tasks.jsonl", gateway: "gateway.yaml" };
    const gateways = ["http://127.0.0.1:9"];
    const config = writeConfig(cli.folder, { ...SMALL, windows: 1, world, gateways });
    const { code, err } = await cli.run(`run start --config ${config}`);
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(
        /Start it with `rollbook gateway --config FILE`.* `rollbook run resume --config \S+loop\.yaml`.*\[no-gateway\]/,
      ),
    ]);
  }, 60_000);
});
