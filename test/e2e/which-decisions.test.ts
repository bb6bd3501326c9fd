/** Selection of a book's decisions by `train` and `evaluate`: by family and by experiment. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseId } from "../../src/base/index.ts";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, makeRevision, stepWire, weightsOf } from "../support/shelf.ts";

const TRAIN = "train ridge --id learned --out";

interface Recorded {
  readonly family?: string;
  readonly experiment?: string;
  /** True if the decision has only one candidate, chosen with probability 1. */
  readonly alone?: true;
}

function recorded(name: string, count: number, { family = "router", experiment, alone }: Recorded = {}) {
  return Array.from({ length: count }, (_, i) => {
    const id = `${name}-${i}`;
    const revision = { id: `${family}-r1`, digest: weightsOf(`${family}-r1`) };
    const candidate = { id: "agent", selectable: true, reasons: [], probability: 1 };
    const step = { revision, reward: (i % 3) / 2, ...(alone ? { candidates: [candidate] } : {}) };
    return draftWire(id, {
      ...{ task: { id }, group: id, streams: [stepWire({ family, step })] },
      envelope: {
        ...{ worker: "worker-a", startedAtMs: 1100, endedAtMs: 1200 },
        ...(experiment === undefined ? {} : { experiment }),
      },
    });
  });
}

async function bookWith(...rollouts: object[]): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  const revisions = ["router", "tools", "agent"].map((family) =>
    encodeWire(PolicyRevision, makeRevision(`${family}-r1`, { family: parseId(family) }).record),
  );
  await cli.ok("artifact import -", lines(...revisions, ...rollouts));
  return cli;
}

describe("the family of the decisions", () => {
  it("a rollout without a choice adds none", async () => {
    const cli = await bookWith(...recorded("r", 40), ...recorded("a", 2, { family: "agent", alone: true }));
    const out = join(cli.folder, "learned");
    await cli.ok(`${TRAIN} ${out}`);
    expect((await cli.run(`evaluate --checkpoint ${out}`)).err).not.toContain("--family");
  });

  it("is the only one of the book, also where it has no choice", async () => {
    const cli = await bookWith(...recorded("a", 2, { family: "agent", alone: true }));
    expect((await cli.run("batch assemble --level step --target agent-r1")).err).not.toContain("--family");
  });

  it("evaluate takes the one that taught the checkpoint; train asks which", async () => {
    const cli = await bookWith(...recorded("r", 40), ...recorded("t", 40, { family: "tools" }));
    const out = join(cli.folder, "learned");
    expect((await cli.run(`${TRAIN} ${out}`)).err).toContain("the families router, tools. Choose one");
    await cli.ok(`${TRAIN} ${out} --family tools`);
    const { err } = await cli.run(`evaluate --checkpoint ${out}`);
    expect(err).not.toContain("[policy-family-mismatch]");
    expect(err).toContain("40 of 80 rollouts");
  });

  it("does not lose the failures of another family", async () => {
    const failed = recorded("t", 2, { family: "tools" }).map((each) => ({
      ...each,
      ending: { kind: "cancelled" },
    }));
    const cli = await bookWith(...recorded("r", 3), ...failed);
    const { err } = await cli.run(`data export --out ${join(cli.folder, "out.jsonl")}`);
    expect(err).toContain("router (steps): 3 of 3 rollouts used\n");
    expect(err).toContain("tools (steps): 0 of 2 rollouts used; 2 excluded: cancelled 2\n");
    expect(err).not.toContain("of the families");
  });

  it("is named by an export of several, because a learner and a judge read one", async () => {
    const cli = await bookWith(...recorded("r", 40), ...recorded("t", 40, { family: "tools" }));
    const [both, one] = ["both.jsonl", "one.jsonl"].map((name) => join(cli.folder, name));
    expect((await cli.run(`data export --out ${both}`)).err).toContain(
      `warning: ${both} holds decisions of the families router, tools. \`train\`, \`evaluate\` and \`gate\` read one: give them --family, or export one with --family\n`,
    );
    expect((await cli.run(`data export --out ${one} --family tools`)).err).not.toContain("of the families");
    const out = join(cli.folder, "learned");
    expect((await cli.run(`${TRAIN} ${out} --data ${both}`)).err).toContain("[policy-family-mismatch]");
    await cli.ok(`${TRAIN} ${out} --data ${both} --family tools`);
  });

  it("a filter that no rollout of the family matches is named", async () => {
    const late = recorded("t", 2, { family: "tools" }).map((each) => ({
      ...each,
      envelope: { worker: "worker-a", startedAtMs: 9000, endedAtMs: 9100 },
    }));
    const cli = await bookWith(...recorded("r", 3), ...late);
    const { code, err } = await cli.run("data check --family router --since 1970-01-01T00:00:05Z");
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("no rollout of the family router matches --since 1970-01-01T00:00:05.000Z."),
    ]);
  });
});

describe("the experiment of the decisions", () => {
  it("train takes rollouts of one experiment, and names those that there are", async () => {
    const first = recorded("r", 40, { experiment: "first" });
    const cli = await bookWith(...first, ...recorded("s", 40, { experiment: "second" }));
    const out = join(cli.folder, "learned");
    const refused = await cli.run(`${TRAIN} ${out} --exp secnod`);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("It has first, second.")]);
    const [all] = await cli.json(`${TRAIN} ${out}`);
    const [one] = await cli.json(`train ridge --id one --out ${out}-one --exp second`);
    expect(all.rows).toBeGreaterThan(40);
    expect(one.rows).toBeLessThan(40);
    expect((await cli.run(`evaluate --checkpoint ${out}-one --exp second`)).err).toContain("of 40 rollouts");
  });

  it("a dataset names none", async () => {
    const { code, err } = await new Cli().run("evaluate --data d.jsonl --checkpoint c --exp first");
    expect([code, err]).toEqual([2, expect.stringContaining("rows of --data name no experiment")]);
  });
});

describe("the unit of an evaluation", () => {
  it("is the checkpoint's: --unit is refused with the remedy", async () => {
    const { code, err } = await new Cli().run("evaluate --checkpoint c --unit decision");
    expect([code, err]).toEqual([2, expect.stringContaining("`rollbook train … --unit decision`")]);
  });
});

describe("decisions without prompts", () => {
  it("train with a warning whose next step fits their source", async () => {
    const cli = await bookWith(...recorded("r", 40));
    const [file, store] = [join(cli.folder, "rows.jsonl"), join(cli.folder, "store")];
    await cli.ok(`data export --out ${file}`);
    await cli.ok(`replay write ${store}`);
    const remedies: [string, string][] = [
      [
        `--book ${cli.book}`,
        "A rollout without model calls has no prompt: record its calls through a gateway",
      ],
      [`--data ${file}`, "Give the rows prompts, or fields that differ"],
      [`--replay ${store}`, "A replay store has no prompts: train from the book, or with --data"],
    ];
    for (const [i, [source, remedy]] of remedies.entries())
      expect(await cli.ok(`train ridge --id p-${i} --out ${join(cli.folder, `p-${i}`)} ${source}`)).toContain(
        `warning: no feature varies, so the policy cannot tell requests apart. ${remedy}\n`,
      );
  });
});
