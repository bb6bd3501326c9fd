import { expect, it } from "vitest";
import { mapBucket } from "../../../test/support/map-bucket.ts";
import { requireConditions } from "./conditions.ts";

it.each(["If-None-Match", "If-Match"] as const)(
  "a server that ignores %s is refused, and the probe is removed",
  async (ignored) => {
    const objects = new Map<string, Uint8Array>();
    const probed = requireConditions(mapBucket(objects, [ignored]), "probe");
    await expect(probed).rejects.toMatchObject({
      code: "unconditional-bucket",
      fields: { condition: ignored },
    });
    expect(objects.size).toBe(0);
  },
);

it("a server that honours both passes, and the probe is removed", async () => {
  const objects = new Map<string, Uint8Array>();
  await requireConditions(mapBucket(objects, []), "probe");
  expect(objects.size).toBe(0);
});
