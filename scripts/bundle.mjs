/** Bundles the compiled modules of dist/ into few files: a command that loads eight hundred modules spends more time on
 *  loading them than on its work. Every entry shares the same chunks, so there is one copy of each module, both for the
 *  command line and for imports. Packages stay outside. */
import { cpSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import { build } from "vite";

/** The command line, and its entry for scripts. */
const PROGRAMS = ["cli/main", "cli/run"];

/** `dist`: the absolute path of the folder that tsc filled. Replaces its modules; declarations and other files stay. */
export async function bundle(dist) {
  const scratch = join(dist, ".bundle");
  const exported = readdirSync(join(dist, "exports")).filter((name) => name.endsWith(".js"));
  const names = [
    "index",
    ...exported.map((name) => `exports/${name.slice(0, -3)}`),
    ...PROGRAMS,
    ...started(dist),
  ];
  await build({
    ...{ root: dist, configFile: false, logLevel: "warn", publicDir: false },
    plugins: [sourceUrls(dist)],
    build: {
      ...{ ssr: true, target: "node20", minify: false, outDir: scratch },
      rollupOptions: {
        input: Object.fromEntries(names.map((name) => [name, join(dist, `${name}.js`)])),
        output: {
          ...{ format: "esm", entryFileNames: "[name].js", chunkFileNames: "chunks/[name]-[hash].js" },
          // Vite makes each constant of a module a `var`, which the engine has to read again at every use.
          topLevelVar: false,
        },
      },
    },
  });
  for (const path of readdirSync(dist, { recursive: true, encoding: "utf8" }))
    if (path.endsWith(".js") && !path.startsWith(".bundle")) rmSync(join(dist, path));
  cpSync(scratch, dist, { recursive: true });
  rmSync(scratch, { recursive: true });
}

/** Modules that are started by their file, as threads and processes: src/collect/start-thread.ts. */
function started(dist) {
  const modules = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".js"),
  );
  return modules.flatMap((path) => {
    const code = readFileSync(join(dist, path), "utf8");
    const names = [...code.matchAll(/\b(?:startThread|moduleFile)\(import\.meta\.url, "([^"]+)"/g)];
    return names.map(([, name]) => join(dirname(path), name).split(sep).join("/"));
  });
}

/** Keeps `import.meta.url` as the module's own place, although its code moves: files beside it are found through it. */
function sourceUrls(dist) {
  const mark = (path) => `__url_of__(${JSON.stringify(path)})`;
  return {
    name: "source-urls",
    enforce: "pre",
    transform(code, id) {
      if (!id.startsWith(dist)) return undefined;
      return code.replaceAll(/(?<!["`])import\.meta\.url/g, mark(relative(dist, id).split(sep).join("/")));
    },
    renderChunk(code, { fileName }) {
      if (!code.includes("__url_of__")) return undefined;
      return code.replaceAll(/__url_of__\("([^"]+)"\)/g, (_, path) => {
        if (path === fileName) return "import.meta.url";
        return `new URL(${JSON.stringify(posix.relative(posix.dirname(fileName), path))}, import.meta.url).href`;
      });
    },
  };
}
