/** Opens a sandbox, starts a program that would sleep for minutes, says so, and waits to be killed.
 *  Run as a process of its own: `abandon-sandbox.ts ENGINE [SOCKET]`. */
import { openEngine } from "../../src/collect/sandbox/open.ts";
import { openPool } from "../../src/collect/sandbox/pool.ts";
import type { EngineName } from "../../src/collect/sandbox/sandbox.ts";

const [engineName, socketPath] = process.argv.slice(2);
const engine = await openEngine(engineName as EngineName, socketPath === undefined ? {} : { socketPath });
const pool = await openPool(engine, 2);
const sleeping = pool.exec({ kind: "command", argv: ["sleep", "587"] }, {}, { timeoutMs: 600_000 });
setTimeout(() => console.log("abandoned"), 1_500);
await sleeping;
