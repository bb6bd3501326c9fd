import OpenAI from "openai";
import { expect, it } from "vitest";
import { endingOfError } from "./failure.ts";

const replied = (status: number, code: string, headers: Record<string, string> = {}) =>
  OpenAI.APIError.generate(
    status,
    { error: { code, message: "said by the gateway" } },
    undefined,
    new Headers(headers),
  );

it.each(["owner-away", "cannot-record"])("a gateway that answers 503 %s is no fault of the agent", (code) => {
  const marked = replied(503, code, { "x-rollbook-refusal": code });
  expect(endingOfError(marked)).toMatchObject({ kind: "failed", owner: "infrastructure" });
  // The agent's own server may send the same reply.
  expect(endingOfError(replied(503, code))).toMatchObject({ kind: "failed", owner: "agent" });
});

it("another 503, which no gateway of ours marked, is the agent's own business", () => {
  expect(endingOfError(replied(503, "overloaded"))).toMatchObject({ kind: "failed", owner: "agent" });
});
