import { describe, expect, it } from "vitest";
import type { RequestFacts } from "../dialects/index.ts";
import type { Target } from "../upstream/index.ts";
import { rewrittenBody } from "./outgoing.ts";

/** Body that the upstream gets, if the client sends these fields and the model captures those. */
function sent(parameters: Record<string, unknown>, fields: Record<string, unknown>) {
  const body = Buffer.from(JSON.stringify({ model: "m", ...parameters }));
  const request = { model: "m", stream: false, parameters } as unknown as RequestFacts;
  const target = { model: "m", capture: { fields } } as unknown as Target;
  const out = rewrittenBody(body, request, { text: body.toString(), dialect: "openai-chat", target });
  return out === undefined ? "unchanged" : (JSON.parse(out.toString()) as unknown);
}

describe("captured fields of a request", () => {
  const options = { stream_options: { include_usage: true } };

  it("are added to an object of the client, whose other fields stay", () => {
    const asked = { stream_options: { continuous_usage_stats: true, include_usage: false } };
    expect(sent(asked, options)).toEqual({
      model: "m",
      stream_options: { continuous_usage_stats: true, include_usage: true },
    });
  });

  it("replace false and null, and no other value of the client", () => {
    for (const stream_options of [undefined, null, false])
      expect(sent({ stream_options }, options)).toEqual({ model: "m", ...options });
    expect(sent({ logprobs: 5 }, { logprobs: 1 })).toBe("unchanged");
    const more = { stream_options: { ...options.stream_options, continuous_usage_stats: true } };
    expect(sent(more, options)).toBe("unchanged");
  });
});
