/** Attacks of an agent on its own process, as code of its rollout. For the tests of the pool and for the campaign. */

/** Runs the code in its payload, as an untrusted agent would. */
export const OBEDIENT = `
import * as fs from "node:fs";
export default async function run({ code }, context) {
  const result = await new Function("context", "fs", "return (async () => {" + code + "})()")(context, fs);
  return result;
}`;

/** Each misdeed ends the rollout as the agent's failure, and ends only its own process. */
export const MISDEEDS: Readonly<Record<string, string>> = {
  "exits with 0": "process.exit(0)",
  "exits with 7": "process.exit(7)",
  "exits later, while it waits": "setTimeout(() => process.exit(0), 5); await new Promise(() => {})",
  "exits without a word": "process.reallyExit(0)",
  "kills itself": "process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})",
  aborts: "process.abort()",
  "leaves a rejection floating": "Promise.reject(new Error('floating')); return 1",
  "leaves a rejection floating for a while":
    "setTimeout(() => Promise.reject(1), 1); await new Promise(() => {})",
  "throws in a callback": "setTimeout(() => { throw new Error('later') }, 1); await new Promise(() => {})",
  "throws a proxy":
    "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 }, has() { throw 1 }, ownKeys() { throw 1 } })",
  "throws a revoked proxy": "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); throw proxy",
  "throws an error with a hostile message":
    "throw Object.defineProperty(new Error(), 'message', { get() { throw 1 } })",
  "throws an error whose cause is itself":
    "const error = new Error('ring'); error.cause = error; throw error",
  "throws nothing": "throw undefined",
  "throws a symbol": "throw Symbol('x')",
  "rejects with a promise of a proxy": "await Promise.reject(Promise.resolve(new Proxy({}, {})))",
  "returns a function": "return { finalState: () => 1 }",
  "returns a ring": "const ring = {}; ring.ring = ring; return { finalState: ring }",
  "returns a value that throws when read": "return { get reward() { throw new Error('no') } }",
  "returns a hostile proxy": "return new Proxy({}, { ownKeys() { throw new Error('no') } })",
  "returns far too much": "return { finalState: 'x'.repeat(17 * 1024 * 1024) }",
  "writes nonsense to the launcher": "fs.writeSync(3, 'nonsense\\n'); await new Promise(() => {})",
  "writes to the launcher without end":
    "const page = 'x'.repeat(1 << 16); const write = () => { try { fs.writeSync(3, page) } catch {} }; for (;;) write()",
  "answers with an ending that only signals give": `
    fs.writeSync(3, JSON.stringify({ kind: "threw", id: 1e9, ending: { kind: "cancelled" } }) + "\\n"); await new Promise(() => {})`,
  "closes its descriptors":
    "for (let fd = 3; fd < 30; fd++) try { fs.closeSync(fd) } catch {}\nprocess.exit(0)",
  "leaves a program behind that holds its output": `
    process.getBuiltinModule("node:child_process").spawn("sleep", ["60"], { detached: true, stdio: "inherit" });
    process.exit(0)`,
  spins: "for (;;) {}",
  "spins in microtasks": "const spin = async () => { for (;;) await null }; await spin()",
  "spins in a regular expression": "/^(a+)+$/.test('a'.repeat(60) + 'b')",
  "ignores its signal": "process.on('SIGTERM', () => {}); await new Promise((r) => setTimeout(r, 1e9))",
};
