import { describe, expect, it } from "vitest";
import { loggedRow } from "../../../test/support/chain-world.ts";
import { BETTER, rareLog, WORSE } from "../../../test/support/rare-worlds.ts";
import { rngFrom } from "../../base/rng.ts";
import { checkData } from "./data-check.ts";
import { toJudgedRows } from "./judged-row.ts";

const clean = rareLog({ ...BETTER[0]!, rows: 600 }, 1);
const kinds = (rows: typeof clean) => checkData(rows).map(({ kind }) => kind);

describe("a clean log", () => {
  it("has no finding in 100 draws, with and without contexts that repeat", () => {
    for (let seed = 0; seed < 50; seed++) {
      const rows = rareLog({ ...BETTER[0]!, rows: 300 }, seed);
      expect(checkData(rows)).toEqual([]);
      const bare = rows.map((row, i) => ({ ...row, context: { prompt: "", fields: { kind: i % 3 } } }));
      expect(checkData(bare)).toEqual([]);
    }
  });
});

describe("duplicates", () => {
  it.each(WORSE.filter(({ copies }) => copies !== undefined))("are found: $name", (world) => {
    expect(kinds(rareLog(world, 3))).toContain("duplicates");
  });

  it("are found where the file was appended to itself, and where a fifth of the rows was copied", () => {
    const again = clean.map((row) => ({ ...row, id: `${row.id}-b`, unit: `${row.unit}-b` }));
    expect(kinds([...clean, ...again])).toContain("duplicates");
    expect(kinds([...clean, ...again.slice(0, 120)])).toContain("duplicates");
  });

  it("within one unit are no finding: the unit counts once", () => {
    expect(kinds([...clean, ...clean.map((row) => ({ ...row, id: `${row.id}-b` }))])).toEqual([]);
  });
});

describe("sessions of rollouts that are units of their own", () => {
  /** Sixty sessions, hard or easy, each of ten rollouts with two decisions. The last decision earns the reward. */
  const rng = rngFrom(3);
  const rows = Array.from({ length: 600 }, (_, i) => {
    const hard = Math.floor(i / 10) % 2 === 0;
    return [0, 1].map((step) =>
      loggedRow({
        ...{ id: `r${i}/0/${step}`, chain: `r${i}/0/0`, task: `r${i}`, session: `s${Math.floor(i / 10)}` },
        ...{ chosen: rng.below(2), context: { prompt: "", fields: { rollout: i } }, terminal: step === 1 },
        reward: step === 1 && rng.float() < (hard ? 0.1 : 0.9) ? 1 : 0,
      }),
    );
  }).flat();
  const judged = toJudgedRows(rows, "task").rows;

  it("are found where chains are judged: their returns go together", () => {
    const [found, ...others] = checkData(judged, 1);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ kind: "sessions", severity: "refuse" });
    expect(found!.message).toMatch(/^rewards of one session go together \(540 rollouts that follow another/);
    expect(checkData(toJudgedRows(rows, "session").rows, 1)).toEqual([]);
  });

  it("of one return are said to have it, though their rewards differ", () => {
    const constant = judged.map((row, i) => ({ ...row, reward: i % 2 }));
    expect(checkData(constant, 1)).toMatchObject([
      { kind: "constant-reward", message: expect.stringMatching(/the reward is always 1 \(600 times\)/) },
    ]);
    expect(checkData(constant)).toEqual([]);
  });
});

describe("sessions whose decisions are units of their own", () => {
  const inSessions = clean.map((row, i) => ({ ...row, session: `s-${Math.floor(i / 10)}` }));
  const grouped = (rows: typeof inSessions) => rows.map((row) => ({ ...row, unit: row.session }));
  const first = (i: number) => inSessions[i - (i % 10)]!;

  it("are no finding where their decisions are independent, in 50 draws", () => {
    for (let seed = 0; seed < 50; seed++)
      expect(
        checkData(
          rareLog({ ...BETTER[0]!, rows: 300 }, seed).map((row, i) => ({
            ...row,
            session: `s-${Math.floor(i / 10)}`,
          })),
        ),
      ).toEqual([]);
  });

  it("are found where a session is routed as a whole, unless it is the unit", () => {
    const sticky = inSessions.map((row, i) => ({ ...row, chosen: first(i).chosen, propensity: 0.5 }));
    expect(checkData(sticky)).toMatchObject([{ kind: "sessions", severity: "refuse" }]);
    expect(checkData(grouped(sticky))).toEqual([]);
  });

  it("are found where rewards of a session go together, unless it is the unit", () => {
    const alike = inSessions.map((row, i) => (i % 5 < 4 ? { ...row, reward: first(i).reward } : row));
    expect(checkData(alike)).toMatchObject([{ kind: "sessions", severity: "refuse" }]);
    expect(checkData(grouped(alike))).toEqual([]);
  });

  it("are no finding where they are samples of one request, which share its difficulty", () => {
    // Eight of ten rewards agree, as in the test above. Each row keeps its own choice.
    const samples = inSessions.map((row, i) => ({
      ...row,
      context: { ...row.context, prompt: `task ${Math.floor(i / 10)}` },
      reward: i % 5 < 4 ? first(i).reward : row.reward,
    }));
    expect(checkData(samples).filter(({ kind }) => kind === "sessions")).toEqual([]);
  });
});

describe("other faults", () => {
  it("constant rewards", () => {
    expect(kinds(clean.map((row) => ({ ...row, reward: 1 })))).toEqual(["constant-reward"]);
  });

  it("one reward of a million among 0 and 1", () => {
    const [finding] = checkData(clean.map((row, i) => (i === 7 ? { ...row, reward: 1e6 } : row)));
    expect(finding).toMatchObject({ kind: "outliers", severity: "warn" });
    expect(finding!.message).toContain("d-7-0 (1000000)");
  });

  it("costs of which a few decisions hold most, and not those of an ordinary long tail", () => {
    const rng = rngFrom(4);
    const withCost = (exponent: number) =>
      [...clean, ...rareLog({ ...BETTER[0]!, rows: 600 }, 2)].map((row, i) => ({
        ...row,
        ...{ id: `r-${i}`, unit: `r-${i}` },
        measures: { ...row.measures, cost: (1 - rng.float()) ** (-1 / exponent) },
      }));
    const tail = { kind: "heavy-tail", severity: "warn", measure: "cost" };
    expect(checkData(withCost(0.9))).toMatchObject([tail, tail]);
    expect(checkData(withCost(3))).toEqual([]);
  });

  it("propensities that are not those of the choices", () => {
    expect(kinds(clean.map((row) => ({ ...row, propensity: row.chosen === 0 ? 0.3 : 0.7 })))).toContain(
      "propensities",
    );
  });

  it("no fault in true probabilities of which some are small", () => {
    // Arm 0 has probability 0.99 in 25 rows and 0.01 in 16, and is chosen in exactly the 25.
    const rows = clean.slice(0, 41).map((row, i) => {
      const [chosen, behaviour] = i < 25 ? [0, [0.99, 0.01]] : [1, [0.01, 0.99]];
      return { ...row, chosen, behaviour, propensity: 0.99 };
    });
    expect(kinds(rows)).not.toContain("propensities");
  });

  it("rewards that drift", () => {
    expect(kinds(clean.map((row, i) => (i < 300 ? row : { ...row, reward: row.reward / 2 })))).toContain(
      "drift",
    );
  });
});
