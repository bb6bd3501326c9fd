/** Implements `rollbook feedback`: adds an outcome to a rollout or one of its calls, at any time, in a book or at a
 *  running gateway. */
import type { Command } from "commander";
import { addFeedback, sendFeedback } from "../../book/rollouts/index.ts";
import { jsonLine } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { finite, wholeNumber } from "../options/numbers.ts";
import { gatewayToken } from "../options/run-options.ts";
import { type BookFlags, withBook } from "../with-book.ts";

interface FeedbackFlags extends BookFlags {
  name: string;
  value: number;
  call?: number;
  key?: string;
  source: string;
  gateway?: string;
  gatewayTokenEnv?: string;
}

export function addFeedbackCommand(program: Command, io: Io): void {
  addCommand(program, "feedback", {
    summary: "add an outcome to a rollout or to one of its calls",
    description: `Add an outcome to a rollout or to one of its calls, at any time. The outcome is a separate record;
the artifact does not change. \`batch assemble --feedback NAME\` uses it as a reward. Outcomes with the same
key count once: the first one counts, and another value is refused. With --gateway the rollout may still be open.`,
    examples: [
      "rollbook feedback r-0001 --name solved --value 1",
      "rollbook feedback r-0001.0 --name helpful --value 0.5 --key ticket-17",
    ],
  })
    .argument(
      "<rollout>",
      "rollout id, or <rollout>.<number> for a call; without --gateway also the first digits of a digest",
    )
    .requiredOption("--name <name>", "name of the outcome, such as solved")
    .requiredOption("--value <number>", "value of the outcome", finite)
    .option("--call <n>", "number of the call, from 0 (default: the whole rollout)", wholeNumber)
    .option("--key <key>", "idempotency key: outcomes with the same key count once (default: the name)")
    .option("--source <text>", "who or what reports the outcome", "feedback")
    .option("--gateway <url>", "URL of a gateway to send it to (default: write it to the book)")
    .option(
      "--gateway-token-env <name>",
      "the environment variable with the gateway's token (default: no token)",
    )
    .action(async (rollout: string, flags: FeedbackFlags) => {
      const { gateway: url, gatewayTokenEnv, name, value, call, key, source } = flags;
      const outcome = { rollout, name, value, call, key, source };
      const sent = (place: Parameters<typeof sendFeedback>[0]) =>
        flags.book === undefined
          ? sendFeedback(place, outcome)
          : withBook(io, flags, ({ store }) => sendFeedback(place, outcome, { book: store }));
      const told =
        url === undefined
          ? await withBook(io, { ...flags, mode: "write" }, (book) => addFeedback(book, outcome))
          : await sent({ url, ...gatewayToken(io, gatewayTokenEnv) });
      io.out(flags.json ? jsonLine(told) : `${told.added ? "added" : "there already"}\n`);
    });
}
