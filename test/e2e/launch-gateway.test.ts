import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { startUpstream } from "../../examples/sums/upstream.mjs";
import { lines } from "../support/cli.ts";

const main = resolve("dist/cli/main.js");
const NOWHERE = `sha256:${"0".repeat(64)}`;

/** The built command line on one folder, each command in its own process. */
async function world() {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-launch-gateway-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const env = { ...process.env, ROLLBOOK_HOME: join(folder, "home") };
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const run = (words: string) =>
    new Promise<{ code: number; out: string; err: string }>((done) => {
      const child = execFile(process.execPath, [main, ...words.split(" ")], { env }, (_, out, err) =>
        done({ code: child.exitCode ?? -1, out, err }),
      );
    });
  const plain = `listen: { port: 0 }\nupstreams: { local: { baseUrl: "${upstream.url}" } }\nmodels: { tiny: { upstream: local }, large: { upstream: local } }\n`;
  const gateway = async (book: string, router = ""): Promise<string> => {
    const words = [
      "gateway",
      "--config",
      file("gateway.yaml", plain + router),
      "--book",
      join(folder, book),
      "--json",
    ];
    const child = spawn(process.execPath, [main, ...words], { env, stdio: ["ignore", "pipe", "ignore"] });
    onTestFinished(async () => {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGTERM");
      await ended;
    });
    const told = await new Promise<string>((done) =>
      child.stdout.once("data", (bytes) => done(String(bytes))),
    );
    return JSON.parse(told).url;
  };
  return { folder, run, gateway, file };
}

/** An agent that writes the file `ran` when it runs. */
const agentIn = (folder: string, model = "tiny") => `
import { writeFileSync } from "node:fs";
export default async (_, { baseUrl, apiKey }) => {
  writeFileSync(${JSON.stringify(join(folder, "ran"))}, "");
  const reply = await fetch(baseUrl + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + apiKey, "content-type": "application/json" },
    body: JSON.stringify({ model: "${model}", messages: [{ role: "user", content: "What is 1 + 1?" }] }),
  });
  return reply.ok ? 1 : 0;
};
`;

describe("launch and worker through a gateway in another process", () => {
  beforeAll(() => {
    if (!existsSync(main)) throw new Error("dist/ is missing. Run: npm run build");
  });

  it("run on the gateway's book, whose records it sees at once, and on no other", async () => {
    const { folder, run, gateway, file } = await world();
    const [agent, tasks] = [file("a.mjs", agentIn(folder)), file("t.jsonl", lines({ a: 1 }, { a: 2 }))];
    const url = await gateway("one");
    const launch = (book: string) =>
      run(
        `launch --book ${join(folder, book)} --tasks ${tasks} --agent ${agent} --isolation process --gateway ${url}`,
      );

    const other = await launch("two");
    expect([other.code, other.out]).toEqual([1, ""]);
    expect(other.err).toContain("other-book");
    expect(other.err).toContain(`Start the gateway with --book ${join(folder, "two")}`);
    const local = file("local.mjs", "export default () => 1;");
    await run(`launch --book ${join(folder, "two")} --tasks ${tasks} --agent ${local} --isolation process`);
    const queue = join(folder, "two", "queue.db");
    const worker = await run(
      `worker --book ${join(folder, "two")} --queue ${queue} --agent ${agent} --gateway ${url} --idle 1`,
    );
    expect([worker.code, worker.err]).toEqual([1, expect.stringContaining("other-book")]);
    expect(existsSync(join(folder, "ran"))).toBe(false);

    const same = await launch("one");
    expect([same.code, same.out]).toEqual([0, expect.stringContaining("2 of 2 rollouts sealed")]);
    expect((await run(`verify --book ${join(folder, "one")}`)).code).toBe(0);
  });

  it("print the command that cuts a batch of what they ran, and it works as it stands", async () => {
    const { folder, run, gateway, file } = await world();
    const [agent, tasks] = [
      file("a.mjs", agentIn(folder, "auto")),
      file("t.jsonl", lines({ a: 1 }, { a: 2 })),
    ];
    const url = await gateway("one", "router: { strategy: epsilon-greedy, exploration: 0.5 }\n");
    const { err } = await run(
      `launch --book ${join(folder, "one")} --tasks ${tasks} --agent ${agent} --exp e --isolation process --gateway ${url}`,
    );
    const [, command] = /^a batch of these rollouts: rollbook (.*)$/m.exec(err) ?? [];
    expect(command).toMatch(
      /^batch assemble --book .* --level step --target router-\w+ --family router --exp e --advantage none$/,
    );
    const batch = await run(command!);
    expect(batch).toMatchObject({ code: 0, out: expect.stringMatching(/rows +2 with/) });
    expect(batch.err).not.toContain("warning");
  });

  it("warn that --budget-usd counts calls to models without a price as 0", async () => {
    const { folder, run, gateway, file } = await world();
    const [agent, tasks] = [file("a.mjs", agentIn(folder)), file("t.jsonl", lines({ a: 1 }, { a: 2 }))];
    const at = `--book ${join(folder, "one")} --gateway ${await gateway("one")}`;
    const { code, err } = await run(
      `launch ${at} --tasks ${tasks} --agent ${agent} --isolation process --budget-usd 1`,
    );
    expect([
      code,
      err.match(/warning: the cost of 2 calls is unknown\. --budget-usd .* as 0\./g)?.length,
    ]).toEqual([0, 1]);
  });

  it("end before any task is run when the gateway cannot be reached", async () => {
    const { folder, run, file } = await world();
    const [agent, tasks] = [file("a.mjs", agentIn(folder)), file("t.jsonl", lines({ a: 1 }))];
    const book = join(folder, "one");
    const { code, err } = await run(
      `launch --book ${book} --tasks ${tasks} --agent ${agent} --gateway http://127.0.0.1:2 --attempts 1`,
    );
    expect([code, err]).toEqual([1, expect.stringMatching(/cannot be reached: .*Start it.*\[no-gateway\]/)]);
    expect(existsSync(join(folder, "ran"))).toBe(false);
  });

  it("leave a book that verifies after a request that named a record of no book", async () => {
    const { folder, run, gateway } = await world();
    const url = await gateway("one");
    const post = (path: string, body: object) =>
      fetch(url + path, { method: "POST", body: JSON.stringify(body) });
    const opening = { id: "r", task: { id: "t", digest: NOWHERE } };
    expect((await post("/v1/rollouts", opening)).status).toBe(422);
    const ask = { model: "tiny", messages: [{ role: "user", content: "What is 1 + 1?" }] };
    await post("/r/r/v1/chat/completions", ask);
    await post("/v1/rollouts/r/close", {});
    await post("/v1/chat/completions", ask);
    await expect
      .poll(async () => (await run(`verify --book ${join(folder, "one")}`)).out, { timeout: 10_000 })
      .toContain("1 artifact");
    expect((await run(`verify --book ${join(folder, "one")}`)).code).toBe(0);
  });
});
