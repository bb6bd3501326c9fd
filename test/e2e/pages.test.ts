import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { python } from "../../scripts/python.mjs";
import { serverFolder } from "../../scripts/servers.mjs";
import * as natsServer from "../../scripts/setup/nats-server.mjs";
import * as pythonPackage from "../../scripts/setup/python-package.mjs";
import { type CommandShell, startCommandShell } from "../support/command-shell.ts";
import { freePort } from "../support/free-port.ts";
import { describeNeeding } from "../support/needs.ts";
import {
  type Block,
  blocksOf,
  fileOf,
  isOutput,
  isRun,
  scriptOf,
  unmarked,
  unnamed,
  withPorts,
} from "../support/page-examples.ts";
import { runScript } from "../support/run-script.ts";

const pages = [
  "README.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => `docs/${path}`)
    .sort(),
].map((page) => ({ page, blocks: blocksOf(readFileSync(page, "utf8")) }));

let shell: CommandShell;
beforeAll(async () => {
  shell = await startCommandShell();
});
afterAll(() => shell.stop());

describe("the examples of the documents", () => {
  it("are blocks marked as run, or as not run with a reason", () => {
    const faults = pages.flatMap(({ page, blocks }) => unmarked(blocks).map(({ line }) => `${page}:${line}`));
    expect(faults).toEqual([]);
  });

  it("have the name of a file in the text above it, because a rendered page hides the one in the block", () => {
    const faults = pages.flatMap(({ page }) =>
      unnamed(readFileSync(page, "utf8")).map(({ line }) => `${page}:${line}`),
    );
    expect(faults).toEqual([]);
    expect(unnamed("# A\n\nSave `a.js`:\n\n```js file=b.js\n```\n")).toHaveLength(1);
  });

  it("fail at the first command that fails, with its line and its exit code", async () => {
    const page =
      "# Page\n\n```sh\ntrue\ngrep absent /dev/null # exit 1\n```\n\n```sh\nls absent\necho reached\n```\n";
    const { folder, env } = emptyFolder([1, 2]);
    const { code, out, err } = await runScript(scriptOf(blocksOf(page), [1, 2]), { cwd: folder, env });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("line 8: exit 2 from: ls absent");
    const marks = ["sh", "sh skip", 'sh no-run=""', 'sh no-run="needs Docker"', "", "yaml"];
    const blocks = blocksOf(marks.map((mark) => `\`\`\`${mark}\nrollbook init\n\`\`\`\n`).join("\n"));
    expect(unmarked(blocks).map(({ info }) => info)).toEqual(["sh skip", 'sh no-run=""', ""]);
  });

  runPages(pages.filter(({ blocks }) => blocks.some(isRun) && !startsNats(blocks) && !runsPython(blocks)));
});

await describeNeeding(pythonPackage, "the examples of the documents that run Python with numpy", () =>
  runPages(pages.filter(({ blocks }) => runsPython(blocks))),
);

await describeNeeding(natsServer, "the examples of the documents that start a NATS server", () =>
  runPages(pages.filter(({ blocks }) => startsNats(blocks))),
);

function startsNats(blocks: readonly Block[]): boolean {
  return blocks.some((block) => isRun(block) && /^nats-server /m.test(block.text));
}

function runsPython(blocks: readonly Block[]): boolean {
  return blocks.some((block) => isRun(block) && /^python /m.test(block.text));
}

function runPages(run: typeof pages): void {
  it.each(run)(
    "run from an empty folder, in the order of $page",
    async ({ blocks }) => {
      const ports = [await freePort(), await freePort()];
      const { folder, env, words } = emptyFolder(ports);
      for (const block of blocks) {
        const name = fileOf(block);
        if (name === undefined) continue;
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        writeFileSync(join(folder, name), withPorts(block.text, ports));
      }
      const programs = `${shell.rollbook(words)}\nnpx() { "$@"; }\nnode_modules/.bin/rollbook() { rollbook "$@"; }`;
      const { code, out, err } = await runScript(`${programs}\n${scriptOf(blocks, ports)}`, {
        cwd: folder,
        env,
      });
      expect(code, `${out.slice(-2000)}\n${err.slice(-2000)}`).toBe(0);
      for (const { text } of blocks.filter(isOutput)) expect(out).toContain(text);
    },
    180_000,
  );
}

/** A project folder with only the package installed. `words` is a shell snippet that changes a command's words. */
function emptyFolder(ports: readonly number[]): { folder: string; env: NodeJS.ProcessEnv; words: string } {
  const root = mkdtempSync(join(tmpdir(), "rollbook-page-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const [folder, bin] = [join(root, "project"), join(root, "bin")];
  for (const path of [join(folder, "node_modules"), bin]) mkdirSync(path, { recursive: true });
  installPackage(join(folder, "node_modules/rollbook"), ports);
  // The file that `npm install` leaves. With it, no package.json in a parent folder decides what `rollbook` is.
  writeFileSync(join(folder, "package.json"), JSON.stringify({ dependencies: { rollbook: "*" } }));
  const words = `case "$*" in
  "gateway "*) set -- "$@" --port ${ports[0]} ;;
  "init --example"*) set -- "$@" --upstream http://127.0.0.1:${ports[1]}/v1 ;;
  # These agents import the package, which is no link to another place once npm has installed it.
  "reward serve "* | "launch --tasks"*own-family* | "launch --tasks"*scored.mjs*) set -- "$@" --share "${resolve(".")}" "${realpathSync("node_modules")}" ;;
esac`;
  const programs = {
    rollbook: `exec "${process.execPath}" "${resolve("dist/cli/main.js")}" "$@"`,
    // The path that `pip install node_modules/rollbook/python` would give.
    python: `PYTHONPATH="${resolve("python")}" exec "${python}" "$@"`,
  };
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const { ROLLBOOK_BOOK: _, ...inherited } = process.env;
  const path = `${bin}:${dirname(process.execPath)}:${serverFolder}:${process.env.PATH}`;
  return { folder, env: { ...inherited, PATH: path, ROLLBOOK_HOME: join(root, "home") }, words };
}

/** The files that npm would install, with free ports in the examples. */
function installPackage(folder: string, ports: readonly number[]): void {
  mkdirSync(folder);
  for (const name of ["package.json", "dist", "schemas", "suites"])
    symlinkSync(resolve(name), join(folder, name));
  cpSync("examples", join(folder, "examples"), { recursive: true });
  const config = join(folder, "examples/sums/gateway.yaml");
  writeFileSync(config, withPorts(readFileSync(config, "utf8"), ports));
}
