import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { CLOSED_URL } from "../../../../test/support/free-port.ts";
import { digestJson, rngFrom } from "../../../base/index.ts";
import type { RolloutContext } from "./agent.ts";
import { endingOfError } from "./failure.ts";
import { loadAgent } from "./load-agent.ts";
import { programAgent, serverAgent } from "./program.ts";

const folder = mkdtempSync(join(tmpdir(), "rollbook-program-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function contextWith(given: Partial<RolloutContext> = {}): RolloutContext {
  return {
    ...{ rolloutId: "r-1", sample: 0, attempt: 1, seed: 2n ** 63n, rng: rngFrom(1n) },
    signal: new AbortController().signal,
    rolloutConfig: { exp_id: "e", input_id: "t" },
    nextTurn: () => 1,
    log: () => {},
    ...given,
  };
}
const shell = (script: string, env: NodeJS.ProcessEnv = process.env) =>
  programAgent({ argv: ["sh", "-c", script], name: "sh", digest: digestJson("test.agent.v1", script), env });

describe("a program", () => {
  it("reads the request on stdin and answers with its last line; the rest is for people", async () => {
    const agent = shell(
      "read request; echo thinking >&2; echo hello; echo '{\"reward\": 1, \"final_state\": '$request'}'",
    );
    const logs: string[] = [];
    const answer = await agent.run({ a: 1 }, contextWith({ log: (line) => logs.push(line) }));
    expect(answer).toEqual({
      reward: 1,
      final_state: {
        schema: "rollbook.executor-request.v1",
        payload: { a: 1 },
        rollout_config: { exp_id: "e", input_id: "t" },
        rollout: { id: "r-1", sample: 0, attempt: 1, seed: "9223372036854775808" },
      },
    });
    expect(logs).toEqual(["thinking"]);
  });

  it("finds the gateway where SDKs look for it", async () => {
    const script = 'echo "[\\"$OPENAI_BASE_URL\\", \\"$OPENAI_API_KEY\\", \\"$ANTHROPIC_BASE_URL\\"]"';
    const agent = shell(script);
    const answer = await agent.run({}, contextWith({ baseUrl: "http://127.0.0.1:1/v1", apiKey: "rk-1" }));
    expect(answer).toEqual(["http://127.0.0.1:1/v1", "rk-1", "http://127.0.0.1:1"]);
    const own = { OPENAI_API_KEY: "sk-own", ANTHROPIC_BASE_URL: "http://other" };
    const alone = shell(script, { ...process.env, ...own });
    expect(await alone.run({}, contextWith({ baseUrl: "http://127.0.0.1:1/v1" }))).toEqual([
      ...["http://127.0.0.1:1/v1", "sk-own", "http://other"],
    ]);
  });

  it.each([
    ["exit 3", "echo broken >&2; exit 3", "agent", "exited with 3: broken"],
    [
      "a traceback",
      "printf 'Traceback (most recent call last):\\n  File x\\nKeyError: 1\\n' >&2; exit 1",
      "agent",
      "it exited with 1: KeyError: 1\n",
    ],
    ["no JSON", "echo done", "agent", "no JSON result"],
    ["no result", "exit 0", "agent", "sh gave no result. A program prints its result"],
    ["a program that is not there", "exec /no/such/program", "agent", "exited with 127"],
  ])("that ends with %s fails by its owner", async (_name, script, owner, message) => {
    const error = await shell(script)
      .run({}, contextWith())
      .catch((each: unknown) => each);
    expect(endingOfError(error)).toMatchObject({ owner, message: expect.stringContaining(message) });
  });

  it("in Python that runs no agent is told what its file lacks", async () => {
    const agent = join(folder, "norun.py");
    writeFileSync(agent, "def agent(payload, rollout): return 1\n");
    const loaded = await loadAgent(agent);
    await expect(loaded.run({}, contextWith())).rejects.toThrow(
      "norun.py gave no result. A file with an @executor",
    );
  });

  it.each(["ROLLBOOK_PYTHON", "VIRTUAL_ENV"])("in Python is run by the interpreter of %s", async (name) => {
    const venv = join(folder, name);
    mkdirSync(join(venv, "bin"), { recursive: true });
    const interpreter = join(venv, "bin", "python3");
    writeFileSync(interpreter, `#!/bin/sh\necho '"own"'\n`, { mode: 0o755 });
    const agent = join(folder, "agent.py");
    writeFileSync(agent, "");
    vi.stubEnv("VIRTUAL_ENV", "/no/such/folder");
    vi.stubEnv(name, name === "VIRTUAL_ENV" ? venv : interpreter);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await (await loadAgent(agent)).run({}, contextWith())).toBe("own");
  });

  it("that cannot be started is nobody's fault but ours", async () => {
    const agent = programAgent({
      argv: ["/no/such/program"],
      name: "x",
      digest: digestJson("test.agent.v1", 1),
    });
    const error = await agent.run({}, contextWith()).catch((each: unknown) => each);
    expect(endingOfError(error)).toMatchObject({ owner: "infrastructure" });
  });

  it("ends when told to stop, also where a program in another group holds its output", async () => {
    const agent = shell("setsid sleep 30 & sleep 0.1");
    const signal = AbortSignal.timeout(300);
    await expect(agent.run({}, contextWith({ signal }))).rejects.toMatchObject({ name: "TimeoutError" });
  }, 10_000);

  it("is killed with its children when told to stop", async () => {
    const stop = new AbortController();
    const pids: number[] = [];
    const agent = shell("trap '' TERM; sleep 600 & echo $! >&2; wait; sleep 600");
    const run = agent.run({}, contextWith({ signal: stop.signal, log: (line) => pids.push(Number(line)) }));
    while (pids.length === 0) await new Promise((next) => setTimeout(next, 10));
    stop.abort(new Error("stopped"));
    await expect(run).rejects.toThrow("stopped");
    for (let tries = 0; tries < 100 && isAlive(pids[0]!); tries++)
      await new Promise((next) => setTimeout(next, 10));
    expect(isAlive(pids[0]!)).toBe(false);
  });
});

