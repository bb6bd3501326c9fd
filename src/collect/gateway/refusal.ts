/** What the gateway itself answers instead of a model: a status, a code, and whether trying again can help. */
import { RollbookError } from "../../base/errors.ts";

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
    // The SDKs of OpenAI and Anthropic both obey this header.
    this.headers = options.retry === true ? {} : { "x-should-retry": "false" };
  }
}
