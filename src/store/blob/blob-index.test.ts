import { expect, it } from "vitest";
import { type Digest, digestJson, rngFrom } from "../../base/index.ts";
import { BlobIndex, type BlobPlace } from "./blob-index.ts";

it("answers as a Map does, through growth and overwriting, in at most 60 bytes a blob", () => {
  const rng = rngFrom(5);
  const index = new BlobIndex();
  const model = new Map<Digest, BlobPlace>();
  for (let i = 0; i < 60_000; i++) {
    const digest = digestJson("test", rng.below(50_000));
    const place = {
      file: rng.below(2 ** 16),
      offset: rng.below(2 ** 32) * 8,
      bytes: rng.below(2 ** 19) * 8,
      large: rng.below(2) === 1,
    };
    index.set(digest, place);
    model.set(digest, place);
  }
  expect(index.size).toBe(model.size);
  for (const [digest, place] of model) expect(index.get(digest)).toEqual(place);
  for (let i = 50_000; i < 51_000; i++) expect(index.has(digestJson("test", i))).toBe(false);
  expect(index.byteLength / index.size).toBeLessThan(60);
  index.clear();
  expect(index.get(model.keys().next().value!)).toBeUndefined();
});
