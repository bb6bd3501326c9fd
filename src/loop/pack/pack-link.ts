/** Defines a link of the chain behind a pack: its subject, its digest, and the result of its check. */
import { reasonOf } from "../../base/index.ts";

export interface PackLink {
  readonly what: string;
  readonly digest?: string;
  /** Reason why the link is broken. */
  readonly broken?: string;
  readonly below: readonly PackLink[];
}

/** The links that `check` returns are placed below this link; an error that it throws breaks the link. */
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

/** All broken links with their paths. */
export function brokenLinks(root: PackLink, path = root.what): { path: string; broken: string }[] {
  const own = root.broken === undefined ? [] : [{ path, broken: root.broken }];
  return [...own, ...root.below.flatMap((each) => brokenLinks(each, `${path} → ${each.what}`))];
}
