/** Builds the page of `rollbook view` from viewer/ into dist/view/viewer/page.html: one file with script and style
 *  inside, and a content security policy that allows a browser to run only that script. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { build } from "vite";

const viewer = fileURLToPath(new URL("../viewer/", import.meta.url));
const out = new URL("../dist/view/viewer/", import.meta.url);

const [{ output }] = [
  await build({
    root: viewer,
    configFile: false,
    logLevel: "warn",
    plugins: [svelte({ configFile: false })],
    build: {
      write: false,
      target: "es2022",
      cssCodeSplit: false,
      lib: { entry: `${viewer}src/main.ts`, formats: ["iife"], name: "viewer", fileName: "viewer" },
    },
  }),
].flat();

const script = output
  .filter(({ type }) => type === "chunk")
  .map(({ code }) => code)
  .join("\n")
  // Escapes text that would end the script, or open the state in which no tag ends it.
  .replaceAll(/<(?=\/script|!--|script)/gi, "\\x3c");
const style = output
  .filter(({ fileName }) => fileName.endsWith(".css"))
  .map(({ source }) => String(source))
  .join("\n");

const hashOf = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const parts = {
  policy: `<meta http-equiv="Content-Security-Policy" content="${policy}" />`,
  style: `<style>${style}</style>`,
  script: `<script>${script}</script>`,
};
const page = readFileSync(`${viewer}index.html`, "utf8").replaceAll(
  /<!--(policy|style|script)-->/g,
  (_, name) => parts[name],
);
mkdirSync(out, { recursive: true });
writeFileSync(new URL("page.html", out), page);
