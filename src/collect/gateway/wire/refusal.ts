/** What the gateway itself answers instead of a model: a status, a code, and whether trying again can help. */
import { RollbookError } from "../../../base/index.ts";

export class HttpRefusal extends RollbookError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    options: { retry?: boolean; fields?: Readonly<Record<string, unknown>>; cause?: unknown } = {},
  ) {
    super(
      code,
      options.fields ?? {},
      message,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.status = status;
    this.headers = {
      "x-rollbook-refusal": code,
      // The SDKs of OpenAI and Anthropic both obey this header.
      ...(options.retry === true ? {} : { "x-should-retry": "false" }),
    };
  }
}

/** How it reaches the gateway that something does not get onto the disk, or into the bucket of the book. */
const DISK_CODES: ReadonlySet<string> = new Set([
  ...["write-failed", "session-failed", "log-failed", "sqlite", "sealing-died", "sealing-broken"],
  ...["bucket-failed", "session-replaced"],
]);

export function isDiskFailure(error: unknown): error is RollbookError {
  return error instanceof RollbookError && DISK_CODES.has(error.code);
}

/** Nothing is answered that cannot be recorded. */
export function cannotRecord(cause?: unknown): HttpRefusal {
  return new HttpRefusal(
    503,
    "cannot-record",
    "the disk of the gateway does not take what has to be recorded; its log says why.",
    { retry: true, cause },
  );
}
