import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const NPM = ["--no-audit", "--no-fund", "--loglevel=error"];

describe("the packed package", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-package-"));
  const run = (program: string, args: readonly string[], cwd = folder): string =>
    execFileSync(program, args, { cwd, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } });
  let files: string[] = [];

  beforeAll(() => {
    if (!existsSync("dist/cli/main.js")) throw new Error("dist/ is missing. Run: npm run build");
    const [packed] = JSON.parse(
      run("npm", ["pack", "--json", ...NPM, "--pack-destination", folder], process.cwd()),
    );
    files = packed.files.map(({ path }: { path: string }) => path);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    run("npm", ["install", "--prefer-offline", "--ignore-scripts", ...NPM, join(folder, packed.filename)]);
  }, 120_000);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("holds the build, the licence and the documents, and neither tests nor sources", () => {
    expect(files).toEqual(expect.arrayContaining(["LICENSE", "README.md", "CHANGELOG.md", "package.json"]));
    expect(files).toEqual(
      expect.arrayContaining(["dist/cli/main.js", "dist/base/index.js", "dist/base/index.d.ts"]),
    );
    const allowed =
      /^(dist\/.*\.(js|d\.ts|wasm|json)|schemas\/.*\.json|docs\/.*\.md|LICENSE|README\.md|CHANGELOG\.md|package\.json)$/;
    expect(files.filter((file) => !allowed.test(file) || /\.(test|contract)\./.test(file))).toEqual([]);
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

  it("gives the command rollbook, with the version of package.json", () => {
    expect(run("npx", ["--no-install", "rollbook", "--version"]).trim()).toBe(manifest.version);
  });

  it("runs the demo in an empty folder", () => {
    expect(run("npx", ["--no-install", "rollbook", "demo"])).not.toBe("");
  });

  it("loads every subpath", () => {
    const subpaths = Object.keys(manifest.exports).filter((subpath) =>
      manifest.exports[subpath].endsWith(".js"),
    );
    expect(subpaths).not.toEqual([]);
    for (const subpath of subpaths) {
      const code = `import(${JSON.stringify(`rollbook${subpath.slice(1)}`)}).then((m) => console.log(Object.keys(m).length))`;
      expect(Number(run(process.execPath, ["-e", code])), subpath).toBeGreaterThan(0);
    }
  });

  it("hides what it does not export", () => {
    const code = 'import("rollbook/dist/base/index.js").catch((error) => console.log(error.code))';
    expect(run(process.execPath, ["-e", code]).trim()).toBe("ERR_PACKAGE_PATH_NOT_EXPORTED");
  });
});
