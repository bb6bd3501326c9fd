/** The only error class: a code for programs, fields for logs, and a message with the failure and the remedy. */
export class RollbookError<Code extends string = string> extends Error {
  override readonly name = "RollbookError";
  readonly code: Code;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(
    code: Code,
    fields: Readonly<Record<string, unknown>>,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.fields = Object.freeze({ ...fields });
  }

  /** Machine-readable form, used by `--json` and by receipts. A bigint becomes a decimal string, as in every record. */
  toJSON(): { code: Code; message: string; fields: Readonly<Record<string, unknown>> } {
    const fields = Object.entries(this.fields).map(([name, value]) => [
      name,
      typeof value === "bigint" ? String(value) : value,
    ]);
    return { code: this.code, message: this.message, fields: Object.fromEntries(fields) };
  }
}

export function isRollbookError(error: unknown, code?: string): error is RollbookError {
  return error instanceof RollbookError && (code === undefined || error.code === code);
}

/** Adds a full stop unless the text already ends with `.`, `?` or `!`. */
export function asSentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`;
}

/** Faults one after another. The first continues a line of the caller, each other is a sentence. */
export function joinFaults([first = "", ...others]: readonly string[]): string {
  return others.reduce(
    (text, each) => `${asSentence(text)} ${each[0]!.toUpperCase()}${each.slice(1)}`,
    first,
  );
}

/** A fault and the next step. Below a list of faults, the next step has a line of its own. */
export function withRemedy(fault: string, remedy: string): string {
  return `${asSentence(fault)}${fault.includes("\n") ? "\n" : " "}${remedy}`;
}

/** Text of any thrown value, for messages that wrap a foreign error. The foreign error also travels as `cause`. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The message of a failed `fetch` gives no reason. Its cause names the refused connection or the unknown host.
  const { cause } = error;
  if (error.message !== "fetch failed" || !(cause instanceof Error)) return error.message;
  return cause.message || String((cause as { code?: unknown }).code ?? error.message);
}

/** Reason why a file could not be read: words for the common error codes, else the text of the error. */
export function fileReason(error: unknown): string {
  const { code } = error as { code?: unknown };
  return (typeof code === "string" ? FILE_REASONS[code] : undefined) ?? reasonOf(error);
}

const FILE_REASONS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of its path is a file",
  EACCES: "this user may not read it",
};
