import { expect, it } from "vitest";
import { given } from "./given.ts";

it("keeps null, 0, false and empty text, and leaves out what is undefined", () => {
  const fields = given({ a: null, b: 0, c: false, d: "", e: undefined });
  expect(Object.keys(fields)).toEqual(["a", "b", "c", "d"]);
});
