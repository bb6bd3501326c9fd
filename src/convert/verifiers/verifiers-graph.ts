/** The calls of a rollout as a graph of messages: a history that several calls resend is stored once, and forks share
 *  their beginning. Tokens are placed so that the nodes from a root to a leaf give the exact sequence. Pure. */
import { type ChatTurn, readTurn, sameTurn } from "../chat/index.ts";
import type { HandedCall, HandedTokens } from "../handover/index.ts";
import { type TraceMessage, traceMessages, traceTools } from "../traces/index.ts";
import type { VerifiersMessage, VerifiersNode } from "./verifiers-records.ts";

interface GraphNode {
  readonly parent: number | null;
  readonly turn: ChatTurn;
  readonly message: VerifiersMessage;
  sampled: boolean;
  readonly tools: ReturnType<typeof traceTools>;
  ids: number[];
  mask: boolean[];
  logprobs: number[];
}

export class MessageGraph {
  readonly #nodes: GraphNode[] = [];
  /** The reply node of each call. Null if the call has no reply. */
  readonly replies: (number | null)[] = [];

  constructor(calls: readonly HandedCall[]) {
    for (const { record, prompt, reply, tools } of calls) {
      let at: number | null = null;
      const offered = traceTools(tools);
      for (const turn of prompt.map(readTurn)) at = this.#walk(at, { turn, tools: offered, sampled: false });
      const asked: number | null = at;
      if ((record.response.status ?? 200) < 400)
        for (const turn of reply.map(readTurn)) at = this.#walk(at, { turn, tools: offered, sampled: true });
      this.replies.push(at === asked ? null : at);
    }
  }

  get size(): number {
    return this.#nodes.length;
  }

  /** Puts the tokens of a stream on the replies that sampled them, each with the prompt before it. If this cannot give
   *  the exact sequence, all tokens go on the last reply. */
  placeTokens({ ids, mask, logprobs, segments }: HandedTokens): void {
    const owners = segments.map(({ call }) => (call === undefined ? null : (this.replies[call] ?? null)));
    const inLine = owners.every(
      (owner, i) => owner !== null && (i === 0 || this.#follows(owner, owners[i - 1]!)),
    );
    const last = owners.findLast((owner) => owner !== null) ?? this.#lastReply();
    let from = 0;
    for (const [i, { end }] of segments.entries()) {
      const to = i === segments.length - 1 ? ids.length : end;
      const node = this.#nodes[inLine ? owners[i]! : last]!;
      for (let t = from; t < to; t++) {
        node.ids.push(ids[t]!);
        node.mask.push(mask[t] === 1);
        if (mask[t] === 1) node.logprobs.push(logprobs[t]!);
      }
      from = to;
    }
  }

  nodes({ timestamp, advantage }: { timestamp: number; advantage: number | null }): VerifiersNode[] {
    return this.#nodes.map(({ parent, message, sampled, tools, ids, mask, logprobs }) => ({
      ...{ parent, message, sampled, timestamp, token_ids: ids, mask, logprobs },
      ...(advantage === null || logprobs.length === 0 ? {} : { advantages: logprobs.map(() => advantage) }),
      ...(parent === null && tools.length > 0 ? { tools } : {}),
    }));
  }

  #walk(parent: number | null, step: Pick<GraphNode, "turn" | "tools" | "sampled">): number | null {
    const known = this.#nodes.findIndex((node) => node.parent === parent && sameTurn(node.turn, step.turn));
    if (known >= 0) {
      // One turn may be several messages. The last message ends the turn.
      return this.#endOf(known, step.turn);
    }
    let at = parent;
    for (const message of traceMessages(step.turn)) {
      this.#nodes.push({
        parent: at,
        ...step,
        message: verifiersMessage(message),
        ids: [],
        mask: [],
        logprobs: [],
      });
      at = this.#nodes.length - 1;
    }
    return at;
  }

  #endOf(first: number, turn: ChatTurn): number {
    let at = first;
    for (let i = 1; i < traceMessages(turn).length; i++) {
      const next = this.#nodes.findIndex((node) => node.parent === at);
      if (next < 0) break;
      at = next;
    }
    return at;
  }

  #follows(node: number, before: number): boolean {
    for (let at: number | null = node; at !== null; at = this.#nodes[at]!.parent)
      if (at === before) return true;
    return false;
  }

  /** Tokens need a reply node. A rollout without a recorded call gets an empty reply. */
  #lastReply(): number {
    const found = this.#nodes.findLastIndex(({ sampled }) => sampled);
    if (found >= 0) return found;
    const parent = this.#nodes.length === 0 ? null : this.#nodes.length - 1;
    const turn: ChatTurn = { role: "assistant", parts: [] };
    const message: VerifiersMessage = { role: "assistant", content: "" };
    this.#nodes.push({ parent, turn, message, sampled: true, tools: [], ids: [], mask: [], logprobs: [] });
    return this.#nodes.length - 1;
  }
}

function verifiersMessage({ role, content, ...rest }: TraceMessage): VerifiersMessage {
  // Only an assistant message may have no content.
  return { role, content: role === "assistant" ? content : (content ?? ""), ...rest };
}
