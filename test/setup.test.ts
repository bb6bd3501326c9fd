import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { planSetUp } from "../scripts/setup-plan.mjs";

const missing = [
  { name: "sandbox", packages: ["bubblewrap"], check: () => false },
  {
    name: "queue",
    packages: ["nats-server", "bubblewrap"],
    command: ["node", "make-peer.mjs"],
    check: () => false,
  },
];
const debianRoot = { isDebian: true, isRoot: true, mayInstall: true, requireAll: false };

describe("planSetUp", () => {
  it("does and says nothing when nothing is missing", () => {
    expect(planSetUp([], debianRoot)).toEqual({ packages: [], commands: [], lines: [], exitCode: 0 });
  });

  it("as root on Debian installs each missing package and runs each command once, and says so first", () => {
    const twin = { ...missing[1]!, name: "twin", command: ["node", "make-peer.mjs"] };
    expect(planSetUp([...missing, twin], debianRoot).commands).toEqual([["node", "make-peer.mjs"]]);
    const plan = planSetUp(missing, debianRoot);
    expect(plan.packages).toEqual(["bubblewrap", "nats-server"]);
    expect(plan.commands).toEqual([["node", "make-peer.mjs"]]);
    expect(plan.lines).toEqual([
      "Setting up sandbox, queue (ROLLBOOK_NO_SETUP=1 forbids this):",
      "  apt-get install bubblewrap nats-server",
      "  node make-peer.mjs",
    ]);
  });

  it.each([
    ["when installing is forbidden", { mayInstall: false }, "To enable: sudo apt-get install bubblewrap"],
    ["without root", { isRoot: false }, "To enable: sudo apt-get install bubblewrap"],
    ["elsewhere than Debian", { isDebian: false }, "install what Debian calls bubblewrap"],
  ])(
    "%s installs nothing and says which suites are skipped and how to enable them",
    (_name, change, remedy) => {
      const plan = planSetUp(missing, { ...debianRoot, ...change });
      expect([plan.packages, plan.commands, plan.exitCode]).toEqual([[], [], 0]);
      expect(plan.lines).toHaveLength(2);
      expect(plan.lines[0]).toContain("skipped: sandbox.");
      expect(plan.lines[0]).toContain(remedy);
      expect(plan.lines[1]).toMatch(/^skipped: queue\..*then node make-peer\.mjs$/);
    },
  );

  it("fails where nothing may be skipped and nothing can be installed", () => {
    const plan = planSetUp(missing, { ...debianRoot, mayInstall: false, requireAll: true });
    expect(plan.exitCode).toBe(1);
    expect(plan.lines[0]).toContain("MISSING: sandbox.");
  });
});

describe("scripts/setup.mjs", () => {
  const setUp = (job: string, env: NodeJS.ProcessEnv = {}) =>
    spawnSync(process.execPath, ["scripts/setup.mjs", job], {
      env: { ROLLBOOK_NO_SETUP: "1", PATH: process.env.PATH, ...env },
      encoding: "utf8",
    });

  it("asks nothing of the machine for the demo", () => {
    const { status, stderr } = setUp("demo", { PATH: "/nonexistent", CI: "true" });
    expect([status, stderr]).toEqual([0, ""]);
  });

  it("refuses an unknown job as wrong usage", () => {
    expect(setUp("tests").status).toBe(2);
  });

  it("reports what is missing when no program is on the PATH, and fails only where nothing may be skipped", () => {
    const bare = setUp("test", { PATH: "/nonexistent" });
    const strict = setUp("test", { PATH: "/nonexistent", ROLLBOOK_REQUIRE_ALL: "1" });
    expect(bare.status).toBe(0);
    expect(bare.stderr).toContain("skipped: sandbox (bubblewrap).");
    expect(strict.status).toBe(1);
    expect(strict.stderr).toContain("MISSING: sandbox (bubblewrap).");
  });
});

describe("package-lock.json", () => {
  it("names every optional platform package, without which npm ci refuses it", () => {
    const { status, stderr } = spawnSync(process.execPath, ["scripts/complete-lock.mjs", "--check"], {
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([0, ""]);
  });

  it("names no registry: packages come from the one the user has configured", () => {
    const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
    const resolved = Object.entries<{ resolved?: string }>(packages).filter(([, entry]) => entry.resolved);
    expect(resolved).toEqual([]);
  });
});
