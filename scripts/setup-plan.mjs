/** Decides what the set-up does. Pure: knows nothing of this machine but what it is told.
 *  In: the requirements that do not hold, and the machine. Out: packages to install, lines to say first, exit code. */

/**
 * @typedef {{ name: string, packages: readonly string[], remedy?: string, check(): boolean | Promise<boolean> }} Requirement
 * @typedef {{ isDebian: boolean, isRoot: boolean, mayInstall: boolean, requireAll: boolean }} Machine
 * @param {readonly Requirement[]} missing
 * @param {Machine} machine
 * @returns {{ install: string[], lines: string[], exitCode: 0 | 1 }}
 */
export function planSetUp(missing, machine) {
  if (missing.length === 0) return { install: [], lines: [], exitCode: 0 };
  const packages = [...new Set(missing.flatMap((requirement) => requirement.packages))].sort();
  if (machine.isDebian && machine.isRoot && machine.mayInstall && packages.length > 0) {
    const suites = missing.map(({ name }) => name).join(", ");
    const line = `Installing with apt-get for ${suites}: ${packages.join(" ")} (ROLLBOOK_NO_SETUP=1 forbids this)`;
    return { install: packages, lines: [line], exitCode: 0 };
  }
  const verdict = machine.requireAll ? "MISSING" : "skipped";
  const lines = missing.map(
    (requirement) => `${verdict}: ${requirement.name}. ${remedyOf(requirement, machine)}`,
  );
  if (machine.requireAll) lines.push("Nothing may be skipped here (CI=true or ROLLBOOK_REQUIRE_ALL=1).");
  return { install: [], lines, exitCode: machine.requireAll ? 1 : 0 };
}

function remedyOf({ packages, remedy }, { isDebian }) {
  if (remedy !== undefined) return `To enable: ${remedy}`;
  if (packages.length === 0) return "This machine cannot run it.";
  if (isDebian) return `To enable: sudo apt-get install ${packages.join(" ")}`;
  return `To enable: install what Debian calls ${packages.join(", ")}, or run the tests in a Debian container.`;
}
