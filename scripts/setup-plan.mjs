/** Decides the actions of the set-up. Pure: it uses only its arguments.
 *  In: the missing requirements, and facts about the machine.
 *  Out: packages to install, then commands to run, lines to print first, and the exit code. */

/**
 * @typedef {{ name: string, packages: readonly string[], command?: readonly string[],
 *   remedy?: string, check(): boolean | Promise<boolean> }} Requirement
 * @typedef {{ isDebian: boolean, isRoot: boolean, mayInstall: boolean, requireAll: boolean }} Machine
 * @param {readonly Requirement[]} missing
 * @param {Machine} machine
 * @returns {{ packages: string[], commands: (readonly string[])[], lines: string[], exitCode: 0 | 1 }}
 */
export function planSetUp(missing, machine) {
  const nothing = { packages: [], commands: [], lines: [], exitCode: 0 };
  if (missing.length === 0) return nothing;
  const packages = [...new Set(missing.flatMap((requirement) => requirement.packages))].sort();
  // Requirements may share a command.
  const commands = [
    ...new Map(
      missing.flatMap(({ command }) => (command === undefined ? [] : [[command.join(" "), command]])),
    ).values(),
  ];
  const canInstall = machine.isDebian && machine.isRoot && machine.mayInstall;
  if (canInstall && packages.length + commands.length > 0) {
    const lines = [
      `Setting up ${missing.map(({ name }) => name).join(", ")} (ROLLBOOK_NO_SETUP=1 forbids this):`,
    ];
    if (packages.length > 0) lines.push(`  apt-get install ${packages.join(" ")}`);
    for (const command of commands) lines.push(`  ${command.join(" ")}`);
    return { packages, commands, lines, exitCode: 0 };
  }
  const verdict = machine.requireAll ? "MISSING" : "skipped";
  const lines = missing.map(
    (requirement) => `${verdict}: ${requirement.name}. ${remedyOf(requirement, machine)}`,
  );
  if (machine.requireAll) lines.push("Nothing may be skipped here (CI=true or ROLLBOOK_REQUIRE_ALL=1).");
  return { ...nothing, lines, exitCode: machine.requireAll ? 1 : 0 };
}

function remedyOf({ packages, command, remedy }, { isDebian }) {
  if (remedy !== undefined) return `To enable: ${remedy}`;
  const steps = [];
  if (packages.length > 0 && isDebian) steps.push(`sudo apt-get install ${packages.join(" ")}`);
  else if (packages.length > 0) steps.push(`install what Debian calls ${packages.join(", ")}`);
  if (command !== undefined) steps.push(command.join(" "));
  return steps.length > 0 ? `To enable: ${steps.join("; then ")}` : "This machine cannot run it.";
}
