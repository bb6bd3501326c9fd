/** The prompt of a request, as every policy reads it: the last message of the user, else the last message.
 *  In: messages of any dialect, as JSON. Out: text. The gateway that asks a router and the dataset it learns from use
 *  the same function, so training and serving see the same prompt. */

export function promptOfMessages(messages: readonly unknown[]): string {
  for (let i = messages.length - 1; i >= 0; i--) if (isUsers(messages[i])) return textOfMessage(messages[i]);
  return textOfMessage(messages.at(-1));
}

export function isUsers(message: unknown): boolean {
  return (message as { role?: unknown } | null)?.role === "user";
}

/** The message's text, or the text of its parts. Media parts have no text. */
function textOfMessage(message: unknown): string {
  const content = (message as { content?: unknown } | null | undefined)?.content;
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? (content as ({ text?: unknown } | null)[]) : [];
  return parts.map((part) => (typeof part?.text === "string" ? part.text : "")).join("\n");
}
