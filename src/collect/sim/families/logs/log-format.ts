/** Formats of log lines, for writing and reading: several formats of one kind of entry.
 *  Generator and reference share the patterns. The named groups are the fields of an entry. */
import type { Rng } from "../../../../base/index.ts";
import { between, pick } from "../family.ts";
import { defineOp, type Op } from "../pipeline/index.ts";
import type { JsonRecord, Schema } from "../records/index.ts";

export const LOG_SCHEMA: Schema = {
  noun: "entry",
  plural: "entries",
  key: "time",
  numbers: [
    { name: "ms", low: 1, high: 900 },
    { name: "bytes", low: 1, high: 5000, mayMiss: true },
  ],
  labels: [
    { name: "user", values: ["ann", "bob", "cyd", "dan"] },
    { name: "service", values: ["auth", "cart", "mail"] },
    { name: "level", values: ["INFO", "WARN", "ERROR"] },
    { name: "event", values: ["login", "logout", "fail", "read", "write"] },
  ],
  flags: [],
};

interface Format {
  /** Without anchors: a careless solution forgets `^` and `$`. */
  readonly pattern: string;
  write(entry: Entry): string;
}

interface Entry {
  readonly clock: string;
  readonly user: string;
  readonly service: string;
  readonly level: string;
  readonly event: string;
  readonly ms: number;
  readonly bytes: string;
}

const CLOCK = "(?<h>\\d\\d):(?<m>\\d\\d):(?<s>\\d\\d)";
const FORMATS: readonly Format[] = [
  {
    pattern: `${CLOCK} (?<level>[A-Z]+) (?<service>\\w+): (?<user>\\w+) (?<event>\\w+) in (?<ms>\\d+)ms, (?<bytes>\\d+|-) bytes`,
    write: (e) => `${e.clock} ${e.level} ${e.service}: ${e.user} ${e.event} in ${e.ms}ms, ${e.bytes} bytes`,
  },
  {
    pattern: `\\[${CLOCK}\\] (?<service>\\w+)/(?<level>[A-Z]+) user=(?<user>\\w+) event=(?<event>\\w+) ms=(?<ms>\\d+) bytes=(?<bytes>\\d+|-)`,
    write: (e) =>
      `[${e.clock}] ${e.service}/${e.level} user=${e.user} event=${e.event} ms=${e.ms} bytes=${e.bytes}`,
  },
  {
    pattern: `(?<level>[A-Z]+);${CLOCK};(?<user>\\w+);(?<service>\\w+);(?<event>\\w+);(?<bytes>\\d+|-);(?<ms>\\d+)`,
    write: (e) => `${e.level};${e.clock};${e.user};${e.service};${e.event};${e.bytes};${e.ms}`,
  },
  {
    pattern: `(?<service>\\w+) <(?<level>[A-Z]+)> (?<event>\\w+)@${CLOCK} by (?<user>\\w+) took (?<ms>\\d+) sent (?<bytes>\\d+|-)`,
    write: (e) => `${e.service} <${e.level}> ${e.event}@${e.clock} by ${e.user} took ${e.ms} sent ${e.bytes}`,
  },
];
export const FORMAT_COUNT = FORMATS.length;

/** Entries in order of time. With `dirty`, some lines are blank, cut or followed by noise; such lines do not count. */
export function drawLog(
  rng: Rng,
  format: number,
  { count, dirty }: { count: number; dirty: boolean },
): string {
  const { write } = FORMATS[format]!;
  const value = (name: string) => pick(rng, LOG_SCHEMA.labels.find((label) => label.name === name)!.values);
  const lines: string[] = [];
  let time = between(rng, 6, 20) * 3600;
  for (let i = 0; i < count; i++) {
    time += pick(rng, [0, 1, 2, 5, 9, 20, 40, 75, 130]);
    const line = write({
      clock: clockOf(time),
      user: value("user"),
      service: value("service"),
      level: value("level"),
      event: value("event"),
      ms: between(rng, 1, 900),
      bytes: rng.below(4) === 0 ? "-" : String(between(rng, 1, 5000)),
    });
    const noise = dirty ? rng.below(6) : 9;
    lines.push(line);
    if (noise === 0) lines.push("");
    if (noise === 1)
      lines.push(
        `${write({ clock: clockOf(time), user: "eve", service: "auth", level: "ERROR", event: "fail", ms: 999, bytes: "7" })} (repeated)`,
      );
    if (noise === 2) lines.push(line.slice(0, line.length - 6));
  }
  return lines.join("\n") + (rng.below(2) === 0 ? "\n" : "");
}

export function clockOf(seconds: number): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${two(Math.floor(seconds / 3600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

export function parseOp(format: number): Op {
  const { pattern } = FORMATS[format]!;
  return defineOp({
    name: "parse",
    from: "text",
    to: "records",
    level: 1,
    draw: () => ({ whole: true, seconds: true, header: false }),
    apply: (v: string, { whole, seconds, header }) => {
      const line = new RegExp(whole ? `^${pattern}$` : pattern);
      return v
        .split("\n")
        .slice(header ? 1 : 0)
        .flatMap((text): JsonRecord[] => {
          const g = text.match(line)?.groups;
          if (g === undefined) return [];
          const time = Number(g.h) * 3600 + Number(g.m) * 60 + (seconds ? Number(g.s) : 0);
          const bytes = g.bytes === "-" ? {} : { bytes: Number(g.bytes) };
          return [
            {
              time,
              user: g.user!,
              service: g.service!,
              level: g.level!,
              event: g.event!,
              ms: Number(g.ms),
              ...bytes,
            },
          ];
        });
    },
    javascript: ({ header }) => `@.split("\\n")${header ? ".slice(1)" : ""}.flatMap(parseLine)`,
    helper: ({ whole, seconds }) => ({
      javascript: `const LINE = /${whole ? "^" : ""}${pattern.replaceAll("/", "\\/")}${whole ? "$" : ""}/;

function parseLine(line) {
  const found = line.match(LINE);
  if (found === null) return [];
  const g = found.groups;
  const entry = {
    time: Number(g.h) * 3600 + Number(g.m) * 60${seconds ? " + Number(g.s)" : ""},
    user: g.user,
    service: g.service,
    level: g.level,
    event: g.event,
    ms: Number(g.ms),
  };
  if (g.bytes !== "-") entry.bytes = Number(g.bytes);
  return [entry];
}`,
    }),
    say: () => [
      "read the entries; a line that does not have exactly the form of the sample is no entry and is ignored",
      "parse the text line by line, skipping whatever is not a complete, regular entry (blank, cut or with something after it)",
    ],
    slips: () => ({
      "accepts lines with something around the entry": { whole: false },
      "forgets the seconds": { seconds: false },
      "skips the first line as if it were a header": { header: true },
    }),
  });
}
