/** `npm run bench` lists the benchmarks; `npm run bench -- NAME [its flags] [--json]` runs bench/NAME.ts. */
import { command, list } from "./support/command.ts";
import { benches } from "./support/programs.ts";

await command(async () => {
  const [name, ...args] = process.argv.slice(2);
  if (name === undefined || name === "--json") await list(benches, name === "--json");
  else await (await benches.load(name)).run(args);
  return 0;
});
