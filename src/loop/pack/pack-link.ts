/** A link of the chain behind a pack: what it is, by which digest, and whether it holds. */
import { reasonOf } from "../../base/index.ts";

export interface PackLink {
  readonly what: string;
  readonly digest?: string;
  /** Why it does not hold. */
  readonly broken?: string;
  readonly below: readonly PackLink[];
}

/** What `check` returns stands below the link; what it throws breaks it. */
export async function link(
  what: string,
  check: () => Promise<{ digest?: string; below?: readonly PackLink[] }>,
): Promise<PackLink> {
  try {
    const { digest, below = [] } = await check();
    return { what, ...(digest === undefined ? {} : { digest }), below };
  } catch (error) {
    return { what, broken: reasonOf(error), below: [] };
  }
}

/** Every broken link, as the path to it. */
export function brokenLinks(root: PackLink, path = root.what): { path: string; broken: string }[] {
  const own = root.broken === undefined ? [] : [{ path, broken: root.broken }];
  return [...own, ...root.below.flatMap((each) => brokenLinks(each, `${path} → ${each.what}`))];
}
