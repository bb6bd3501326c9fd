/** Prints refused lines of an import only once for each reason.
 *  In: errors whose message begins with their line, `FILE:LINE: `. Out: the first error of each reason at once, and at
 *  the end the other lines of the same reason. */
import { plural, type RollbookError } from "../base/index.ts";
import { printable, renderError } from "../view/format.ts";

interface RefusalLog {
  tell(error: RollbookError): void;
  end(): void;
}

/** Maximum number of lines listed for one reason; the others are counted. */
const NAMED_LINES = 5;
/** Maximum number of printed reasons; errors of other reasons are counted together. */
const MOST_REASONS = 100;

export function tellRefusalsOnce(print: (text: string) => void): RefusalLog {
  const reasons = new Map<string, { readonly first: string; readonly named: string[]; count: number }>();
  let more = 0;
  return {
    tell(error) {
      const [, line = "", reason = error.message] = /^(.*?:\d+): (.*)$/s.exec(error.message) ?? [];
      const known = reasons.get(reason);
      if (known !== undefined) {
        known.count++;
        if (known.named.length < NAMED_LINES) known.named.push(line);
      } else if (reasons.size >= MOST_REASONS) more++;
      else {
        reasons.set(reason, { first: line, named: [], count: 0 });
        print(renderError(error, { json: false, debug: false }));
      }
    },
    end() {
      for (const { first, named, count } of reasons.values()) {
        if (count === 0) continue;
        const others = count > named.length ? " and others" : "";
        print(
          `the same fault as ${printable(first)} in ${plural(count, "more line")}: ${printable(named.join(", "))}${others}\n`,
        );
      }
      if (more > 0) print(`… and ${plural(more, "error")} more\n`);
    },
  };
}
