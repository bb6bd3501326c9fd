import { describe, expect, test } from "vitest";
import { d, exampleWire } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { decodeWire } from "../codec/record.ts";
import { EnvironmentPackage } from "./environment.ts";

const withFiles = (...paths: string[]) =>
  decodeWire(
    EnvironmentPackage,
    { ...exampleWire(EnvironmentPackage.kind), files: paths.map((path) => ({ path, digest: d(path) })) },
    "package",
  );

describe("environment packages", () => {
  test("plain relative paths are accepted, hidden files included", () => {
    expect(withFiles("run.sh", "bin/run", ".env", "a/..b/c..").files).toHaveLength(4);
  });

  test.each(["", "/etc/passwd", "../x", "a/../../x", "a/..", "./a", "a//b", "a/", "a\\b", "a\u0000b"])(
    "the path %j is refused",
    (path) => {
      expect(refusalOf(() => withFiles(path)).fields.field).toBe("files[0].path");
    },
  );

  test("one path twice is refused", () => {
    expect(refusalOf(() => withFiles("a", "a")).fields.field).toBe("files[1].path");
  });
});
