/** Prints failed attempts and tracebacks of Python agents only once.
 *  In: lines of a log, `rollout: text`. Out: the same lines; a repeated failure or traceback is only counted. Other
 *  lines pass at once. */
import { plural } from "../base/index.ts";

interface FailureLog {
  log(line: string): void;
  /** Prints the counts, and incomplete tracebacks. */
  end(): void;
}

const BEGIN = "Traceback (most recent call last):";
/** Form in which `run-claim.ts` logs an attempt. */
const ATTEMPT = /^attempt \d+ (failed by .*)$/s;
/** Seconds to wait, and the run number of a rollout: they vary between equal failures. */
const VARYING = /\b\d+ m?s\b|\.run-\d+\b/g;
/** Maximum number of different failures that are remembered. */
const MOST_KINDS = 1_000;

/** Length of a shortened line: the whole line was printed before. */
const BRIEF = 120;
const brief = (line: string) => (line.length > BRIEF ? `${line.slice(0, BRIEF)}…` : line);

/** One rollout may fail in several attempts, so attempts are counted and their numbers are left out. */
function alike(count: number, { first, last }: { first: string; last: string }): string {
  const [, failure] = ATTEMPT.exec(last) ?? [];
  if (failure === undefined) return `${count} more like that of ${first}: ${brief(last)}`;
  return `${plural(count, "more attempt")} ${brief(failure).replace(/^failed by \w+/, `$&, like that of ${first}`)}`;
}

export function tellFailuresOnce(print: (line: string) => void): FailureLog {
  /** Lines of incomplete tracebacks, by rollout. */
  const begun = new Map<string, string[]>();
  const repeats = new Map<string, { readonly first: string; readonly last: string; count: number }>();
  const tell = (rollout: string, lines: readonly string[], key = lines.join("\n")) => {
    const known = repeats.get(key);
    if (known !== undefined) {
      known.count++;
      return;
    }
    if (repeats.size < MOST_KINDS) repeats.set(key, { first: rollout, last: lines.at(-1)!, count: 0 });
    for (const line of lines) print(`${rollout}: ${line}`);
  };
  return {
    log(line) {
      const [, rollout = "", text = line] = /^(\S+): (.*)$/s.exec(line) ?? [];
      const [, failure] = ATTEMPT.exec(text) ?? [];
      if (failure !== undefined) {
        tell(rollout, [text], failure.replaceAll(rollout, "").replace(VARYING, ""));
        return;
      }
      const lines = begun.get(rollout);
      if (lines === undefined && text !== BEGIN) {
        print(line);
        return;
      }
      if (lines === undefined) {
        begun.set(rollout, [text]);
        return;
      }
      lines.push(text);
      if (text.startsWith(" ")) return;
      begun.delete(rollout);
      tell(rollout, lines);
    },
    end() {
      for (const [rollout, lines] of begun) tell(rollout, lines);
      begun.clear();
      for (const { first, last, count } of repeats.values())
        if (count > 0) print(alike(count, { first, last }));
      repeats.clear();
    },
  };
}
