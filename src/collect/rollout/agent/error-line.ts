/** Formats the output of a failed program with its error first, because summaries show only the first line.
 *  In: the end of its stderr. Out: the line that names the error, then the whole text. */

const TRACEBACK = "Traceback (most recent call last):";
/** Matches `TypeError: no`, `SyntaxError [ERR_X]: no`, `json.decoder.JSONDecodeError: no`. */
const ERROR = /^(Uncaught )?[\w.]*(Error|Exception)\b[^:]*: /;

export function errorFirst(stderr: string): string {
  const whole = stderr.trim();
  const line = errorLine(whole.split("\n"));
  return line === undefined || whole.startsWith(line) ? whole : `${line}\n${whole}`;
}

/** Python prints the error after the last traceback, without indentation. Node prints it above the stack. */
function errorLine(lines: readonly string[]): string | undefined {
  const begun = lines.lastIndexOf(TRACEBACK);
  if (begun >= 0) return lines.slice(begun + 1).find((line) => /^\S/.test(line));
  return lines.find((line) => ERROR.test(line));
}
