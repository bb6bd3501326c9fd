/** What a program that ended badly printed, with its error first: summaries show the first line alone. In: the end of its
 *  stderr. Out: the line that names the error, then all of it. */

const TRACEBACK = "Traceback (most recent call last):";
/** `TypeError: no`, `SyntaxError [ERR_X]: no`, `json.decoder.JSONDecodeError: no`. */
const ERROR = /^(Uncaught )?[\w.]*(Error|Exception)\b[^:]*: /;

export function errorFirst(stderr: string): string {
  const whole = stderr.trim();
  const line = errorLine(whole.split("\n"));
  return line === undefined || whole.startsWith(line) ? whole : `${line}\n${whole}`;
}

/** Python names the error after the last traceback, at the margin; Node above its stack. */
function errorLine(lines: readonly string[]): string | undefined {
  const begun = lines.lastIndexOf(TRACEBACK);
  if (begun >= 0) return lines.slice(begun + 1).find((line) => /^\S/.test(line));
  return lines.find((line) => ERROR.test(line));
}
