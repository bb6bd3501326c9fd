/** A small rule set for the manifests of examples/cluster. In: parsed YAML. Out: faults, one line each. Finds names
 *  that refer to nothing, images without a fixed version, secrets in the file, and pods without limits. Does not know
 *  every field: where schema validators are installed, the test also runs them. */
import { isObject } from "../../src/base/index.ts";

type Tree = Record<string, unknown>;

const SECRET = /secret|password|token/i;

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>((node, key) => (isObject(node) ? (node as Tree)[key] : undefined), value);
}

function listAt(value: unknown, ...path: string[]): Tree[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? (found as Tree[]) : [];
}

function isPinned(image: unknown): boolean {
  return typeof image === "string" && /:[^/]+$/.test(image) && !image.endsWith(":latest");
}

export function composeFaults(file: Tree): string[] {
  const services = at(file, "services") as Record<string, Tree>;
  const known = (section: string) => Object.keys((file[section] ?? {}) as Tree);
  return Object.entries(services).flatMap(([name, service]) => {
    const faults: string[] = [];
    if (!isPinned(service.image)) faults.push(`image ${String(service.image)} is not pinned`);
    if (service.restart === undefined) faults.push("has no restart policy");
    for (const other of Object.keys((service.depends_on ?? {}) as Tree))
      if (services[other] === undefined) faults.push(`depends on ${other}, which is no service`);
    for (const volume of (service.volumes ?? []) as string[])
      if (!known("volumes").includes(volume.split(":")[0]!)) faults.push(`volume ${volume} is not declared`);
    for (const { source } of listAt(service, "configs"))
      if (!known("configs").includes(String(source))) faults.push(`config ${String(source)} is not declared`);
    for (const port of (service.ports ?? []) as string[])
      if (!port.startsWith("127.0.0.1:")) faults.push(`port ${port} is published beyond loopback`);
    for (const [variable, value] of Object.entries((service.environment ?? {}) as Tree))
      if (SECRET.test(variable) && !/^\$\{\w+:\?.+\}$/.test(String(value)))
        faults.push(`${variable} is not taken from the environment`);
    return faults.map((fault) => `${name}: ${fault}`);
  });
}

const API_OF: Readonly<Record<string, string>> = {
  ...{ Service: "v1", StatefulSet: "apps/v1", Deployment: "apps/v1", Job: "batch/v1" },
  ...{ PodDisruptionBudget: "policy/v1" },
};

/** `configMaps` and `secrets` name the objects that the user makes first, with their keys. */
export function kubernetesFaults(
  objects: readonly Tree[],
  made: { configMaps: readonly string[]; secrets: Readonly<Record<string, readonly string[]>> },
): string[] {
  const podLabels = objects.map((object) => at(object, "spec", "template", "metadata", "labels") as Tree);
  const services = new Set(objects.filter(({ kind }) => kind === "Service").map((each) => nameOf(each)));
  const selects = (selector: unknown, labels: Tree | undefined) =>
    isObject(selector) && labels !== undefined && Object.entries(selector).every(([k, v]) => labels[k] === v);
  return objects.flatMap((object) => {
    const { kind, apiVersion, spec } = object;
    const faults: string[] = [];
    if (API_OF[String(kind)] !== apiVersion) faults.push(`${String(apiVersion)} is not the API of its kind`);
    const selector = kind === "Service" ? at(spec, "selector") : at(spec, "selector", "matchLabels");
    const labels = at(spec, "template", "metadata", "labels") as Tree | undefined;
    if (kind === "Service" || kind === "PodDisruptionBudget") {
      if (!podLabels.some((each) => selects(selector, each))) faults.push("selects no pod");
    } else if (kind !== "Job" && !selects(selector, labels)) faults.push("does not select its own pods");
    if (kind === "StatefulSet" && !services.has(String(at(spec, "serviceName"))))
      faults.push("names a service that is not there");
    if (kind === "Job" && at(spec, "template", "spec", "restartPolicy") === undefined)
      faults.push("has no restartPolicy");
    const claims = listAt(spec, "volumeClaimTemplates").map((claim) => nameOf(claim));
    const pod = at(spec, "template", "spec");
    if (pod !== undefined) faults.push(...podFaults(pod as Tree, { claims, made }));
    return faults.map((fault) => `${String(kind)} ${nameOf(object)}: ${fault}`);
  });
}

function podFaults(
  pod: Tree,
  { claims, made }: { claims: readonly string[]; made: Parameters<typeof kubernetesFaults>[1] },
): string[] {
  const faults: string[] = [];
  if (at(pod, "securityContext", "runAsNonRoot") !== true) faults.push("may run as root");
  for (const volume of listAt(pod, "volumes")) {
    const map = at(volume, "configMap", "name");
    if (map !== undefined && !made.configMaps.includes(String(map)))
      faults.push(`config map ${String(map)} is not one that the head of the file makes`);
  }
  const volumes = new Set([...claims, ...listAt(pod, "volumes").map(({ name }) => name)]);
  for (const container of listAt(pod, "containers")) {
    if (!isPinned(container.image)) faults.push(`image ${String(container.image)} is not pinned`);
    if (at(container, "resources", "limits", "memory") === undefined) faults.push("has no bound of memory");
    if (at(container, "resources", "requests", "cpu") === undefined) faults.push("requests no processor");
    for (const { name } of listAt(container, "volumeMounts"))
      if (!volumes.has(name)) faults.push(`mounts ${String(name)}, which is no volume`);
    for (const variable of listAt(container, "env")) {
      const ref = at(variable, "valueFrom", "secretKeyRef") as { name: string; key: string } | undefined;
      if (ref !== undefined && !made.secrets[ref.name]?.includes(ref.key))
        faults.push(`secret ${ref.name}/${ref.key} is not one that the head of the file makes`);
      if (ref === undefined && SECRET.test(String(variable.name)))
        faults.push(`${String(variable.name)} stands in the file`);
    }
    const ports = new Set(
      listAt(container, "ports").flatMap(({ name, containerPort }) => [name, containerPort]),
    );
    for (const probe of ["readinessProbe", "livenessProbe"])
      for (const how of ["httpGet", "tcpSocket"]) {
        const port = at(container, probe, how, "port");
        if (typeof port === "string" && !ports.has(port))
          faults.push(`${probe} asks port ${port}, which has no name`);
      }
  }
  return faults;
}

function nameOf(object: Tree): string {
  return String(at(object, "metadata", "name"));
}

/** The words after `rollbook` of every container that runs it. */
export function rollbookWords(compose: Tree, objects: readonly Tree[]): string[][] {
  const ofServices = Object.values(at(compose, "services") as Record<string, Tree>)
    .filter(({ image, entrypoint }) => image === "rollbook:local" && entrypoint === undefined)
    .map(({ command }) => command as string[]);
  const ofPods = objects
    .flatMap((object) => listAt(object, "spec", "template", "spec", "containers"))
    .filter(({ image, command }) => image === "rollbook:local" && command === undefined)
    .map(({ args }) => args as string[]);
  return [...ofServices, ...ofPods];
}
