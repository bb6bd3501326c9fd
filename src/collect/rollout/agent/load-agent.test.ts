import { expect, it } from "vitest";
import { isOutside } from "./load-agent.ts";

it("a folder whose name only begins with /usr is outside of /usr", () => {
  const outside = ["/usr", "/usr/local", "/usr2", "/usr-local", "/opt/python"].filter(isOutside);
  expect(outside).toEqual(["/usr2", "/usr-local", "/opt/python"]);
});
