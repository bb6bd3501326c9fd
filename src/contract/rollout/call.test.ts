import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyJson } from "../../../test/support/arbitraries.ts";
import { d } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { digestBytes } from "../../base/digest.ts";
import { digestCallLog, MESSAGE_KIND, openMessage, sealMessage } from "./call.ts";

describe("messages", () => {
  test("any JSON comes back as it was sealed, under a digest of its bytes", () => {
    fc.assert(
      fc.property(anyJson, (message) => {
        const { digest, bytes } = sealMessage(message);
        expect(openMessage(bytes, "m")).toEqual(JSON.parse(JSON.stringify(message)));
        expect(digestBytes(MESSAGE_KIND, bytes)).toBe(digest);
      }),
    );
  });

  test("another spelling of the same message is refused", () => {
    expect(refusalOf(() => openMessage(Buffer.from('{ "role":"user"}'), "m")).code).toBe("not-canonical");
  });
});

test("a call log binds the calls and their order", () => {
  const logs = [[d("a"), d("b")], [d("b"), d("a")], [d("a")], []].map(digestCallLog);
  expect(new Set(logs).size).toBe(4);
});
