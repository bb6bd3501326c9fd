/** Suites that need more than npm installs. They run where the requirement holds. Elsewhere they are skipped by name,
 *  or fail if nothing may be skipped (CI=true or ROLLBOOK_REQUIRE_ALL=1). In: a requirement module of scripts/setup/.
 *  Installs nothing: `npm test` has done that before. */
import { describe, it } from "vitest";

export interface Requirement {
  readonly name: string;
  readonly packages: readonly string[];
  /** The remedy if no package satisfies the requirement. */
  readonly remedy?: string;
  check(): boolean | Promise<boolean>;
}

export const nothingMayBeSkipped = process.env.CI === "true" || process.env.ROLLBOOK_REQUIRE_ALL === "1";

/** One requirement that holds if all of them hold. */
export function allOf(...requirements: readonly Requirement[]): Requirement {
  return {
    name: requirements.map(({ name }) => name).join(", "),
    packages: requirements.flatMap(({ packages }) => packages),
    remedy: requirements.map(remedyOf).join("; "),
    check: async () => (await Promise.all(requirements.map((each) => each.check()))).every(Boolean),
  };
}

function remedyOf({ remedy, packages }: Requirement): string {
  return remedy ?? `install ${packages.join(", ")}`;
}

export async function describeNeeding(
  requirement: Requirement,
  title: string,
  body: () => void,
): Promise<void> {
  const remedy = remedyOf(requirement);
  if (await requirement.check()) {
    describe(title, body);
  } else if (nothingMayBeSkipped) {
    describe(title, () => {
      it(`has what it needs: ${requirement.name}`, () => {
        throw new Error(`missing: ${requirement.name}. To enable: ${remedy}.`);
      });
    });
  } else {
    describe.skip(`${title} (needs ${requirement.name}: ${remedy})`, body);
  }
}
