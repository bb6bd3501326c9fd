import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { ChainSet } from "./chain-set.ts";

const digest = (n: number) => createHash("sha256").update(String(n)).digest();

it("streams of one content are different chains, and each is new once", () => {
  const set = new ChainSet();
  const bytes = Buffer.concat([digest(1), digest(2)]);
  for (let stream = 0; stream < 1000; stream++) expect(set.add(bytes, stream, 32)).toBe(true);
  for (let stream = 0; stream < 1000; stream++) expect(set.add(digest(2), stream)).toBe(false);
  expect(set.add(digest(1), 0)).toBe(true);
});