describe("a server", () => {
  it("gets the same request by POST; its 500 is a failure, its absence ours", async () => {
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      response.statusCode = request.url === "/ok" ? 200 : 500;
      response.end(request.url === "/ok" ? JSON.stringify({ reward: JSON.parse(body).payload.a }) : "boom");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await serverAgent(`${base}/ok`).run({ a: 7 }, contextWith())).toEqual({ reward: 7 });
    const failed = await serverAgent(`${base}/bad`)
      .run({}, contextWith())
      .catch((each: unknown) => each);
    expect(endingOfError(failed)).toMatchObject({
      owner: "agent",
      message: expect.stringContaining("500: boom"),
    });
    server.close();
    const gone = await serverAgent(`${CLOSED_URL}/ok`)
      .run({}, contextWith())
      .catch((each: unknown) => each);
    expect(endingOfError(gone)).toMatchObject({ owner: "infrastructure" });
  });
});

describe("loadAgent", () => {
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it("imports modules, runs executables, and knows each by the digest of its file", async () => {
    const module = await loadAgent(file("a.mjs", "export default () => 5;"));
    expect(await module.run({}, contextWith())).toBe(5);
    const other = await loadAgent(file("b.mjs", "export default () => 6;"));
    expect(other.digest).not.toBe(module.digest);
    const script = file("c.sh", "#!/bin/sh\necho 8\n");
    chmodSync(script, 0o755);
    expect(await (await loadAgent(script)).run({}, contextWith())).toBe(8);
    expect((await loadAgent("http://127.0.0.1:1/agent")).name).toBe("http://127.0.0.1:1/agent");
  });

  it.each([
    ["one without a function", "d.mjs", "export const x = 1;", "no function as its default export"],
    ["one that throws", "e.mjs", "throw new Error('at load')", "cannot be loaded: at load"],
    ["one that nobody can run", "f.txt", "hello", "not executable"],
  ])("refuses %s", async (_name, name, text, message) => {
    await expect(loadAgent(file(name, text))).rejects.toThrow(message);
  });

  it("refuses a file that is not there", async () => {
    await expect(loadAgent("no-such-agent.mjs")).rejects.toMatchObject({ code: "bad-agent" });
  });
});

/** A killed process without a `wait` by its parent (a zombie) counts as dead. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
