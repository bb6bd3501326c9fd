/** An answer of the gateway instead of a model's: a status, a code, and a header that permits or forbids a retry. */
import { RollbookError } from "../../../base/index.ts";

export class HttpRefusal extends RollbookError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    options: {
      retry?: boolean;
      headers?: Readonly<Record<string, string>>;
      fields?: Readonly<Record<string, unknown>>;
      cause?: unknown;
    } = {},
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
      ...options.headers,
      // The SDKs of OpenAI and Anthropic both obey this header.
      ...(options.retry === true ? {} : { "x-should-retry": "false" }),
    };
  }
}

/** Error codes of failed writes to the disk, or to the bucket of the book. */
const DISK_CODES: ReadonlySet<string> = new Set([
  ...["write-failed", "session-failed", "log-failed", "sqlite", "sealing-died", "sealing-broken"],
  ...["bucket-failed", "session-replaced"],
]);

export function isDiskFailure(error: unknown): error is RollbookError {
  return error instanceof RollbookError && DISK_CODES.has(error.code);
}

/** The gateway gives no answer that it cannot record. */
export function cannotRecord(cause?: unknown): HttpRefusal {
  return new HttpRefusal(
    503,
    "cannot-record",
    "the disk of the gateway does not take what has to be recorded; its log says why.",
    { retry: true, cause },
  );
}
