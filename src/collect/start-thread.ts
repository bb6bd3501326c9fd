/** Starts a module of this package as a thread, compiled or from source, or returns its file for a process. In: the
 *  caller's URL and the name of a module beside it. Out: a Worker, or a path. Does not wait for the thread and sends
 *  it no message. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker, type WorkerOptions } from "node:worker_threads";

/** `beside` is the `import.meta.url` of the caller; `name` comes without an extension. */
export function startThread(beside: string, name: string, options: WorkerOptions): Worker {
  if (!beside.endsWith(".ts")) return new Worker(new URL(`./${name}.js`, beside), options);
  return new Worker(fromSource(new URL(`./${name}.ts`, beside).href), { ...options, eval: true });
}

const files = new Map<string, string>();

/** The file of a module that Node runs as a program. From source the file is a bundle, removed when this process
 *  ends. */
export function moduleFile(beside: string, name: string): string {
  if (!beside.endsWith(".ts")) return fileURLToPath(new URL(`./${name}.js`, beside));
  const module = new URL(`./${name}.ts`, beside).href;
  const known = files.get(module);
  if (known !== undefined) return known;
  const folder = mkdtempSync(join(tmpdir(), "rollbook-module-"));
  const file = join(folder, `${name}.cjs`);
  writeFileSync(file, fromSource(module));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  files.set(module, file);
  return file;
}

const bundles = new Map<string, string>();

/** From source (tests, tools), a new thread would have to load a TypeScript loader first. A bundle starts in a
 *  seventh of that time, and tests start many threads. The bundler is the esbuild of tsx, which the parent already
 *  uses. */
function fromSource(module: string): string {
  const known = bundles.get(module);
  if (known !== undefined) return known;
  const require = createRequire(import.meta.url);
  const esbuild = createRequire(require.resolve("tsx/package.json"))("esbuild") as Esbuild;
  const { outputFiles } = esbuild.buildSync({
    entryPoints: [fileURLToPath(module)],
    ...{ bundle: true, write: false, platform: "node", format: "cjs", target: "node20" },
    // Every thread parses the text again.
    ...{ minifyWhitespace: true, minifySyntax: true },
    // Large, used by few threads, and loaded only when needed.
    external: ["@aws-sdk/client-s3"],
    define: { "import.meta.url": JSON.stringify(module) },
  });
  const [{ text }] = outputFiles;
  bundles.set(module, text);
  return text;
}

interface Esbuild {
  buildSync(options: object): { readonly outputFiles: readonly [{ readonly text: string }] };
}
