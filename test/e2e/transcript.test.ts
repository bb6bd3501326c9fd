import { describe, expect, it } from "vitest";
import { chatWire, hostileWire, SCRIPTS } from "../support/chat-rollouts.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, stepWire } from "../support/shelf.ts";

async function bookOf(...rollouts: readonly unknown[]): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("artifact import - --no-sign", lines(...rollouts));
  return cli;
}

/** Characters that control a terminal or that a reader cannot see. */
const STEERS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

describe("artifact show", () => {
  it("prints a conversation as a person reads it, each message once", async () => {
    const cli = await bookOf(chatWire("chat"));
    await cli.ok("feedback chat --name helpful --value 0.5 --source ann");
    const text = await cli.ok("artifact show chat");
    expect(text.slice(0, text.indexOf("  content "))).toBe(`rollout chat  terminal  reward 1
  task         task-paris
  where        environment env.weather@1, group group-1, experiment first, synthetic data
  time         1970-01-01 00:00:01 UTC, took 1.9 s
  calls        2 calls · small-1 · 2 400 + 14 tokens · $0.003 · model calls 1.58 s

── call 0 · small-1 · 1 200 + 7 tokens · $0.0015 · 80 ms · first byte 30 ms · stop
   router chose small (probability 0.75) of small 0.75, large 0.25, huge 0 (over-budget), reward 0.5
system
  You track orders.
user
  Where is order 7?
  It is late.
assistant
  → track({"order": 7})

── call 1 · small-1 · 1 200 + 7 tokens · $0.0015 · 1.5 s · first byte 20 ms · stop · delivery aborted
tool
  ← in Lyon
assistant
  It is in Lyon.

  score        solved 1 × 1
  feedback     helpful 0.5 from ann

`);
  });

  it("shows a reward that came at the end there alone, and the tools that were offered once", async () => {
    const plain = chatWire("tools") as { calls: { request: object }[] };
    const tools = [
      { type: "function", function: { name: "track" } },
      { name: "cancel", input_schema: {} },
    ];
    const [step] = stepWire().steps as object[];
    const stepsOf = (...rewards: number[]) =>
      stepWire({ steps: rewards.map((reward, call) => ({ ...step, call, turn: call, reward })) });
    const calls = plain.calls.map((call) => ({ ...call, request: { ...call.request, tools } }));
    const cli = await bookOf(
      { ...plain, calls, streams: [stepsOf(0, 1)] },
      chatWire("both", { streams: [stepsOf(0.5, 1)] }),
    );
    const shown = await cli.ok("artifact show tools");
    expect(shown.match(/chose small .*/g)?.map((line) => line.match(/reward \S+/)?.[0])).toEqual([
      undefined,
      "reward 1",
    ]);
    expect(shown.match(/ tools offered: .*/g)).toEqual([" tools offered: track, cancel"]);
    expect((await cli.json("artifact show tools --calls"))[1].toolNames).toEqual(["track", "cancel"]);
    expect((await cli.ok("artifact show both")).match(/, reward \S+/g)).toEqual([
      ", reward 0.5",
      ", reward 1",
      ", reward 1.5",
    ]);
    expect(await cli.ok("route explain tools.0")).toContain(
      "call 0 of tools (router), the reward is at the rollout's last choice:",
    );
    const { out, err } = await cli.run("route explain tools.1");
    expect([out, err]).toEqual([expect.stringContaining("call 1 of tools (router), reward 1:"), ""]);
  });

  it("says where a call does not go on from the one before", async () => {
    const plain = chatWire("fork") as { calls: Record<string, unknown>[] };
    const [first, second] = plain.calls as [Record<string, unknown>, { request: { messages: unknown[] } }];
    const [system, user] = second.request.messages;
    const other = {
      ...first,
      request: { messages: [system, { role: "user", content: "Other" }], parameters: {} },
    };
    const forked = {
      ...first,
      request: { messages: [system, user, { role: "user", content: "Hm" }], parameters: {} },
    };
    const cli = await bookOf({
      ...plain,
      calls: [first, second, other, forked],
      envelope: { worker: "w", startedAtMs: 1, endedAtMs: 2 },
    });
    const text = await cli.ok("artifact show fork");
    expect(text).toMatch(/── call 2 .* a new conversation\n/);
    expect(text).toMatch(/── call 3 .* goes on from call 1, message 2\nuser\n {2}Hm\n/);
  });

  it("prints a line per call, and what was recorded, in JSON", async () => {
    const cli = await bookOf(chatWire("chat"));
    expect(await cli.ok("artifact show chat --calls")).toMatch(
      /^CALL {2}MODEL .*\n {3}0 {2}small-1 +200 {2}stop +1 200 +7 {2}\$0.0015 +30 ms +80 ms {2}sent .*\n {3}1 .*aborted/,
    );
    const [calls] = await cli.json("artifact show chat --raw");
    expect(calls[1].response.messages).toEqual([{ role: "assistant", content: "It is in Lyon." }]);
    expect(JSON.parse(await cli.ok("artifact show chat --raw"))).toEqual(calls);
    expect((await cli.json("artifact show chat --calls"))[0]).toMatchObject({ index: 0, model: "small-1" });
    expect((await cli.run("artifact show chat --raw --calls")).code).toBe(2);
  });

  it("lays its JSON out on a terminal, which import reads back", async () => {
    const cli = await bookOf(chatWire("chat"));
    const terminal = new Cli({ terminal: true });
    await terminal.ok("init");
    await terminal.ok("artifact import - --no-sign", await cli.ok("artifact show chat --json"));
    const laidOut = await terminal.ok("artifact show chat --json");
    expect(laidOut).toMatch(/^\{\n {2}"schema"/);
    const third = await bookOf(JSON.parse(laidOut));
    expect(await third.ok("artifact show chat --json")).toBe(await cli.ok("artifact show chat --json"));
  });

  it("never hands a terminal what would steer it, and shows the rest as it is", async () => {
    const cli = new Cli({ terminal: true });
    await cli.ok("init");
    await cli.ok("artifact import - --no-sign", lines(hostileWire("evil")));
    const env = { NO_COLOR: "1" };
    for (const words of ["show evil", "show evil --calls", "show evil --raw", "show evil --json", "ls"]) {
      const { code, out } = await cli.run(`artifact ${words}`, "", env);
      expect([words, code, STEERS.exec(out)]).toEqual([words, 0, null]);
    }
    const { out } = await cli.run("artifact show evil", "", env);
    for (const script of SCRIPTS) expect(out).toContain(script);
    // Colour sequences are the only escapes in the coloured output, and they are ours.
    const colored = await cli.ok("artifact show evil");
    expect(colored.replaceAll(/\u001b\[\d+m/g, "")).toBe(out);
    expect(colored).not.toBe(out);
  });

  it("cuts a text of megabytes and says how to see it whole", async () => {
    const cli = await bookOf(hostileWire("evil", { megabytes: 3 }));
    const text = await cli.ok("artifact show evil");
    expect(text.length).toBeLessThan(100_000);
    const [, name] = /characters more: rollbook cat ([0-9a-f]{12})/.exec(text)!;
    expect((await cli.ok(`cat ${name}`)).length).toBeGreaterThan(3_000_000);
  });
});

describe("cat", () => {
  it("prints any blob: bytes to a pipe, laid out on a terminal", async () => {
    const cli = await bookOf(chatWire("chat"));
    const [{ content }] = await cli.json("artifact ls");
    expect(JSON.parse(await cli.ok(`cat ${content}`))).toMatchObject({ rolloutId: "chat" });
    expect(await cli.ok("cat chat")).toBe(await cli.ok(`cat ${content.slice(7, 19)}`));
    expect((await cli.json("cat chat"))[0]).toMatchObject({
      digest: content,
      kind: "rollbook.rollout-content.v1",
    });
    expect(await cli.run("cat nothing")).toMatchObject({ code: 1, err: expect.stringContaining("no blob") });
    const terminal = new Cli({ terminal: true });
    await terminal.ok("init");
    await terminal.ok("artifact import - --no-sign", lines(draftWire("tokens")));
    expect(await terminal.ok("cat tokens")).toMatch(/^\{\n {2}"calls": \[\]/);
    const { streams } = JSON.parse(await terminal.ok("cat tokens --raw"));
    expect(await terminal.ok(`cat ${streams[0].columns.ids.digest}`)).toBe("101 202 303\n");
  });
});

describe("artifact ls", () => {
  it("lists the latest first, with experiment, task, model, reward and ending", async () => {
    const at = (endedAtMs: number, over: object = {}) => ({
      envelope: { worker: "w", startedAtMs: 1, endedAtMs, ...over },
    });
    const cli = await bookOf(
      draftWire("old", at(1000)),
      draftWire("new", {
        ...at(90_000, { experiment: "b" }),
        scores: [{ name: "s", value: 0.5, weight: 1 }],
      }),
      draftWire("mid", { ...at(60_000), streams: [stepWire()] }),
    );
    expect(
      await cli.ok("artifact ls"),
    ).toBe(`ROLLOUT  ENDED                EXPERIMENT  TASK        CHOSEN     CALLS  REWARD  ENDING
new      1970-01-01 00:01:30  b           task-paris  policy-r1      0     0.5  terminal
mid      1970-01-01 00:01:00  -           task-paris  small          0       1  terminal
old      1970-01-01 00:00:01  -           task-paris  policy-r1      0       -  terminal
`);
    const ids = async (flags: string) => (await cli.json(`artifact ls ${flags}`)).map((row) => row.rolloutId);
    expect(await ids("--exp b")).toEqual(["new"]);
    expect(await ids("--min-score 0.5")).toEqual(["new", "mid"]);
    expect(await ids("--min-score 0.6")).toEqual(["mid"]);
    expect(await ids("--since 1970-01-01T00:01:00Z")).toEqual(["new", "mid"]);
    expect(await ids("--since 2w --limit 1")).toEqual(["new"]);
    expect(await ids("--model small")).toEqual(["mid"]);
    expect((await cli.run("artifact ls --since yesterday")).code).toBe(2);
  });

  it("marks a run that was given up where a later run of its claim followed, also behind a limit", async () => {
    const run = (name: string, endedAtMs: number, claim: string) =>
      draftWire(name, {
        ...{ ending: { kind: "failed", owner: "infrastructure", message: "gone" } },
        envelope: { worker: "w", startedAtMs: 0, endedAtMs, claim },
      });
    const cli = await bookOf(
      run("r-a", 1000, "r-a:1"),
      run("r-a.run-2", 9000, "r-a:2"),
      run("r-b", 2000, "r-b:1"),
    );
    const marks = async (flags = "") =>
      (await cli.json(`artifact ls${flags}`)).map(({ rolloutId, triedAgain }) => [rolloutId, triedAgain]);
    expect(await marks()).toEqual([
      ["r-a.run-2", false],
      ["r-b", false],
      ["r-a", true],
    ]);
    expect(await marks(" --limit 3")).toEqual(await marks());
    expect(await cli.ok("artifact ls")).toMatch(/^r-a .*failed-infrastructure, tried again$/m);
    expect(await cli.ok("artifact ls")).toMatch(/^r-b .*failed-infrastructure$/m);
  });

  it("lists a rollout that was run twice once, at the time of its last run, with and without a limit", async () => {
    const run = (endedAtMs: number) =>
      draftWire("twice", { envelope: { worker: "w", startedAtMs: 0, endedAtMs } });
    const cli = await bookOf(
      run(1000),
      run(9000),
      draftWire("once", { envelope: { worker: "w", startedAtMs: 0, endedAtMs: 5000 } }),
    );
    const rows = await cli.json("artifact ls");
    expect(
      rows.map(({ rolloutId, endedAtMs, envelopes }) => [rolloutId, endedAtMs, envelopes.length]),
    ).toEqual([
      ["twice", 9000, 2],
      ["once", 5000, 1],
    ]);
    expect(await cli.json("artifact ls --limit 1")).toEqual(rows.slice(0, 1));
  });
});

describe("a launch", () => {
  it("names its experiment and its tasks in the list", async () => {
    const cli = new Cli();
    const tasks = cli.file(
      "t.jsonl",
      lines({ prompt: "Add 2 and 3", metadata: { a: 2 } }, { name: "triple", a: 3 }),
    );
    const agent = cli.file("a.mjs", "export default ({ a }) => a;\n");
    await cli.ok(["launch", "--tasks", tasks, "--agent", agent, "--exp", "sums"]);
    const rows = await cli.json("artifact ls --exp sums");
    expect(rows.map(({ taskTitle, score }) => [taskTitle, score]).sort()).toEqual([
      ["Add 2 and 3", 2],
      ["triple", 3],
    ]);
    expect(await cli.json("artifact ls --task TRIPLE")).toHaveLength(1);
    expect(await cli.ok(`artifact show ${rows[0].rolloutId}`)).toContain("experiment sums");
  });
});
