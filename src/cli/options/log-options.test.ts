import { expect, it } from "vitest";
import { toMap } from "./log-options.ts";

it.each([
  ["reward=r,model=a,reward=p", "names reward twice"],
  ["model=a,action=b,reward=r", "names both model and action"],
  ["model=a,reward=r,time=t,timestamp=u", "names both time and timestamp"],
  ['{"model":"a","action":"b","reward":"r"}', "names both model and action"],
])("--map %s is refused: one of the columns would be ignored", (text, said) => {
  expect(() => toMap(text)).toThrow(said);
});

it("either name of a key is enough", () => {
  expect(toMap("action=a,reward=r,timestamp=t")).toEqual(toMap("model=a,reward=r,time=t"));
});
