import { sandboxContract } from "../sandbox.contract.ts";
import { openQuickjs } from "./engine.ts";

sandboxContract("QuickJS", {
  open: openQuickjs,
  covers: [
    ...(["write-outside", "host-files", "network", "environment"] as const),
    ...(["memory", "time", "output", "scratch", "leftovers"] as const),
  ],
});
