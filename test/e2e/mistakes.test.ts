/** Plausible mistakes on the command line. The error names the fault, its place, and a next step that works. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseId } from "../../src/base/index.ts";
import { requireMargin } from "../../src/book/judge/require-margin.ts";
import type { JudgedRow } from "../../src/judge/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";
import { draftWire, makeRevision } from "../support/shelf.ts";

/** Decisions of a family that is not called router. */
const decisions = (count: number) =>
  lines(
    ...Array.from({ length: count }, (_, i) => ({
      ...decisionLine(`d-${i}`, { reward: i % 2 }),
      agent_role: "chooser",
    })),
  );

describe("an option that the command does not have", () => {
  it("is named before a required one that is missing, with the commands that have it", async () => {
    const { code, err } = await new Cli().run("train linucb --data x --cost-weight 1");
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/`rollbook train linucb` has no option --cost-weight\. .*rollbook train auto/),
    ]);
    expect((await new Cli().run("train linucb --discont 1 --out p --id x")).err).toMatch(
      /no option --discont\. Did you mean --discount\? See `rollbook train linucb --help`\. \[wrong-usage\]/,
    );
  });

  it("and that commands of other groups have names them too, its own group first", async () => {
    expect((await new Cli().run("artifact ls --target x")).err).toContain(
      "These have it: rollbook artifact admit, rollbook gateway, rollbook launch, rollbook worker, rollbook batch assemble. See",
    );
    expect((await new Cli().run("artifact ls --seed 1")).err).toMatch(/These have it: .* and \d+ more\. See/);
    expect((await new Cli().run("artifact ls --slimy 1")).err).toMatch(/no option --slimy\. See/);
    // `evaluate` and `gate` have it too, as an alias that no help lists.
    expect((await new Cli().run("train linucb --candidate x")).err).toContain(
      "This command has it: rollbook route ask. See",
    );
  });

  it("and that its subcommands have names one of them", async () => {
    const { code, err } = await new Cli().run("train --data routing.jsonl --out policies/a --id router-a");
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/`rollbook train` needs a subcommand .* example `rollbook train auto --data …`/),
    ]);
  });

  it("does not hide a port that is out of range", async () => {
    for (const words of ["view --port 99999", "reward serve --agent a.mjs --port 70000"])
      expect(await new Cli().run(words)).toMatchObject({
        ...{ code: 2, err: expect.stringContaining("It must be a whole number from 0 to 65535.") },
      });
  });
});

it("a number out of range is told with its range", async () => {
  const told: readonly (readonly [string, string])[] = [
    ["launch --tasks t --agent a --samples -2", "whole number, at least 1."],
    ["artifact ls --limit -1", "whole number, at least 1."],
    ["artifact ls --limit 0", "whole number, at least 1."],
    ["gate --checkpoint p --candidates-tried 0", "whole number, at least 1."],
    ["gate --checkpoint p --alpha 1.5", "above 0 and below 0.5."],
    ["gate --checkpoint p --alpha 0", "above 0 and below 0.5."],
    ["gate --checkpoint p --quality-range 1..0", "two numbers, the lower one first,"],
  ];
  for (const [words, text] of told)
    expect([words, await new Cli().run(words)]).toMatchObject([
      words,
      { code: 2, err: expect.stringContaining(text) },
    ]);
});

it("a value that no file decides is wrong usage", async () => {
  const told: readonly (readonly [string, string])[] = [
    ["gate --checkpoint p q --candidates-tried 1", "2 candidates given, and --candidates-tried is 1."],
    ["demo --rollouts 41 --out none", "Give an even number of at least 40."],
    ["schema rollot", "Did you mean rollout?"],
    ["verify b --expect head.json", "--expect is of the whole book."],
  ];
  for (const [words, text] of told)
    expect([words, await new Cli().run(words)]).toMatchObject([
      words,
      { code: 2, err: expect.stringContaining(text) },
    ]);
});

