/** The conversation of a rollout as a tree of messages: which call continues which, and how faithfully.
 *  In: the messages of each call, as keys. Out: the call it continues and the drift. Pure: no clock, no store.
 *  CLEAN: the prompt contains an earlier reply as it was, and no earlier prompt continued that reply.
 *  REALIGN: the prompt goes on after an earlier prompt with a reply that was altered on the way.
 *  FORK: the prompt leaves the conversation earlier, or continues what was continued already. */

export type Drift = "CLEAN" | "REALIGN" | "FORK";

interface TreePlace {
  readonly drift: Drift;
  /** The call this one continues; absent for the first call and for a fork from the very beginning. */
  readonly parent?: number;
  /** Earlier calls whose replies stand in this prompt: proof that they were received. */
  readonly received: readonly number[];
}

export interface TreeMessage {
  readonly key: string;
  /** Spoken by the model. */
  readonly isReply: boolean;
}

interface TreeNode {
  readonly children: Map<string, TreeNode>;
  /** The call that said this message. */
  replyOf?: number;
  /** The last call whose prompt ended here. */
  askedBy?: number;
}

export class MessageTree {
  readonly #root: TreeNode = { children: new Map() };
  /** Where the prompt of each call ends. */
  readonly #ends = new Map<number, TreeNode>();

  /** Adds the prompt of a call. */
  ask(call: number, messages: readonly TreeMessage[]): TreePlace {
    const received: number[] = [];
    let node = this.#root;
    let depth = 0;
    /** The last thing on the way that another call said or asked. */
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
    // The prompt of an earlier call, and then a reply that is not the one it got.
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
