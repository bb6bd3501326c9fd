#!/usr/bin/env node
/** The `rollbook` command. */
import { processIo } from "./io.ts";
import { run } from "./run.ts";

process.exitCode = await run(process.argv.slice(2), processIo());
