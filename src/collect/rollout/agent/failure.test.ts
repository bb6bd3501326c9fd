import OpenAI from "openai";
import { expect, it } from "vitest";
import { endingOfError } from "./failure.ts";

const replied = (status: number, code: string) =>
  OpenAI.APIError.generate(
    status,
    { error: { code, message: "said by the gateway" } },
    undefined,
    new Headers(),
  );

it.each(["owner-away", "cannot-record"])("a gateway that answers 503 %s is no fault of the agent", (code) => {
  expect(endingOfError(replied(503, code))).toMatchObject({ kind: "failed", owner: "infrastructure" });
});

it("another 503, which no gateway of ours marked, is the agent's own business", () => {
  expect(endingOfError(replied(503, "overloaded"))).toMatchObject({ kind: "failed", owner: "agent" });
});
