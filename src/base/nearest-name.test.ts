import { expect, it } from "vitest";
import { nearestName } from "./nearest-name.ts";

it.each([
  ["baseURL", "baseUrl"],
  ["ahtu", undefined],
  ["auht", "auth"],
  ["retrys", "retries"],
  ["timeout", "timeoutMs"],
  ["colour", undefined],
  ["", undefined],
])("%s may mean %s", (written, meant) => {
  expect(nearestName(written, ["baseUrl", "retries", "timeoutMs", "auth"])).toBe(meant);
});
