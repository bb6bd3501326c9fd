import { describe, it } from "vitest";
import { isRollbookError } from "../../../base/errors.ts";
import { sandboxContract } from "../sandbox.contract.ts";
import { openBubblewrap } from "./engine.ts";

const absence = whyAbsent();

if (absence === undefined) {
  sandboxContract("bubblewrap", {
    open: async () => openBubblewrap(),
    covers: [
      ...(["write-outside", "host-files", "network", "environment", "memory", "processes"] as const),
      ...(["time", "output", "scratch", "signals", "privilege", "leftovers"] as const),
    ],
  });
} else {
  describe("bubblewrap sandbox", () => {
    it.skip(`is absent here: ${absence}`, () => {});
  });
}

/** With ROLLBOOK_REQUIRE_ALL, as in continuous integration, absence is a failure. */
function whyAbsent(): string | undefined {
  if (process.env.ROLLBOOK_REQUIRE_ALL === "1") return undefined;
  try {
    openBubblewrap();
    return undefined;
  } catch (error) {
    if (!isRollbookError(error)) throw error;
    return error.message;
  }
}
