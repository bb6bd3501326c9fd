/** Agents in any language: a program that reads one JSON request on stdin and prints one JSON result on stdout, or a
 *  server that answers a POST with the result (docs/reference/executor.md is the contract). In: payload and context. Out: the
 *  result, not yet checked. A program runs once per rollout, in a separate process group, which is killed on abort.
 *  Runs trusted code on this host: untrusted code belongs in the sandbox. */
import { type ChildProcess, spawn } from "node:child_process";
import { type Digest, digestJson, RollbookError, reasonOf } from "../../../base/index.ts";
import type { Agent, Payload, RolloutContext } from "./agent.ts";
import { errorFirst } from "./error-line.ts";
import { failedBy } from "./failure.ts";
import { lineSplitter } from "./pool/index.ts";

const REQUEST_SCHEMA = "rollbook.executor-request.v1";
/** A result is a few numbers and a final state. Larger data belongs in the agent's own storage. */
const MAX_RESULT_BYTES = 16 * 1024 * 1024;
const MAX_STDERR_TAIL = 2_000;
const MAX_LOG_CHARS = 16 * 1024;
const KILL_AFTER_MS = 1_000;

/** Builds the request for programs and servers alike. Seeds are decimal text: JSON numbers are exact up to 2^53. */
function requestOf(payload: Payload, context: RolloutContext) {
  const { rolloutId, sample, attempt, seed, rolloutConfig } = context;
  return {
    schema: REQUEST_SCHEMA,
    payload,
    rollout_config: rolloutConfig,
    rollout: { id: rolloutId, sample, attempt, seed: String(seed) },
  };
}

export function programAgent(options: {
  readonly argv: readonly string[];
  readonly digest: Digest;
  readonly name: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}): Agent {
  const { argv, digest, name, cwd, env = process.env } = options;
  if (argv[0] === undefined)
    throw new RollbookError("bad-agent", { name }, "a program needs a command line.");
  return {
    name,
    digest,
    async run(payload, context) {
      const child = spawn(argv[0]!, argv.slice(1), {
        ...(cwd === undefined ? {} : { cwd }),
        env: { ...env, ...environmentOf(context) },
        detached: true,
        stdio: ["pipe", "pipe", "pipe"],
      });
      return converse(child, { name, request: JSON.stringify(requestOf(payload, context)), context });
    },
  };
}

/** POSTs the request to `url`. The server answers when the rollout is over. */
export function serverAgent(url: string): Agent {
  return {
    name: url,
    digest: digestJson("rollbook.agent-url.v1", url),
    async run(payload, context) {
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(requestOf(payload, context)),
        signal: context.signal,
      }).catch((cause: unknown) => {
        throw failedBy(
          "infrastructure",
          `${url} cannot be reached: ${reasonOf(cause)}. Start the server of the agent, or correct its URL.`,
          { cause },
        );
      });
      const text = await response.text();
      if (!response.ok) throw failedBy("agent", `${url} answered ${response.status}: ${text.slice(0, 500)}`);
      return parseResult(text, url);
    },
  };
}

/** Environment variables that model SDKs read by themselves, so that an unchanged agent calls the gateway. A model server
 *  without a gateway speaks OpenAI's formats, and the program has its own keys. */
function environmentOf({ rolloutId, seed, baseUrl, apiKey }: RolloutContext): Record<string, string> {
  return {
    ROLLBOOK_ROLLOUT_ID: rolloutId,
    ROLLBOOK_SEED: String(seed),
    ...(baseUrl === undefined ? {} : { OPENAI_BASE_URL: baseUrl }),
    ...(baseUrl === undefined || apiKey === undefined
      ? {}
      : {
          OPENAI_API_KEY: apiKey,
          ...{ ANTHROPIC_BASE_URL: baseUrl.replace(/\/v1\/?$/, ""), ANTHROPIC_API_KEY: apiKey },
        }),
  };
}

async function converse(
  child: ChildProcess,
  { name, request, context }: { name: string; request: string; context: RolloutContext },
): Promise<unknown> {
  const stdout: Buffer[] = [];
  let size = 0;
  let tail = "";
  child.stdout!.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_RESULT_BYTES) stdout.push(chunk);
    else killGroup(child, "SIGKILL");
  });
  const lines = lineSplitter((line) => line.trim() !== "" && context.log(line.trimEnd()), {
    most: MAX_LOG_CHARS,
  });
  child.stderr!.setEncoding("utf8").on("data", (chunk: string) => {
    tail = (tail + chunk).slice(-MAX_STDERR_TAIL);
    lines.push(chunk);
  });
  child.stderr!.on("end", () => lines.end());
  // A program that never reads its request closes the pipe early. Its exit code then reports the failure.
  child.stdin!.on("error", () => {});
  child.stdin!.end(request);
  const { code, signal } = await ended(child, context.signal);
  if (context.signal.aborted) throw context.signal.reason;
  if (size > MAX_RESULT_BYTES)
    throw failedBy("agent", `its output is larger than ${MAX_RESULT_BYTES} bytes.`);
  if (code !== 0)
    throw failedBy("agent", `it exited with ${signal ?? code}: ${errorFirst(tail) || "no word on stderr"}`);
  return parseResult(Buffer.concat(stdout).toString(), name);
}

/** Resolves after the program has ended and its process group has been killed. */
function ended(
  child: ChildProcess,
  stop: AbortSignal,
): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  let timer: NodeJS.Timeout | undefined;
  const onStop = () => {
    killGroup(child, "SIGTERM");
    timer = setTimeout(() => {
      killGroup(child, "SIGKILL");
      // A program outside of the group may hold the output open forever. The "close" event would then never come.
      for (const stream of child.stdio) stream?.destroy();
    }, KILL_AFTER_MS);
  };
  if (stop.aborted) onStop();
  else stop.addEventListener("abort", onStop, { once: true });
  const release = () => {
    clearTimeout(timer);
    stop.removeEventListener("abort", onStop);
  };
  return new Promise((resolve, reject) => {
    child.once("error", (cause) => {
      release();
      reject(failedBy("infrastructure", `the program cannot be started: ${reasonOf(cause)}.`, { cause }));
    });
    child.once("close", (code, signal) => {
      release();
      killGroup(child, "SIGKILL"); // kills children that are still running
      resolve({ code, signal });
    });
  });
}

/** A negative pid names the whole group. A group that has already ended is not an error. */
function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Parses the whole text, else its last line that is not empty: earlier lines are messages for people. */
function parseResult(text: string, who: string): unknown {
  const line = text.trimEnd().split("\n").at(-1)!.trim();
  const whole = text.trim();
  for (const candidate of [whole, line]) {
    try {
      return JSON.parse(candidate);
    } catch {
      // Try the next form. If both fail, throw the error below.
    }
  }
  if (whole === "")
    throw failedBy("agent", `${who} gave no result.${missingCall(who)} See docs/reference/executor.md.`);
  throw failedBy(
    "agent",
    `${who} gave no JSON result but ${JSON.stringify(line.slice(0, 200))}. See docs/reference/executor.md.`,
  );
}

/** The most common cause, for programs that use the Python package. */
function missingCall(who: string): string {
  return who.endsWith(".py")
    ? " A file with an @executor function ends with a call of its run(), for example `agent.run()`."
    : " A program prints its result as one line of JSON on stdout.";
}
