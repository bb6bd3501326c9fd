import { expect, it } from "vitest";
import { TurnEnd } from "./end-of-tick.ts";

it("does at the end of a turn, in order, what came up in it, also after one that fails", async () => {
  const turnEnd = new TurnEnd();
  const failure = new Error("the socket is odd");
  const uncaught = new Promise((done) => process.once("uncaughtException", done));
  const done: string[] = [];
  turnEnd.do(() => done.push("first"));
  turnEnd.do(() => {
    throw failure;
  });
  turnEnd.do(() => done.push("last"));
  expect(done).toEqual([]);
  expect(await uncaught).toBe(failure);
  await new Promise(setImmediate);
  expect(done).toEqual(["first", "last"]);
});