it("an option without an effect is wrong usage", async () => {
  const told: readonly (readonly [string, string])[] = [
    [
      "gate --checkpoint p --total-reward --epsilon-cost 0.5",
      "--epsilon-cost has no effect with --total-reward.",
    ],
    [
      "gate --checkpoint p --total-reward --cost-range 0..1",
      "--cost-range has no effect with --total-reward.",
    ],
    [
      "gate --checkpoint p --quality-only --epsilon-cost 0.5",
      "--epsilon-cost has no effect with --quality-only.",
    ],
    [
      "gate --checkpoint p --quality-only --cost-range 0..1",
      "--cost-range has no effect with --quality-only.",
    ],
    ["gate --checkpoint p --router r.yaml --floor 0.5", "cannot be used with option '--floor <c>'"],
    ["train cql --out p --id p --goal return", "--goal has no effect without a --discount above 0."],
    ["train cql --out p --id p --discount 0 --goal bootstrap", "--goal has no effect without"],
  ];
  for (const [words, text] of told)
    expect([words, await new Cli().run(words)]).toMatchObject([
      words,
      { code: 2, err: expect.stringContaining(text) },
    ]);
});

it("a pack that is not there, or a file that is no head, is told in words", async () => {
  const cli = new Cli();
  expect((await cli.run("pack tar nothere --out y.tar")).err).toContain("nothere does not exist.");
  await cli.ok("init");
  expect(await cli.run(["verify", "--expect", cli.file("x.tar", "")])).toMatchObject({
    ...{ code: 1, err: expect.stringContaining("is not a file that `rollbook head --out` wrote.") },
  });
});

it("a checkpoint that is nearly called released asks if that is meant", async () => {
  expect((await new Cli().run("route ask --checkpoint releasd hi")).err).toContain("Did you mean `released`");
});

it("an agent without a scorer is told where scorers come from", async () => {
  const cli = new Cli();
  const agent = cli.file("ok.mjs", "export default () => ({ reward: 1 });");
  expect((await cli.run(`reward serve --agent ${agent} --port 0`)).err).toMatch(
    /ok\.mjs has no scorer\. .*rollbook\/rollout.*docs\/topics\/executor\.md.*\[no-scorer\]/,
  );
});

it("every fault of a configuration has its own line", async () => {
  const cli = new Cli();
  const config = cli.file(
    "loop.yaml",
    "windos: 2\nrollouts: many\nlearner: { kind: auto }\nworld: { kind: cloud }\n",
  );
  expect((await cli.run(`run start --config ${config}`)).err).toMatch(
    /loop\.yaml: 3 faults:\n {2}- unknown key windos\. Did you mean windows\?\n {2}- .*\n {2}- .*\n {2}See docs\/loop\.md\. \[bad-config\]\n$/,
  );
});

it("a prompt that was read as a candidate is named", async () => {
  const { code, err } = await new Cli().run("route ask --candidate small large hello");
  expect([code, err]).toEqual([
    2,
    expect.stringMatching(/hello was read as a candidate\. Put the prompt before --candidate, or after `--`/),
  ]);
});

