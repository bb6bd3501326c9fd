import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, it } from "vitest";
import { buildProgram } from "../src/cli/program.ts";
import { Cli } from "./support/cli.ts";
import { commandsOf, fullName } from "./support/command-tree.ts";
import { exportLines } from "./support/public-api.ts";

const FOLDER = ".cache/snippets";
const pages = [
  "README.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => `docs/${path}`),
];

/** The ```ts blocks of a page, each with the line it begins on. */
function snippetsOf(page: string): { name: string; code: string }[] {
  const text = readFileSync(page, "utf8");
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => {
    const line = text.slice(0, match.index).split("\n").length;
    return { name: `${page.replaceAll(/[/.]/g, "-")}-line-${line}.ts`, code: match[1]! };
  });
}

/** True if a row of the table names `GROUP`, `GROUP NAME`, or `GROUP OTHER` and then `NAME`. */
function isListed(table: string, name: string): boolean {
  const [group = "", own = group] = name.split(" ");
  return table.split("\n").some((row) => {
    const [, names = ""] = row.split("|");
    const words = [...names.matchAll(/`([^`]+)`/g)].map(([, each]) => each!);
    const isGroup = words.some((each) => each === group || each.startsWith(`${group} `));
    return isGroup && words.some((each) => each === group || each === own || each.startsWith(name));
  });
}

describe("the documents", () => {
  it("hold TypeScript that compiles against the built package", () => {
    if (!existsSync("dist/base/index.d.ts")) throw new Error("dist/ is missing. Run: npm run build");
    rmSync(FOLDER, { recursive: true, force: true });
    mkdirSync(FOLDER, { recursive: true });
    const snippets = pages.flatMap(snippetsOf);
    expect(snippets.some(({ name }) => name.startsWith("README"))).toBe(true);
    for (const { name, code } of snippets) writeFileSync(`${FOLDER}/${name}`, `${code}\nexport {};\n`);
    // Inside the package, its own name resolves through its exports, as it does for a user.
    writeFileSync(
      `${FOLDER}/tsconfig.json`,
      JSON.stringify({
        extends: "../../tsconfig.json",
        compilerOptions: { noUnusedLocals: false },
        include: ["*.ts"],
      }),
    );
    const tsc = "node_modules/typescript/bin/tsc";
    const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", FOLDER], { encoding: "utf8" });
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });

  it("begin with an example that runs and prints the digest of the batch that the commands cut", async () => {
    const [example] = snippetsOf("README.md");
    copyFileSync("examples/rollouts.jsonl", `${FOLDER}/rollouts.jsonl`);
    writeFileSync(`${FOLDER}/batch.mjs`, example!.code);
    const cli = new Cli();
    const { stdout, stderr } = spawnSync(process.execPath, ["batch.mjs"], {
      cwd: FOLDER,
      encoding: "utf8",
      env: { ...process.env, ROLLBOOK_HOME: cli.home },
    });
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^sha256:[0-9a-f]{64} \{[^}]*\brows: 27,[\s\S]*\br-0001 0\n/);
    await cli.ok("init");
    await cli.ok("artifact import examples/rollouts.jsonl");
    const [{ digest }] = await cli.json("batch assemble --target writer-r3 --level token");
    expect(stdout.slice(0, 71)).toBe(digest);
  });

  it("need twelve lines of TypeScript and one import for that", () => {
    const [example] = snippetsOf("README.md");
    const code = example!.code.trimEnd();
    expect(code.split("\n").length).toBeLessThanOrEqual(12);
    expect(code.match(/from "[^"]+"/g)).toEqual(['from "rollbook"']);
  });

  it("have a line for every name of the front door, and for no other", () => {
    const rows = readFileSync("docs/reference/library.md", "utf8").matchAll(/^\| `(\w+)\(/gm);
    const values = exportLines(readFileSync("src/index.ts", "utf8")).filter(
      (line) => !line.startsWith("type "),
    );
    const functions = values.filter((name) => name !== "RollbookError");
    expect([...rows].map(([, name]) => name!).sort()).toEqual(functions.sort());
    expect(functions.length).toBeLessThanOrEqual(30);
  });

  it("list every command in docs/reference/cli.md, and those with --json in its second table", async () => {
    const [, commands = "", json = ""] = readFileSync("docs/reference/cli.md", "utf8").split(
      /^\| command .*$/m,
    );
    const leaves = commandsOf(await buildProgram()).filter((each) => each.options.length > 0);
    const absent = (table: string, of: typeof leaves) =>
      of
        .map((each) => fullName(each).replace(/^rollbook ?/, ""))
        .filter((name) => name !== "" && !isListed(table.split(/\n\n/)[0]!, name));
    expect(absent(commands, leaves)).toEqual([]);
    const withJson = leaves.filter(({ options }) => options.some(({ long }) => long === "--json"));
    expect(absent(json, withJson)).toEqual([]);
  });

  it("name the two commands of the README as .ci/run runs them", () => {
    const readme = readFileSync("README.md", "utf8");
    const ci = readFileSync(".ci/run", "utf8");
    for (const command of ["npm ci && npm test", "npm ci && npm run demo"]) expect(readme).toContain(command);
    const stages = [...ci.matchAll(/^stage "(npm ci|npm test|npm run demo)"$/gm)].map(
      ([, command]) => command,
    );
    expect(stages).toEqual(["npm ci", "npm test", "npm run demo"]);
  });
});
