/** A book of groups of token rollouts, and a token batch of them. */
import { type Cli, lines } from "./cli.ts";
import { handedRecords } from "./handover-world.ts";

export async function handedBook(
  cli: Cli,
  options: Parameters<typeof handedRecords>[0] & { cut?: string } = {},
): Promise<string> {
  await cli.ok("init");
  await cli.ok("artifact import -", lines(...handedRecords(options)));
  const [{ digest }] = await cli.json(`batch assemble --target policy-r2 --level token${options.cut ?? ""}`);
  return digest as string;
}