describe("a name", () => {
  it("of two records asks for a digest, or for the family; the beginning of several asks for more", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const revision = (family: string) =>
      JSON.parse(Buffer.from(makeRevision("logged", { family: parseId(family) }).bytes).toString());
    const drafts = [draftWire("r-0001"), draftWire("r-0002"), draftWire("r-0002", { seed: "8" })];
    await cli.ok("artifact import -", lines(revision("one"), revision("two"), ...drafts));
    const both = await cli.run("artifact show r-0002");
    const [, digest] = /Name one by its digest, for example (\w{12})\./.exec(both.err) ?? [];
    await cli.ok(`artifact show ${digest}`);
    expect((await cli.run("artifact show r-000")).err).toContain("Give more of it.");
    const rate = "--name solved --value 1";
    expect((await cli.run(`feedback r-000 ${rate}`)).err).toContain("needs the whole id: r-0001, r-0002.");
    expect((await cli.run("batch assemble --target logged --level token")).err).toMatch(
      /Name one by its digest, for example \w{12}, or give its family with --family\./,
    );
  });

  it("of a revision with two records is that of the record with more facts", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const wire = (over: object) => JSON.parse(Buffer.from(makeRevision("r3", over).bytes).toString());
    await cli.ok("artifact import -", lines(wire({ producedAtMs: 0 }), wire({ number: 3n })));
    expect(JSON.parse(await cli.ok("cat r3"))).toMatchObject({ id: "r3", number: "3" });
  });

  it("of which the first characters are given is shown, and told in whole by a command that writes", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok("artifact import -", lines(draftWire("r-0001-long")));
    await cli.ok("artifact show r-0001");
    const whole =
      '"r-0001" is only the beginning of a rollout\'s id. This command needs the whole id: r-0001-long.';
    expect((await cli.run("feedback r-0001 --name solved --value 1")).err).toContain(whole);
    expect((await cli.run("artifact erase r-0001 --reason mistake")).err).toContain(whole);
    expect((await cli.run("feedback r-0001-long --name fast --value 1")).out).toBe("added\n");
  });

  it("of no rollout in the book says that it may be open at a gateway", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const told =
      /open at a gateway is not in the book yet: close it first\. A rollout that was closed without a call is in no book\. (.*)\[not-found\]/;
    const [, shown] = told.exec((await cli.run("artifact show r-77")).err)!;
    expect(shown).toBe("");
    const [, rated] = told.exec((await cli.run("feedback r-77 --name solved --value 1")).err)!;
    expect(rated).toContain("`rollbook feedback --gateway URL` also takes open ones.");
  });
});

it("rows without a propensity are not offered for training together, and the advice to train from a file works", async () => {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok(`data import ${cli.file("routing.jsonl", decisions(40))}`);
  const rows = Array.from({ length: 40 }, (_, i) => `Add ${i},${i % 2 ? "small" : "large"},${i % 3}`);
  const log = cli.file("log.csv", ["question,model,score", ...rows].join("\n"));
  await cli.ok(`data import ${log} --map prompt=question,model=model,reward=score --data-source real`);
  const train = `train auto --id x --out ${cli.folder}/x`;
  expect((await cli.run(train)).err).toContain(
    "chooser, imported. Choose one with --family. [policy-family-mismatch]",
  );
  const [, advised] = /`rollbook (data export .*) FILE`, then/.exec(
    (await cli.run(`${train} --family imported`)).err,
  )!;
  await cli.ok(`${advised} ${cli.folder}/F.jsonl`);
  await cli.ok(`${train} --data ${cli.folder}/F.jsonl`);
});

it("a parent that is not in the book is found before a batch is cut", async () => {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok(`data import ${cli.file("routing.jsonl", decisions(40))}`);
  const { code, err } = await cli.run(`train ridge --out ${cli.folder}/p --id x --parent nope`);
  expect([code, err]).toEqual([1, expect.stringContaining('no policy revision "nope"')]);
  expect(err).toContain(
    "Give its id, or at least 4 digits from the column RECORD of `artifact ls --revisions`.",
  );
  expect(await cli.json("batch show")).toEqual([]);
});

