/** The conversation of a rollout as a tree of messages. In: the messages of each call, as keys. Out: the call that
 *  each call continues, and the drift. Pure: no clock, no store.
 *  CLEAN: the prompt contains an earlier reply unchanged, and no earlier prompt continued that reply.
 *  REALIGN: the prompt continues an earlier prompt with a reply that was altered on the way.
 *  FORK: the prompt leaves the conversation earlier, or continues a reply that was already continued. */

export type Drift = "CLEAN" | "REALIGN" | "FORK";

interface TreePlace {
  readonly drift: Drift;
  /** The call that this call continues. Absent for the first call and for a fork from the very beginning. */
  readonly parent?: number;
  /** Earlier calls whose replies are in this prompt, which proves that they were received. */
  readonly received: readonly number[];
}

export interface TreeMessage {
  readonly key: string;
  /** True for a message of the model. */
  readonly isReply: boolean;
}

interface TreeNode {
  readonly children: Map<string, TreeNode>;
  /** The call that produced this message. */
  replyOf?: number;
  /** The last call whose prompt ended here. */
  askedBy?: number;
}

export class MessageTree {
  readonly #root: TreeNode = { children: new Map() };
  /** Node at which the prompt of each call ends. */
  readonly #ends = new Map<number, TreeNode>();

  /** Adds the prompt of a call. */
  ask(call: number, messages: readonly TreeMessage[]): TreePlace {
    const received: number[] = [];
    let node = this.#root;
    let depth = 0;
    /** The last reply of an earlier call on the path. */
    let last: { node: TreeNode; depth: number } | undefined;
    for (; depth < messages.length; depth++) {
      const next = node.children.get(messages[depth]!.key);
      if (next === undefined) break;
      node = next;
      if (node.replyOf !== undefined) {
        received.push(node.replyOf);
        last = { node, depth: depth + 1 };
      }
    }
    const place = this.#placeOf({ node, last, next: messages[depth] });
    for (; depth < messages.length; depth++) node = childOf(node, messages[depth]!.key);
    node.askedBy = call;
    this.#ends.set(call, node);
    return { ...place, received };
  }

  /** Adds the reply of a call: several messages if it had several parts. */
  reply(call: number, keys: readonly string[]): void {
    let node = this.#ends.get(call)!;
    for (const key of keys) node = childOf(node, key);
    if (keys.length > 0) node.replyOf ??= call;
  }

  #placeOf(walk: {
    node: TreeNode;
    last: { node: TreeNode; depth: number } | undefined;
    next: TreeMessage | undefined;
  }): { drift: Drift; parent?: number } {
    const { node, last, next } = walk;
    const asked = node.askedBy;
    // The prompt of an earlier call, followed by a reply other than its recorded reply.
    if (asked !== undefined && next?.isReply === true) return { drift: "REALIGN", parent: asked };
    if (last === undefined) return { drift: this.#ends.size === 0 ? "CLEAN" : "FORK" };
    const isFresh = last.node === node && last.node.children.size === 0;
    return { drift: isFresh ? "CLEAN" : "FORK", parent: last.node.replyOf! };
  }
}

function childOf(node: TreeNode, key: string): TreeNode {
  let child = node.children.get(key);
  if (child === undefined) {
    child = { children: new Map() };
    node.children.set(key, child);
  }
  return child;
}
