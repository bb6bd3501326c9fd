import { describe, expect, test } from "vitest";
import { d } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { rngFrom } from "../../base/rng.ts";
import { seal } from "../codec/record.ts";
import { Manifest, sealManifest } from "./manifest.ts";

const artifacts = ["a", "b", "c", "d"].map((name) => ({ content: d(name), envelope: d(`${name}-envelope`) }));

describe("manifests", () => {
  test("the order of arrival leaves no trace, and repeated digests are listed once", () => {
    const digests = new Set<string>();
    for (let seed = 0; seed < 10; seed++) {
      const rng = rngFrom(seed);
      const lists = { revisions: rng.shuffle([d("r1"), d("r2"), d("r1")]), verdicts: [d("v")] };
      digests.add(sealManifest({ artifacts: rng.shuffle([...artifacts]), ...lists }).digest);
    }
    expect(digests.size).toBe(1);
  });

  test("content and envelope are both bound", () => {
    const [first, ...rest] = artifacts;
    const other = [{ ...first!, envelope: d("another") }, ...rest];
    const seals = [artifacts, other].map((each) => sealManifest({ artifacts: each, revisions: [] }).digest);
    expect(seals[0]).not.toBe(seals[1]);
  });

  test("unsorted lists are refused on reading", () => {
    const { schema: _, ...sorted } = sealManifest({ artifacts, revisions: [d("r1"), d("r2")] }).record;
    for (const over of [
      { artifacts: [...sorted.artifacts].reverse() },
      { revisions: [...sorted.revisions].reverse() },
      { feedback: [d("x"), d("x")] },
    ])
      expect(refusalOf(() => seal(Manifest, { ...sorted, ...over })).code).toBe("bad-record");
  });

  test("everything listed is referred to, with its kind", () => {
    const { record } = sealManifest({
      artifacts: artifacts.slice(0, 1),
      revisions: [d("r")],
      verdicts: [d("v")],
      releases: [d("l")],
      feedback: [d("f")],
    });
    expect(Manifest.references(record).map(({ kind }) => kind.replace(/^rollbook\.|\.v1$/g, ""))).toEqual([
      ...["rollout-content", "rollout-envelope", "policy-revision", "verdict", "release", "feedback"],
    ]);
  });
});