describe("a book without what was asked for", () => {
  it("writes no dataset, and names the commands that record rollouts and decisions", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const out = join(cli.folder, "out.jsonl");
    const exported = await cli.run(`data export --out ${out}`);
    expect([exported.code, exported.err]).toEqual([1, expect.stringContaining("`rollbook gateway`")]);
    expect(existsSync(out)).toBe(false);
    for (const words of ["data check", "reward analyze", `train ucb --out ${cli.folder}/p --id x`])
      expect((await cli.run(words)).err).toMatch(
        /holds decisions\. Record some: .*`rollbook data import LOG`/,
      );
  });

  it("refuses a page of an experiment that it does not have, and lists those that it has", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const envelope = { worker: "w", startedAtMs: 1100, endedAtMs: 1200, experiment: "first" };
    await cli.ok("artifact import -", lines(draftWire("r-1", { envelope })));
    const out = join(cli.folder, "page.html");
    for (const words of [`view --exp nosuch --out ${out}`, "artifact ls --exp nosuch"]) {
      const { code, err } = await cli.run(words);
      expect([code, err]).toEqual([1, expect.stringContaining("experiment nosuch. It has first.")]);
    }
    expect((await cli.run(`view --model nosuch --out ${out}`)).err).toContain("no rollout matches");
    expect(existsSync(out)).toBe(false);
  });

  it("does not say of one record that the book has no heads", async () => {
    const cli = new Cli();
    for (const words of ["init", "keys new"]) await cli.ok(words);
    await cli.ok("artifact import -", lines(draftWire("r-1")));
    await cli.ok("head");
    expect(await cli.ok("verify r-1")).not.toContain("heads:");
    expect(await cli.ok("verify")).toMatch(/^heads: \d+ checked/m);
  });
});

describe("a path that is not a book", () => {
  it("is told from a folder that holds one, from a file, and from a book that cannot be read", async () => {
    const cli = new Cli();
    const told = async (path: string) => (await cli.run(`verify --book ${path}`)).err;
    for (const name of [".rollbook", "book"]) {
      const folder = join(cli.folder, `project-${name}`);
      await cli.ok(`init --book ${join(folder, name)}`);
      expect(await told(folder)).toContain(`holds one. Name it with --book ${join(folder, name)}.`);
    }
    expect(await told(cli.file("tasks.jsonl", "{}"))).toContain("is a file, and a book is a directory");
    expect(await told(join(cli.folder, "nosuch"))).toContain("Create one with `rollbook init --book");
    await cli.ok(`init --book ${join(cli.folder, "empty")}`);
    const bad = cli.file("empty/book.json", "");
    expect(await told(join(cli.folder, "empty"))).toBe(
      `error: ${bad}: it is not JSON. Restore the file from a copy of the book. [bad-book]\n`,
    );
  });
});

describe("a file of another kind", () => {
  it("is no replay store and no result of a suite", async () => {
    const cli = new Cli();
    const file = cli.file("routing.jsonl", decisions(3));
    for (const path of [file, join(file, "x"), join(cli.folder, "nosuch")])
      expect((await cli.run(`replay validate ${path}`)).err).toMatch(
        /is not a replay store: .*no-replay-store/,
      );
    expect((await cli.run(`bench compare ${file} ${file}`)).err).toMatch(
      /routing\.jsonl is not a result of `rollbook bench run`: it is not one JSON object/,
    );
  });
});

