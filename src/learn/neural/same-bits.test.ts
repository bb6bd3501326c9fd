import { expect, test } from "vitest";
import { neuralDigests } from "../../../test/support/neural-digests.ts";

test("the same seed gives the same checkpoint as on every other engine", () => {
  // Node 20.20 and Node 24.21 gave these digests. The test runs on the installed Node.
  expect(neuralDigests()).toEqual({
    "cql, chains": "0d28ddb2b5f4681a",
    "cql, returns": "2e5a8210e40f922e",
    "neural-bc": "81f1eba3c92dc0e3",
    ppo: "4817033baf6f983a",
  });
});
