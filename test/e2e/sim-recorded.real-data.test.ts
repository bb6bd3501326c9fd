import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readRecorded } from "../../src/book/sim/read-recorded.ts";
import { recordedWorld } from "../../src/collect/sim/play/recorded.ts";
import { knownValues } from "../../src/collect/sim/world/world.ts";
import { Cli } from "../support/cli.ts";
import { realData } from "../support/real-data.ts";

const file = realData("routellm/gsm8k/gsm8k_responses.csv");

const WEAK = "mistralai/Mixtral-8x7B-Instruct-v0.1";
const STRONG = "gpt-4-1106-preview";
const yaml = (cost: string) => `schema: rollbook.recorded.v1
file: gsm8k_responses.csv
prompt: prompt
models:
  - { name: mixtral, response: "${WEAK}_response", correct: "${WEAK}", price: { prompt: 0.6, completion: 0.6 } }
  - { name: gpt-4, response: "${STRONG}_response", correct: "${STRONG}", price: { prompt: 10, completion: 30 } }
cost: ${cost}
`;

describe.skipIf(file === undefined)("recorded answers of two models to GSM8K", () => {
  it("have the published accuracies where cost is free, and a routed optimum above both where it is not", async () => {
    const cli = new Cli();
    copyFileSync(file!, join(cli.folder, "gsm8k_responses.csv"));
    const free = await readRecorded(cli.file("free.yaml", yaml("{ weight: 0, perUsd: 1 }")));
    expect(free.questions).toHaveLength(1319);
    const accuracy = knownValues(recordedWorld(free));
    expect(accuracy.single).toEqual({ mixtral: 842 / 1319, "gpt-4": 1130 / 1319 });
    expect(accuracy.best).toBeCloseTo(1225 / 1319, 12);
    const paid = knownValues(
      recordedWorld(await readRecorded(cli.file("paid.yaml", yaml("{ weight: 0.5, perUsd: 0.01 }")))),
    );
    expect(paid.best).toBeGreaterThan(paid.bestSingle.value + 0.05);
    expect(Math.min(paid.bestFor.mixtral!, paid.bestFor["gpt-4"]!)).toBeGreaterThan(100);
  });
});
