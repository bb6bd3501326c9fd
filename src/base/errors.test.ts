import { describe, expect, it } from "vitest";
import { fileReason, isRollbookError, joinFaults, RollbookError, reasonOf } from "./errors.ts";

describe("RollbookError", () => {
  it("carries code, fields, message and cause", () => {
    const cause = new Error("disk full");
    const error = new RollbookError("write-failed", { path: "a" }, "a: disk full. Free some space.", {
      cause,
    });
    expect(error).toBeInstanceOf(Error);
    expect([error.name, error.code, error.message]).toEqual([
      "RollbookError",
      "write-failed",
      "a: disk full. Free some space.",
    ]);
    expect(error.fields).toEqual({ path: "a" });
    expect(error.cause).toBe(cause);
    expect(error.stack).toContain("errors.test.ts");
  });

  it("keeps its fields as they were when it was thrown", () => {
    const fields = { count: 1 };
    const error = new RollbookError("x", fields, "x");
    fields.count = 2;
    expect(error.fields.count).toBe(1);
    expect(() => Object.assign(error.fields, { count: 3 })).toThrow(TypeError);
  });

  it("becomes JSON with bigints as decimal strings", () => {
    const error = new RollbookError("stale", { number: 2n ** 63n, path: "a" }, "too old");
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: "stale",
      message: "too old",
      fields: { number: "9223372036854775808", path: "a" },
    });
  });
});

describe("isRollbookError", () => {
  it("knows the class and, if asked, the code", () => {
    const error = new RollbookError("stale", {}, "");
    expect([isRollbookError(error), isRollbookError(error, "stale"), isRollbookError(error, "x")]).toEqual([
      true,
      true,
      false,
    ]);
    expect(isRollbookError(Object.assign(new Error(), { code: "stale" }), "stale")).toBe(false);
    expect(isRollbookError(undefined)).toBe(false);
  });
});

describe("reasonOf", () => {
  it("is the message of an error and the text of anything else", () => {
    expect([new Error("no"), "text", undefined, 3].map(reasonOf)).toEqual(["no", "text", "undefined", "3"]);
  });
});

describe("a foreign error in words", () => {
  it("of a failed fetch is the reason behind it", async () => {
    const refused = await fetch("http://127.0.0.1:1/").catch((error: unknown) => error);
    expect(reasonOf(refused)).not.toBe("fetch failed");
    const several = new TypeError("fetch failed", {
      cause: Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }),
    });
    expect(reasonOf(several)).toBe("ECONNREFUSED");
  });

  it("of a file names the common causes, and keeps the text of others", () => {
    const of = (code: string) => fileReason(Object.assign(new Error(`${code}: open 'x'`), { code }));
    expect([of("ENOENT"), of("EISDIR"), of("EACCES")]).toEqual([
      "it does not exist",
      "it is a directory",
      "this user may not read it",
    ]);
    expect(of("EMFILE")).toBe("EMFILE: open 'x'");
  });
});

it("faults one after another are sentences, and the first continues a line", () => {
  expect(joinFaults(["one row is bad", "the log is short. Record more.", "it is worse"])).toBe(
    "one row is bad. The log is short. Record more. It is worse",
  );
  expect([joinFaults(["one row is bad"]), joinFaults([])]).toEqual(["one row is bad", ""]);
});