describe("a name or a file that is nearly right", () => {
  it("is told with the one that was meant", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok("keys new");
    const csv = cli.file("log.csv", "a,b\n1,2\n");
    const tasks = cli.file("tasks.jsonl", '{"q":1}\n{"q":2}\n');
    const agent = cli.file("agent.mjs", "export const agent = 1;\n");
    const head = cli.file("head.json", "{}");
    const told: readonly (readonly [string, string])[] = [
      [`sim run --tasks ${tasks}`, `is a file. Name the folder that`],
      [`data import ${csv} --format parquet --map model=a,reward=b`, `${csv} is not a Parquet file`],
      [`gateway --config ${tasks}`, "it is not YAML: Unexpected flow-map-start at node end at line 2"],
      [
        `launch --tasks ${tasks} --agent ${agent} --isolation none`,
        "defineRollout of the module rollbook/rollout",
      ],
      [`head --out ${head}`, `${head} already exists`],
      [`data import ${cli.folder}`, `${cli.folder} is a directory. Name a file in it.`],
      [`data check --data ${cli.folder}`, `${cli.folder} is a directory. Name a file in it.`],
      [
        `data check --data ${cli.file("empty.jsonl", "")}`,
        "empty.jsonl is empty. Write a dataset with `rollbook data export --out FILE`",
      ],
      [`pack verify ${agent}`, "it is not a tar file"],
      [
        `evaluate --data ${tasks} --checkpoint ${cli.folder}/none`,
        `the folder ${cli.folder}/none does not exist`,
      ],
      [`launch compare a b`, "`rollbook launch --exp NAME` does"],
      [`verify --book ${cli.folder}/none`, "none does not exist, so there is no book"],
      ["feedback r-1 --name x --value 1 --gateway localhost:9", "Write http://localhost:9, for example"],
    ];
    for (const [words, text] of told) {
      const { code, err } = await cli.run(words);
      expect([words, code, err]).toEqual([words, 1, expect.stringContaining(text)]);
    }
    const numbers = [
      ["--neighbours 0", "It must be a whole number, at least 1."],
      ["--seed -1", "It must be a whole number from 0 to 2^64 - 1."],
    ] as const;
    for (const [flag, text] of numbers) {
      const { code, err } = await cli.run(`train knn --data ${csv} --out p --id p ${flag}`);
      expect([code, err]).toEqual([2, expect.stringContaining(text)]);
    }
    const map = await cli.run(`data import ${csv} --map prmpt=a,model=a,reward=b`);
    expect([map.code, map.err]).toEqual([
      2,
      expect.stringMatching(/Did you mean prompt\? .*outcomes and costs/),
    ]);
    const none = await cli.run(
      `launch --tasks ${cli.file("none.jsonl", "")} --agent ${cli.file("a.mjs", "export default async () => 1;\n")} --isolation none`,
    );
    expect(none).toMatchObject({ code: 1, out: "", err: expect.stringContaining("holds no task") });
    const plain = cli.file("plain.mjs", "export default async () => 1;\n");
    const again = await cli.run(`launch --tasks ${tasks} --agent ${plain} --retry failed --exp nosuch`);
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("of experiment nosuch")]);
    const sim = join(cli.folder, "sim");
    await cli.ok(`sim generate --out ${sim} --count 1 --engine quickjs`);
    expect((await cli.run(`sim run --tasks ${sim} --agent chatt`)).err).toContain("(chat, reference)");
  }, 60_000);
});

describe("a log that cannot judge", () => {
  it("is refused by data check: without propensities, and with too few rows", async () => {
    const cli = new Cli();
    const rows = decisions(200).trimEnd().split("\n");
    const bare = rows.map((row) => row.replaceAll(/"(propensity|probability)":[\d.]+/g, '"$1":null'));
    const check = (name: string, lines: readonly string[]) =>
      cli.run(`data check --data ${cli.file(name, `${lines.join("\n")}\n`)}`);
    const none = await check("bare.jsonl", bare);
    expect([none.code, none.out]).toEqual([
      1,
      expect.stringContaining("200 of 200 decisions have no logged"),
    ]);
    const few = await check("few.jsonl", rows.slice(0, 30));
    expect([few.code, few.out]).toEqual([1, expect.stringContaining("FAULT (size): 30 tasks with a reward")]);
    expect(few.err).toContain("for the reason (size) above. [bad-log]");
  });
});

describe("an import without a book", () => {
  it("reports the file and the missing source first, then the book", async () => {
    const cli = new Cli();
    const map = "--map model=arm,reward=score";
    const log = cli.file("log.csv", "arm,score\ncheap,1\nstrong,0\n");
    const fails = async (words: string) => (await cli.run(`data import ${words}`)).err;
    expect(await fails(`${cli.folder}/none.csv ${map}`)).toContain("none.csv does not exist");
    expect(await fails(`${log} ${map}`)).toContain("[no-data-source]");
    expect(await fails(`${log} ${map} --data-source real`)).toContain("[no-book]");
    // The advice is for the command that was given.
    expect(await fails(log)).toContain("is not a routing dataset. Add --map model=…");
    expect((await cli.run(`data check --data ${log}`)).err).toMatch(
      /Make one with `rollbook data import .*`, where each … is a column\. If each row has the outcomes of all candidates, in the columns A and B, use --map prompt=…,outcomes=A\+B --out FILE\. With --dry-run you see how it is read\. \[wrong-usage\]/,
    );
  });
});

