import { execFile, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { startUpstream } from "../examples/sums/upstream.mjs";
import { python } from "../scripts/python.mjs";
import * as requirement from "../scripts/setup/python-package.mjs";
import { systemClock } from "../src/base/index.ts";
import { CAPS } from "../src/collect/gateway-replies.ts";
import { exportBatch } from "../src/convert/batch/index.ts";
import { readBatch } from "../src/keep/batch/index.ts";
import { openBook } from "../src/store/index.ts";
import { fastFolder } from "./support/fast-folder.ts";
import { TestGateway, TOKEN } from "./support/gateway.ts";
import { describeNeeding } from "./support/needs.ts";
import { anyBatch, sealBatch } from "./support/random-batches.ts";
import { plainRow } from "./support/read-exports.ts";

/** Prints a batch in the form of `plainRow`. */
const SHOW_BATCH = `
import json, sys
from rollbook import Book, load_batch, read_batch
def show(row):
    plain = dict(content=row.content, stream=row.stream, rolloutId=row.rollout_id, group=row.group, weightBps=row.weight_bps,
        samples=row.samples, reward=row.reward, segments=[[s.start, s.end, s.revision, s.digest] for s in row.segments])
    if row.tokens is not None: return {**plain, **{name: values.tolist() for name, values in row.tokens.items()}}
    return {**plain, "steps": [dict(chosen=s.chosen, probability=s.probability, reward=s.reward, advantage=s.advantage,
        candidates=[dict(id=c.id, probability=c.probability, selectable=c.selectable) for c in s.candidates]) for s in row.steps]}
`;

const FIND_ROLLOUT = `
import json, sys
from rollbook import Book, RollbookError, read_batch
book = Book(sys.argv[1])
def error_of(work):
    try: work()
    except RollbookError as error: return str(error)
endings = [book.rollout(name)["ending"]["kind"] for name in book.rollouts()]
digest = book.digests("rollbook.rollout-content.v1")[0]
assert book.rollout(digest[7:19]) == book.rollout("py:1")
print(json.dumps([book.rollouts(), endings, error_of(lambda: book.rollout("py")), error_of(lambda: read_batch(book, "abcd"))]))
`;

it("a cap of the gateway is the same limit in Python", () => {
  const source = readFileSync("python/rollbook/endings.py", "utf8");
  for (const [code, { status, limit }] of Object.entries(CAPS))
    expect(source).toContain(`"${code}": (${status}, "${limit}"),`);
});

await describeNeeding(requirement, "the Python package", () => {
  const folder = fastFolder("python-package");
  const installed = join(folder, "installed");
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  beforeAll(() => {
    const build = spawnSync(process.execPath, ["scripts/build-python.mjs", folder], { encoding: "utf8" });
    expect([build.status, build.stderr]).toEqual([0, ""]);
    const wheel = join(folder, "rollbook-0.1.0-py3-none-any.whl");
    run(["-m", "zipfile", "-e", wheel, installed]);
  });

  /** Runs Python with the built wheel, not with the sources. */
  function run(words: readonly string[], input = "") {
    const env = { ...process.env, PYTHONPATH: installed };
    const { status, stdout, stderr } = spawnSync(python, words, {
      ...{ input, env, encoding: "utf8", maxBuffer: 1 << 28 },
    });
    return { status, stdout, stderr };
  }

  const jsonLines = (text: string) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));

  it("the archives hold the modules, the marker for type checkers, the licence and, for builders, the tests", () => {
    const list = (file: string) =>
      run(["-m", file.endsWith(".whl") ? "zipfile" : "tarfile", "-l", join(folder, file)]).stdout;
    const modules = readdirSync("python/rollbook").filter((name) => /\.py$|^py\.typed$/.test(name));
    expect(modules.length).toBeGreaterThan(8);
    for (const name of modules)
      expect(list("rollbook-0.1.0-py3-none-any.whl")).toContain(`rollbook/${name} `);
    for (const name of ["LICENSE", "README.md", "pyproject.toml", "tests/test_executor.py"])
      expect(list("rollbook-0.1.0.tar.gz")).toContain(`rollbook-0.1.0/${name}`);
  });

  it("has the version of the npm package", () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(run(["-c", "import rollbook; print(rollbook.__version__)"]).stdout.trim()).toBe(version);
    expect(readFileSync("python/pyproject.toml", "utf8")).toContain(`\nversion = "${version}"\n`);
  });

  it("its own tests pass", () => {
    const { status, stderr } = run(["-W", "error", "-m", "unittest", "discover", "-s", "python/tests"]);
    expect([status, stderr]).toEqual([0, expect.stringMatching(/Ran [1-9]\d* tests/)]);
  });

  it("its types hold under mypy --strict", () => {
    // The cache holds what mypy knows of numpy, by content. Without it mypy reads the types of numpy in every run.
    const args = ["-m", "mypy", "--cache-dir", ".cache/mypy", "--config-file", "python/pyproject.toml"];
    expect(run([...args, "python/rollbook"]).stdout).toMatch(/^Success/);
  });

  it("agents and the client import no numpy", () => {
    const program =
      "import sys, rollbook; rollbook.Gateway, rollbook.executor; print('numpy' in sys.modules)";
    expect(run(["-c", program]).stdout.trim()).toBe("False");
  });

  it("reads every value of a batch from the book and from each format, and names a value that differs", async () => {
    const root = join(folder, "book");
    const book = await openBook(root, { clock: systemClock, largeBytes: 64 });
    const expected: unknown[] = [];
    const lines: string[] = [];
    for (const [i, random] of fc.sample(anyBatch, { numRuns: 16, seed: 5 }).entries()) {
      const { shelf, digest } = sealBatch(random);
      for (const [name, { kind, bytes }] of shelf.blobs) expect(book.put(kind, bytes)).toBe(name);
      const batch = await readBatch(shelf.read, digest);
      const files = ["npz", "safetensors", "parquet", "jsonl"] as const;
      for (const format of files) await exportBatch(batch, { format, out: join(folder, `${i}.${format}`) });
      lines.push([digest, ...files.map((format) => join(folder, `${i}.${format}`))].join(" "));
      expected.push(random.rows.map(plainRow));
    }
    await book.close();
    const { status, stdout, stderr } = run(
      [
        "-c",
        `${SHOW_BATCH}
book = Book(sys.argv[1])
assert book.verify() == len(book) > 0
for line in sys.stdin:
    digest, *files = line.split()
    batch = read_batch(book, digest[7:27])
    for file in files:
        loaded = load_batch(file, book=book)
        assert list(map(str, loaded.rows())) == list(map(str, batch.rows())), file
    print(json.dumps([show(row) for row in batch.rows()]))`,
        root,
      ],
      lines.join("\n"),
    );
    expect([status, stderr]).toEqual([0, ""]);
    expect(jsonLines(stdout)).toEqual(expected);

    const [digest, npz] = lines[0]!.split(" ");
    const changed = `import sys, numpy as np
from rollbook import load_batch
with np.load(sys.argv[1]) as file: columns = {name: file[name].copy() for name in file.files}
columns["rewards"][0] += 1
np.savez(sys.argv[2], **columns)
load_batch(sys.argv[2])
load_batch(sys.argv[2], book=sys.argv[3])`;
    const { stderr: said } = run(["-c", changed, npz!, join(folder, "changed.npz"), root]);
    expect(said).toContain(`its values are not those of batch ${digest} in the book`);
  });

  it("finds a changed byte in a pack", async () => {
    const root = join(folder, "damaged");
    const book = await openBook(root, { clock: systemClock });
    const digest = book.put("test.kind", Buffer.from("what was written"));
    await book.close();
    const [name] = readdirSync(join(root, "packs"));
    const pack = join(root, "packs", name!);
    const bytes = readFileSync(pack);
    bytes[bytes.indexOf("what was written")]! ^= 1;
    writeFileSync(pack, bytes);
    for (const call of [`read(${JSON.stringify(digest)})`, "verify()"]) {
      const { status, stderr } = run([
        "-c",
        `import sys; from rollbook import Book; Book(sys.argv[1]).${call}`,
        root,
      ]);
      expect([status, stderr]).toEqual([1, expect.stringContaining("DamagedError")]);
    }
  });

  it("the client records a rollout through the gateway, scores it, and sends feedback once", async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const test = await TestGateway.open({ upstreams: { main: { baseUrl: upstream.url } } });
    const program = `
import json, os, sys
from rollbook import Gateway, GatewayError, failed_by
gateway = Gateway(sys.argv[1], token=os.environ["TOKEN"])
with gateway.rollout("py:1", task="greet", max_turns=2, seed=2**63) as run:
    run.chat([{"role": "user", "content": "hello"}], model="gpt-test")
    open_ids = [each["id"] for each in gateway.open_rollouts()]
    run.score("polite", 0.5)
    run.finish({"said": "hello"})
added = [gateway.feedback("solved", 1, rollout="py:1", key="k") for _ in range(2)]
try:
    with gateway.rollout("py-2", task="greet") as other:
        other.chat([{"role": "user", "content": "again"}], model="gpt-test")
        raise failed_by("task", "no such page")
except Exception as error: raised = str(error)
try: gateway.rollout("py:1")
except GatewayError as error: status = error.status
print(json.dumps([open_ids, added, raised, status, sorted(run.sealed)]))`;
    const { stdout } = await promisify(execFile)(python, ["-c", program, test.gateway.url], {
      env: { ...process.env, PYTHONPATH: installed, TOKEN },
    });
    const [openIds, added, raised, status, sealed] = JSON.parse(stdout);
    expect([openIds, added, raised, status]).toEqual([["py:1"], [true, false], "no such page", 409]);
    expect(sealed).toContain("content");
    const artifacts = await test.artifacts();
    // A sealed rollout is found again by its id. The error for a wrong name lists the existing ones.
    const found = run(["-c", FIND_ROLLOUT, test.root]);
    expect([found.stderr, JSON.parse(found.stdout)]).toEqual([
      "",
      [
        ["py:1", "py-2"],
        ["terminal", "failed"],
        expect.stringMatching(/has no rollout 'py'\. It has 2: py:1, py-2\. `rollbook artifact ls` lists/),
        expect.stringMatching(/has no batch yet\. Cut one with `rollbook batch assemble --book /),
      ],
    ]);
    expect(
      artifacts.map(({ rolloutId, ending, calls, seed }) => [rolloutId, ending, calls.length, seed]),
    ).toEqual([
      ["py:1", expect.objectContaining({ kind: "terminal" }), 1, String(2n ** 63n)],
      ["py-2", expect.objectContaining({ kind: "failed", owner: "task" }), 1, expect.anything()],
    ]);
    expect(artifacts[0]!.scores).toEqual([{ name: "polite", value: 0.5, weight: 1 }]);
    expect(await test.feedback()).toHaveLength(1);
  });

  it("the example that loads q_h says what to install where the package is missing", () => {
    const { status, stderr } = spawnSync("python3", ["-S", resolve("examples/read_replay.py"), "x"], {
      encoding: "utf8",
      env: { PATH: process.env.PATH },
    });
    expect([status, stderr]).toEqual([1, expect.stringContaining("No module named 'rollbook'")]);
  });
});
