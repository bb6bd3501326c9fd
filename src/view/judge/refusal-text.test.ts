import { expect, it } from "vitest";
import { reasonText, refusalsByCause } from "./refusal-text.ts";

it("a reason follows a colon without a second one, and does not call a policy a candidate", () => {
  expect(reasonText("the candidate: the log is too small. It has 48 decisions")).toBe(
    "the log is too small. It has 48 decisions.",
  );
  expect(reasonText("quality: it may be up to 0.05 worse")).toBe("quality may be up to 0.05 worse.");
  expect(reasonText("the baseline: larg gets 3.0 % of the choices.", "the static table")).toBe(
    "the gate cannot judge the baseline (the static table), because larg gets 3.0 % of the choices.",
  );
});

it("policies that were refused for one reason share an entry, also where only figures differ", () => {
  const worse = (by: number) => [`quality: it may be up to 0.${by} worse`];
  const small = ["the candidate: the log is too small."];
  expect(
    refusalsByCause([
      { learner: "linucb", reasons: small },
      { learner: "bc", reasons: worse(1) },
      { learner: "cql", reasons: small },
      { learner: "ppo", reasons: worse(2) },
      { learner: "ucb", reasons: small },
    ]),
  ).toEqual([
    { names: "linucb, cql and ucb", reasons: ["the log is too small."] },
    { names: "bc (ppo with other figures)", reasons: ["quality may be up to 0.1 worse."] },
  ]);
});