describe("a path that verify cannot verify", () => {
  it("is told from a name, with the id to give for a checkpoint", async () => {
    const cli = new Cli();
    const log = cli.file("log.jsonl", decisions(40));
    expect((await cli.run(`verify ${log}`)).err).toContain("is a path, but not a run pack. Name a run pack");
    await cli.ok("init");
    await cli.ok(`data import ${log}`);
    const policy = `${cli.folder}/policy`;
    expect(await cli.ok(`train ucb --id u --out ${policy}`)).toContain(`written to ${policy}`);
    expect(await cli.ok(`train ucb --id u --out ${policy}`)).toContain(
      `nothing is new, ${policy} is unchanged`,
    );
    expect((await cli.run(`verify ${policy}`)).err).toContain("It is a checkpoint: name the id");
    await cli.ok("verify u");
  });
});

it("a batch without its two required options names both, and one of no such name asks for a digest", async () => {
  const cli = new Cli();
  await cli.ok("init");
  const { code, err } = await cli.run("batch assemble");
  expect(code).toBe(2);
  expect(err).toContain("options '--target <revision>' and '--level <level>' (token or step) not specified");
  expect((await cli.run("batch assemble --target x")).err).toContain("option '--level <level>'");
  expect((await cli.run("batch show zzzz")).err).toContain("Give at least 4 digits of its digest.");
});

it("the beginning of a rollout's id that is too short is refused with the least length", async () => {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok(`data import ${cli.file("routing.jsonl", decisions(3))}`);
  expect((await cli.run("artifact show d-")).err).toContain(
    'no rollout "d-" in the book. Give its id or digest, or at least the first 4 characters of one.',
  );
  // An irreversible command takes whole ids only.
  expect((await cli.run("artifact erase d- --reason test")).err).toContain(
    "Give its id or at least 4 digits of its digest.",
  );
});

