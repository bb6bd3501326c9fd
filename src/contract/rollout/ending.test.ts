import { describe, expect, test } from "vitest";
import { type Ending, outsideBaseline } from "./ending.ts";

describe("endings", () => {
  test("an agent's failure and a truncation are results; what others broke is not", () => {
    const failed = (owner: "agent" | "task" | "provider" | "sandbox" | "infrastructure"): Ending => ({
      kind: "failed",
      owner,
      message: "",
    });
    expect(outsideBaseline({ kind: "terminal" })).toBeUndefined();
    expect(outsideBaseline({ kind: "truncated", limit: "tokens" })).toBeUndefined();
    expect(outsideBaseline(failed("agent"))).toBeUndefined();
    expect(outsideBaseline(failed("provider"))).toBe("failed-provider");
    expect(outsideBaseline(failed("sandbox"))).toBe("failed-sandbox");
    expect(outsideBaseline(failed("infrastructure"))).toBe("failed-infrastructure");
    expect(outsideBaseline(failed("task"))).toBe("failed-task");
    expect(outsideBaseline({ kind: "cancelled" })).toBe("cancelled");
  });
});
