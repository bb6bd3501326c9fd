import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { python } from "../scripts/python.mjs";
import * as validators from "../scripts/setup/python-manifests.mjs";
import { buildProgram } from "../src/cli/program.ts";
import { parseGatewayConfig } from "../src/collect/gateway/index.ts";
import { parseNatsUrl } from "../src/collect/queue/nats/index.ts";
import { parseLoopConfig } from "../src/loop/index.ts";
import { parseOnly } from "./support/command-tree.ts";
import { composeFaults, kubernetesFaults, rollbookWords } from "./support/manifest-rules.ts";
import { describeNeeding } from "./support/needs.ts";

const FOLDER = "examples/cluster";
const read = (name: string) => readFileSync(join(FOLDER, name), "utf8");
const readCompose = () => parse(read("compose.yaml"), { merge: true }) as Record<string, unknown>;

function readObjects(): Record<string, unknown>[] {
  const documents = parseAllDocuments(read("kubernetes.yaml"));
  if (!Array.isArray(documents)) throw new Error("kubernetes.yaml is empty");
  expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
  return documents.map((document) => document.toJS() as Record<string, unknown>);
}

/** Python programs. They bundle the schemas of the Compose Specification and of Kubernetes 1.37, and use no network. */
const VALIDATORS = {
  "compose.yaml": ["check_jsonschema", "--builtin-schema", "vendor.compose-spec"],
  "kubernetes.yaml": ["kubernetes_validate", "--strict"],
} as const;

/** Objects that the commands at the head of kubernetes.yaml create. */
const MADE = {
  configMaps: ["rollbook"],
  secrets: { rollbook: ["nats-password", "gateway-token", "s3-secret"] },
};

describe("the manifests of the example cluster", () => {
  it("break no rule", () => {
    expect([...composeFaults(readCompose()), ...kubernetesFaults(readObjects(), MADE)]).toEqual([]);
  });

  it("make what the rules count on, in the commands at the head of the file", () => {
    const head = read("kubernetes.yaml").split("apiVersion")[0]!;
    for (const key of MADE.secrets.rollbook) expect(head).toContain(`--from-literal=${key}=`);
    for (const [, file] of head.matchAll(/--from-file=(\S+)/g)) expect(read(file!)).not.toBe("");
  });

  it("give rollbook words that it takes, and a queue URL that it reads", async () => {
    const all = rollbookWords(readCompose(), readObjects());
    expect(all.map(([command]) => command).sort()).toEqual(
      ["gateway", "gateway", "gateway", "run", "run", "worker", "worker"].sort(),
    );
    for (const words of all) {
      // The program looks up a bucket before it parses the words.
      const local = words.map((word) => (word.startsWith("s3://") ? "book" : word));
      await parseOnly(await buildProgram(undefined, local), ["rollbook", ...local]);
      const queue = words[words.indexOf("--queue") + 1]!;
      if (words.includes("--queue")) expect(parseNatsUrl(queue)).toMatchObject({ name: "sums" });
    }
  });

  it("have a loop whose route and queue are those of the gateways and workers", () => {
    const { queue, gateways, world } = parseLoopConfig(read("loop.yaml"), "loop.yaml", FOLDER);
    const { peers, routes } = parseGatewayConfig(read("gateway.yaml"));
    expect(parseNatsUrl(queue!)).toMatchObject({ name: "sums" });
    expect(gateways).toEqual(Object.values(peers));
    expect(world).toMatchObject({ kind: "agent", gateway: join(FOLDER, "gateway.yaml"), route: "auto" });
    expect(Object.keys(routes)).toEqual(["auto"]);
  });

  it("have a gateway configuration that is valid and lists every gateway under its own name", () => {
    const { peers, listen } = parseGatewayConfig(read("gateway.yaml"));
    const names = ["gateway-0", "gateway-1"];
    expect(Object.keys(peers)).toEqual(names);
    for (const url of Object.values(peers)) expect(listen.names).toContain(new URL(url).hostname);
    expect(Object.keys(readCompose().services as object)).toEqual(expect.arrayContaining(names));
    const gateways = readObjects().find(
      ({ kind, metadata }) => kind === "StatefulSet" && (metadata as { name: string }).name === "gateway",
    )!;
    expect((gateways.spec as { replicas: number }).replicas).toBe(names.length);
  });

  it("say that no real cluster has run them", () => {
    for (const name of ["compose.yaml", "kubernetes.yaml"])
      expect(read(name)).toContain("Not tested on a real cluster.");
  });
});

await describeNeeding(validators, "the schemas of compose files and of Kubernetes", () => {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-manifests-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const validate = (name: keyof typeof VALIDATORS, text = read(name)) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return spawnSync(python, ["-m", ...VALIDATORS[name], file], { encoding: "utf8" });
  };

  it.each([
    ["compose.yaml", "depends_on", "depend_on"],
    ["kubernetes.yaml", "serviceName", "serviceNam"],
  ] as const)("accept %s, and not with a misspelt %s", (name, from, to) => {
    expect(validate(name)).toMatchObject({ status: 0 });
    const { status, stdout, stderr } = validate(name, read(name).replaceAll(from, to));
    expect([status, stdout + stderr]).toEqual([1, expect.stringContaining(`'${to}' was unexpected`)]);
  });
});

describe("the rules for manifests", () => {
  const broken = (change: (text: string) => string, name: string) => change(read(name));

  it.each([
    ["an image that moves", "nats:2.15.2-alpine", "nats:latest", /not pinned/],
    ["a password in the file", `\${NATS_PASSWORD:?set a password for the queue}`, "hunter2", /NATS_PASSWORD/],
    ["a volume that is not declared", '"runs:/data/runs"', '"lost:/data"', /lost.* not declared/],
    ["a dependency that is not there", "gateway-0: { condition", "gateway-9: { condition", /gateway-9/],
    ["an open port", '"127.0.0.1:8790:8790"', '"8790:8790"', /beyond loopback/],
  ])("find %s in a compose file", (_what, from, to, fault) => {
    const text = broken((whole) => whole.replaceAll(from, to), "compose.yaml");
    expect(composeFaults(parse(text, { merge: true }) as Record<string, unknown>).join("\n")).toMatch(fault);
  });

  it.each([
    ["an old API", "apps/v1", "apps/v1beta1", /API of its kind/],
    [
      "a service without pods",
      "selector: { app: s3 }\n  ports",
      "selector: { app: s4 }\n  ports",
      /selects no pod/,
    ],
    ["a container that may run as root", "runAsNonRoot: true", "runAsNonRoot: false", /root/],
    ["a secret that nobody makes", "key: s3-secret", "key: s3-key", /rollbook\/s3-key/],
    ["a mount without a volume", "{ name: config, mountPath", "{ name: other, mountPath", /mounts other/],
    ["unbounded memory", ", limits: { memory: 1Gi }", "", /no bound of memory/],
  ])("find %s in objects of Kubernetes", (_what, from, to, fault) => {
    const text = broken((whole) => whole.replaceAll(from, to), "kubernetes.yaml");
    const objects = parseAllDocuments(text) as { toJS(): unknown }[];
    const faults = kubernetesFaults(
      objects.map((each) => each.toJS() as Record<string, unknown>),
      MADE,
    );
    expect(faults.join("\n")).toMatch(fault);
  });
});
