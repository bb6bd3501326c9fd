import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { MAIN } from "../../bench/support/build.ts";
import * as natsServer from "../../scripts/setup/nats-server.mjs";
import { systemClock } from "../../src/base/index.ts";
import { openNatsQueue } from "../../src/collect/queue/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { type NatsServers, startNats } from "../support/nats-server.ts";
import { describeNeeding } from "../support/needs.ts";

const AGENT = "export default ({ a }) => ({ reward: a });";
const TASKS = lines({ a: 1 }, { a: 2 }, { a: 3 });

await describeNeeding(natsServer, "a launch with its queue on NATS", () => {
  let servers: NatsServers;
  let names = 0;
  beforeAll(async () => {
    servers = await startNats();
  }, 60_000);
  afterAll(() => servers?.stop());
  const freshQueue = () => `nats://${servers.hosts}/launch-${names++}`;
  const started = () => {
    const cli = new Cli({ clock: systemClock });
    const [tasks, agent] = [cli.file("t.jsonl", TASKS), cli.file("a.mjs", AGENT)];
    return { cli, tasks, agent, queue: freshQueue() };
  };

  describe("launch and worker", () => {
    it("share the work through the server, and the same launch again runs nothing", async () => {
      const { cli, tasks, agent, queue } = started();
      const words = `launch --tasks ${tasks} --agent ${agent} --samples 4 --queue ${queue}`;
      const launched = cli.json(`${words} --concurrency 0`);
      const follower = await openNatsQueue(queue, { clock: systemClock });
      const watch = follower.watch();
      while ((await follower.counts()).waiting < 12) await watch.changed(1_000);
      await follower.close();
      const [worked] = await cli.json(`worker --queue ${queue} --agent ${agent}`);
      expect(worked).toEqual({ begun: 12, receipts: { stored: 12 } });
      expect((await launched).at(-1)).toMatchObject({ kind: "summary", total: 12, done: 12, meanReward: 2 });
      expect((await cli.json(words)).at(-1)).toMatchObject({ done: 12, earlier: 12 });
      expect(await cli.ok("verify --require-trusted")).toContain("12");
    });

    it("two launchers of one experiment seal every rollout once", async () => {
      const { cli, tasks, agent, queue } = started();
      const words = `launch --tasks ${tasks} --agent ${agent} --samples 4 --queue ${queue}`;
      const [one, two] = await Promise.all([cli.json(words), cli.json(words)]);
      const told = (all: { kind: string; rolloutId: string; envelope: string }[]) =>
        all
          .filter(({ kind }) => kind === "rollout")
          .map(({ rolloutId, envelope }) => `${rolloutId} ${envelope}`)
          .sort();
      expect(told(one)).toHaveLength(12);
      expect(told(two)).toEqual(told(one));
      expect(await cli.json("artifact ls")).toHaveLength(12);
    });

    it("a worker paused past its claim cannot have its rollout accepted", async () => {
      const { cli, tasks, queue } = started();
      const agent = cli.file(
        "slow.mjs",
        `import { existsSync } from "node:fs";
export default async () => {
  while (!existsSync(${JSON.stringify(`${cli.folder}/go`)})) await new Promise((next) => setTimeout(next, 20));
  return Math.random();
};`,
      );
      const common = ["--agent", agent, "--queue", queue, "--claim-ttl", "2", "--isolation", "process"];
      const launching = cli.run([...["launch", "--tasks", tasks, "--concurrency", "0", "--json"], ...common]);
      const follower = await openNatsQueue(queue, { clock: systemClock });
      const watch = follower.watch();
      const until = async (isTrue: () => Promise<boolean>) => {
        while (!(await isTrue())) await watch.changed(200);
      };
      await until(async () => (await follower.counts()).waiting === 3);
      const paused = spawnWorker(cli, ["--book", cli.book, "--json", "--idle", "30", ...common]);
      await until(async () => (await follower.counts()).claimed === 3);
      paused.child.kill("SIGSTOP");
      cli.file("go", "");
      const [taken] = await cli.json(["worker", "--idle", "30", ...common].join(" "));
      expect(taken).toEqual({ begun: 3, receipts: { stored: 3 } });
      paused.child.kill("SIGCONT");
      const [late] = await paused.lines;
      expect(JSON.parse(late!).receipts.stored).toBeUndefined();
      const results = (await launching).out.split("\n").filter((line) => line.includes('"rollout"'));
      expect(results).toHaveLength(3);
      expect(await follower.counts()).toEqual({ waiting: 0, claimed: 0, done: 3, dead: 0 });
      await follower.close();
      expect(await cli.ok("verify")).toContain("self-consistent: yes");
    }, 60_000);

    it("keep the way into the queue from the agent", async () => {
      const { cli, tasks, queue } = started();
      vi.stubEnv("NATS_USER", "u");
      vi.stubEnv("NATS_PASSWORD", "p");
      onTestFinished(() => void vi.unstubAllEnvs());
      const agent = cli.file(
        "spy.mjs",
        'export default () => Object.keys(process.env).filter((name) => name.startsWith("NATS_")).length;',
      );
      const launched = await cli.json(`launch --tasks ${tasks} --agent ${agent} --queue ${queue}`);
      expect(launched.at(-1)).toMatchObject({ done: 3, meanReward: 0 });
    });

    it("says what is wrong with a URL, and that there is no such queue", async () => {
      const { cli, agent, queue } = started();
      const refused = await cli.run(`worker --queue nats://u:secret@${servers.hosts} --agent ${agent}`);
      expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("NATS_USER")]);
      expect(refused.err).not.toMatch(/secret@|made a key/);
      await cli.ok("init");
      const none = await cli.run(`worker --queue ${queue} --agent ${agent}`);
      expect([none.code, none.err]).toEqual([1, expect.stringContaining("no-queue")]);
    });
  });
});

/** A worker in its own process. */
function spawnWorker(cli: Cli, words: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, "worker", ...words], {
    env: { ...process.env, ROLLBOOK_HOME: cli.home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const printed = (async () => {
    const ended = once(child, "exit");
    const out: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) out.push(line);
    await ended;
    return out;
  })();
  return { child, lines: printed };
}
