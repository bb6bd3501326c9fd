/** The prompt of a request, as every policy reads it: the last words of the user, else the last message.
 *  In: messages of any dialect, as JSON. Out: text. One function for the gateway that asks a router and for the dataset it
 *  learns from: what a policy is trained on is what it is shown. */

export function promptOfMessages(messages: readonly unknown[]): string {
  for (let i = messages.length - 1; i >= 0; i--) if (isUsers(messages[i])) return textOfMessage(messages[i]);
  return textOfMessage(messages.at(-1));
}

export function isUsers(message: unknown): boolean {
  return (message as { role?: unknown } | null)?.role === "user";
}

/** Its text, or that of its parts; media have none. */
function textOfMessage(message: unknown): string {
  const content = (message as { content?: unknown } | null | undefined)?.content;
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? (content as ({ text?: unknown } | null)[]) : [];
  return parts.map((part) => (typeof part?.text === "string" ? part.text : "")).join("\n");
}
