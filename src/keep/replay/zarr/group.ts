/** Groups: the folders of a Zarr hierarchy, with attributes, and consolidated metadata of a whole tree.
 *  In: a store and paths ("" is the root of the store). Out: `zarr.json` of groups, and back. */
import { RollbookError } from "../../../base/index.ts";
import {
  type Attributes,
  badMetadata,
  formatNode,
  type GroupMetadata,
  metadataKey,
  type NodeMetadata,
  parseNode,
} from "./metadata.ts";
import type { ReadableStore, Store } from "./store.ts";

export async function writeGroup(store: Store, path: string, attributes: Attributes = {}): Promise<void> {
  await store.set(metadataKey(path), formatNode({ kind: "group", attributes, consolidated: undefined }));
}

/** Reads a group: its attributes, and its consolidated metadata, if any. */
export async function openGroup(store: ReadableStore, path: string): Promise<GroupMetadata> {
  const key = metadataKey(path);
  const bytes = await store.get(key);
  const node = bytes && parseNode(bytes, key);
  if (node?.kind === "group") return node;
  throw new RollbookError(
    "zarr-no-group",
    { path },
    `there is no group at ${path || "the root"}${node === undefined ? "" : ", but an array"}. Check the path.`,
  );
}

/** Copies the metadata of everything below a group into the group, as zarr-python 3 does, so that one read opens the
 *  tree. Call it last: readers that trust the copy do not see later changes below. */
export async function consolidate(store: Store, path: string): Promise<GroupMetadata> {
  const group = await openGroup(store, path);
  const whole: GroupMetadata = { ...group, consolidated: await readTree(store, path) };
  await store.set(metadataKey(path), formatNode(whole));
  return whole;
}

/** Metadata of everything below a group, read from the nodes themselves, by relative path. */
export async function readTree(store: Store, path: string): Promise<Map<string, NodeMetadata>> {
  const prefix = path === "" ? "" : `${path}/`;
  const nodes: [string, NodeMetadata][] = [];
  for await (const key of store.keys(prefix)) {
    if (!key.startsWith(prefix) || !key.endsWith("/zarr.json")) continue;
    if (key === metadataKey(path)) continue;
    const relative = key.slice(prefix.length, -"/zarr.json".length);
    const bytes = await store.get(key);
    if (bytes === undefined) throw badMetadata(key, "was removed while the tree was read");
    const node = parseNode(bytes, key);
    nodes.push([relative, node.kind === "group" ? { ...node, consolidated: undefined } : node]);
  }
  return new Map(nodes.sort(([a], [b]) => (a < b ? -1 : 1)));
}