describe("decisions of another family or session", () => {
  it("are what a filter that matches nothing is blamed on", async () => {
    const cli = new Cli();
    const file = cli.file("routing.jsonl", decisions(3));
    const check = async (flags: string) => (await cli.run(`data check --data ${file} ${flags}`)).err;
    expect(await check("--session zz")).toContain("none of the 3 decisions");
    expect(await check("--session zz")).toContain(
      "matches --session zz. Correct the filter, or leave it out.",
    );
    expect(await check("--family zz")).toContain("The families there: chooser.");
  });

  it("in a file of another kind are refused with the command that reads it", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const rows = cli.file("routing.jsonl", decisions(1));
    const records = cli.file("rollouts.jsonl", lines(draftWire("r-1")));
    for (const command of ["data import", "data check --data", "train ucb --out p --id p --data"])
      expect((await cli.run(`${command} ${records}`)).err).toContain(
        `is a record (rollbook.rollout.v1), not a decision. Import a file of records with \`rollbook artifact import ${records}\``,
      );
    expect((await cli.run(`artifact import ${rows}`)).err).toContain(
      `this is a row of a routing dataset. Import it with \`rollbook data import ${rows}\`.`,
    );
    const { code, err } = await cli.run(`data check ${rows}`);
    expect([code, err]).toEqual([2, expect.stringContaining("Name the dataset with --data.")]);
    const header = Buffer.alloc(512);
    header.write("pack.json");
    header.write("ustar", 257);
    header[300] = 0xff;
    expect((await cli.run(`artifact import ${cli.file("x.tar", header)}`)).err).toContain(
      "x.tar is a tar file. `rollbook pack verify` reads run packs",
    );
  });

  it("are explained, where they were imported, by what their log says and no more", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("routing.jsonl", decisions(1))}`);
    const [{ rolloutId }] = await cli.json("artifact ls");
    const explained = await cli.ok(`route explain ${rolloutId}`);
    expect(explained).toContain("was chosen with probability 0.5.");
    expect(explained).toContain("The record does not say what decided");
    expect(explained).toMatch(/^ {2}Recorded as chosen by \S+ \(\w{12}\)\.$/m);
    expect(explained).not.toMatch(/static table|Policy used|without a learned policy/);
    expect((await cli.run(`route explain ${rolloutId}.3`)).err).toContain(
      `has no recorded calls. Leave out .3 to explain its decision: \`rollbook route explain ${rolloutId}\`. [unknown-call]`,
    );
    const decision = `${rolloutId}/0/0`;
    expect(await cli.ok(`route explain ${decision}`)).toContain("was chosen with probability 0.5.");
    expect(await cli.ok(`artifact show ${decision}`)).toContain(`rollout ${rolloutId}`);
    expect((await cli.run(`artifact erase ${decision} --reason test`)).err).toContain(
      `${rolloutId} is the rollout of this decision.`,
    );
    const rated = await cli.run(`feedback ${rolloutId}.0 --name solved --value 1`);
    expect(rated.err).toContain("has no recorded calls. Leave out .0 to rate the whole rollout.");
  });

  it("are in a batch for a target of their family, which train --policy makes", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("routing.jsonl", decisions(40))}`);
    await cli.ok(`train ucb --out ${join(cli.folder, "a")} --id a --policy chooser`);
    const [made] = await cli.json("batch assemble --target a --level step --advantage none");
    expect(made.batch.selection).toMatchObject({ family: "chooser", level: "step" });
    const text = await cli.ok("batch assemble --target a --level step --advantage none --seed 1");
    expect(text).toMatch(/SOURCE +DRIFT +ROWS +STEPS .*\n +logged +\? /);
    const other = await cli.run("batch assemble --target a --level token --advantage none");
    expect(other.err).toMatch(/hold decisions and no tokens: use --level step.*`capture`.*docs\/gateway.md/);
    const steps = await cli.run(
      `data convert --to slime --batch ${made.digest} --out ${join(cli.folder, "s")}`,
    );
    expect(steps.err).toMatch(/If the book holds tokens.*`capture` and `logprobKind`.*docs\/gateway.md/);
    await cli.ok(`train ucb --out ${join(cli.folder, "b")} --id b`);
    const foreign = await cli.run("batch assemble --target b --level step --advantage none");
    expect(foreign.err).toContain("Targets of other families: a, logged (family chooser).");
  });
});

describe("a non-inferiority margin", () => {
  const row = { id: "d", measures: { reward: 1, quality: 1, cost: null, latency: null } } as JudgedRow;
  it("is refused if it is as wide as the rewards, and one is proposed", () => {
    const ask = (epsilonQuality: number, range?: { low: number; high: number }) =>
      requireMargin([row], { epsilonQuality, range, isChained: false });
    expect(() => ask(5)).toThrow(/--epsilon-quality.* is 5, .* any policy would pass\. .* such as 0\.05/);
    expect(() => ask(1)).toThrow("any policy would pass");
    expect(() => ask(0.5, { low: 0, high: 0.5 })).toThrow("any policy would pass");
    ask(0.5);
    ask(5, { low: 0, high: 10 });
  });

  it("is compared with the range of the returns of a chain, unless that is stated", () => {
    const chain = ["a", "b", "c"].map((id) => ({ ...row, id, chain: "r" }) as JudgedRow);
    const ask = (epsilonQuality: number, range?: { low: number; high: number }) =>
      requireMargin(chain, { epsilonQuality, range, isChained: true });
    ask(2);
    expect(() => ask(3)).toThrow(/is 3, not less than the range of the return \(0 … 3\).* such as 0\.15/);
    expect(() => ask(2, { low: 0, high: 2 })).toThrow("(0 … 2)");
  });
});
