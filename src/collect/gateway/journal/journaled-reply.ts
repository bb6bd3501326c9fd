/** Reads the reply of a call in the journal, in any stored form. In: the entry, its dialect. Out: the facts of the
 *  reply. */
import type { Dialect, ReplyFacts } from "../dialects/index.ts";
import { type ReadReply, readerOf } from "../wire/index.ts";
import type { CalledEntry } from "./journal-call.ts";

export function replyOf({ replyForm, reply }: CalledEntry, dialect: Dialect): ReadReply {
  switch (replyForm) {
    case "none":
      return { reply: { messages: [] }, complete: true, hasUnread: false };
    case "facts":
      return { reply: JSON.parse(reply.toString()) as ReplyFacts, complete: true, hasUnread: false };
    case "json":
    case "sse": {
      const reader = readerOf(replyForm, dialect);
      reader.push(reply);
      return reader.finish();
    }
    default:
      return replyForm satisfies never;
  }
}
