/** Opens a sandbox, starts a program that sleeps for minutes, and waits to be killed. Runs as its own process:
 *  `abandon-sandbox.ts SECONDS ENGINE [SOCKET]`. */
import { openEngine } from "../../src/collect/sandbox/open.ts";
import { openPool } from "../../src/collect/sandbox/pool.ts";
import type { EngineName } from "../../src/collect/sandbox/sandbox.ts";

const [seconds, engineName, socketPath] = process.argv.slice(2);
const engine = await openEngine(engineName as EngineName, socketPath === undefined ? {} : { socketPath });
const pool = await openPool(engine, 2);
await pool.exec({ kind: "command", argv: ["sleep", seconds!] }, {}, { timeoutMs: 600_000 });
