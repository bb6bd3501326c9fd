import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildProgram } from "../src/cli/program.ts";
import { helpOf } from "./support/command-tree.ts";
import { blockOf, moduleSections } from "./support/module-docs.ts";
import { publicModules } from "./support/public-api.ts";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const NPM = ["--no-audit", "--no-fund", "--loglevel=error"];

describe("the packed package", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-package-"));
  const run = (program: string, args: readonly string[], cwd = folder): string =>
    execFileSync(program, args, {
      cwd,
      encoding: "utf8",
      env: { ...process.env, NO_COLOR: "1", ROLLBOOK_HOME: join(folder, "home") },
    });
  let files: string[] = [];

  beforeAll(() => {
    if (!existsSync("dist/cli/main.js")) throw new Error("dist/ is missing. Run: npm run build");
    // `--ignore-scripts`, because `prepack` would rebuild dist/ while other tests use it.
    const pack = ["pack", "--json", "--ignore-scripts", ...NPM, "--pack-destination", folder];
    const [packed] = JSON.parse(run("npm", pack, process.cwd()));
    files = packed.files.map(({ path }: { path: string }) => path);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    run("npm", ["install", "--prefer-offline", "--ignore-scripts", ...NPM, join(folder, packed.filename)]);
  }, 120_000);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("holds the build, the licence, the documents and the examples, and neither tests nor sources", () => {
    expect(files).toEqual(expect.arrayContaining(["LICENSE", "README.md", "CHANGELOG.md", "package.json"]));
    expect(files).toEqual(
      expect.arrayContaining(["dist/cli/main.js", "dist/exports/base.js", "dist/exports/base.d.ts"]),
    );
    // `world.kind: tokens` starts these programs.
    expect(files).toEqual(
      expect.arrayContaining(
        ["server.py", "trainer.py"].map((name) => `python/rollbook_torch/rollbook_torch/${name}`),
      ),
    );
    const allowed =
      /^(dist\/.*\.(js|d\.ts|wasm|json|html|txt)|schemas\/.*\.json|suites\/.*\.yaml|docs\/.*\.md|docs\/images\/\w[\w-]*\.svg|examples\/.*|sim\/Dockerfile|python\/(rollbook\/(\w+\.py|py\.typed)|rollbook_slime\.py|rollbook_torch\/(rollbook_torch\/\w+\.py|pyproject\.toml|README\.md)|pyproject\.toml|README\.md|LICENSE)|LICENSE|README\.md|CHANGELOG\.md|CONTRIBUTING\.md|package\.json)$/;
    expect(files.filter((file) => !allowed.test(file) || /\.(test|contract)\./.test(file))).toEqual([]);
  });

  it("holds the page of the viewer, and the help of this very program, which prints it and loads nothing", async () => {
    expect(files).toEqual(expect.arrayContaining(["dist/view/viewer/page.html", "dist/cli/help.txt"]));
    const words = (text: string) => text.split(/\s+/).join(" ").trim();
    expect(words(readFileSync("dist/cli/help.txt", "utf8"))).toBe(words(helpOf(await buildProgram())));
  });

  it("keeps constants of modules constant: the engine reads a variable again at every use", () => {
    const chunks = files.filter((file) => file.startsWith("dist/chunks/"));
    expect(chunks).not.toEqual([]);
    const variables = /^var [A-Z][A-Z_0-9]+ = .*/m;
    expect(chunks.flatMap((file) => variables.exec(readFileSync(file, "utf8")) ?? [])).toEqual([]);
  });

  it("holds every page that its README links to", () => {
    const links = [...readFileSync("README.md", "utf8").matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)];
    expect(files).toEqual(expect.arrayContaining(links.map((match) => match[1]!)));
  });

  it("runs no script of its own on install", () => {
    expect(Object.keys(manifest.scripts)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(pre|post)?install$|^prepare$/)]),
    );
  });

  it("builds before it is packed", () => {
    expect(manifest.scripts.prepack).toContain("build");
  });

  it("gives the command rollbook, with the version of package.json", () => {
    expect(run("npx", ["--no-install", "rollbook", "--version"]).trim()).toBe(manifest.version);
  });

  const exampleFile = (name: string) => join(folder, "node_modules/rollbook/examples", name);

  it("runs the TypeScript of its README in an empty folder, with no sealing by hand", () => {
    const readme = readFileSync(join(folder, "node_modules/rollbook/README.md"), "utf8");
    copyFileSync(exampleFile("rollouts.jsonl"), join(folder, "rollouts.jsonl"));
    writeFileSync(join(folder, "batch.mjs"), blockOf(readme, "ts"));
    const first = run(process.execPath, ["batch.mjs"]);
    expect(first).toMatch(/^sha256:[0-9a-f]{64} \{[^}]*\brows: 27,/);
    expect(first).toContain("r-0001 0\n");
    // The same book gives the same batch again.
    expect(run(process.execPath, ["batch.mjs"])).toBe(first);
  });

  it.each(moduleSections())("runs the example of $specifier in an empty folder", ({ example, output }) => {
    const place = mkdtempSync(join(folder, "example-"));
    copyFileSync(exampleFile("two-rollouts.jsonl"), join(place, "rollouts.jsonl"));
    writeFileSync(join(place, "example.mjs"), example);
    expect(output).not.toBe("");
    expect(run(process.execPath, ["example.mjs"], place)).toBe(output);
  });

  it("launches an agent with three options", () => {
    const code = `
      import { defineRollout, launch } from "rollbook";
      const agent = defineRollout(async ({ i }) => ({ reward: i }));
      let sum = 0;
      for await (const each of launch([{ i: 1 }, { i: 2 }], { book: "launched", agent, samples: 2 })) sum += each.reward;
      console.log(sum);`;
    writeFileSync(join(folder, "launch.mjs"), code);
    expect(run(process.execPath, ["launch.mjs"])).toBe("6\n");
  });

  it("loads every subpath", () => {
    const specifiers = publicModules().map(({ specifier }) => specifier);
    expect(specifiers).not.toEqual([]);
    const code = `for (const each of ${JSON.stringify(specifiers)})
      console.log(each, Object.keys(await import(each)).length > 0);`;
    writeFileSync(join(folder, "load.mjs"), code);
    expect(run(process.execPath, ["load.mjs"])).toBe(specifiers.map((each) => `${each} true\n`).join(""));
  });

  it("hides what it does not export", () => {
    const code = 'import("rollbook/dist/exports/base.js").catch((error) => console.log(error.code))';
    expect(run(process.execPath, ["-e", code]).trim()).toBe("ERR_PACKAGE_PATH_NOT_EXPORTED");
  });
});
