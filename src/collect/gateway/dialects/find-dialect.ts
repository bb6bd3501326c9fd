/** The wire formats by the path on which they are spoken. */
import { anthropicMessages } from "./anthropic-messages.ts";
import type { Dialect, DialectName } from "./dialect.ts";
import { openAiChat } from "./openai-chat.ts";
import { openAiCompletions } from "./openai-completions.ts";
import { openAiResponses } from "./openai-responses.ts";

const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ["/v1/chat/completions", openAiChat],
  ["/v1/responses", openAiResponses],
  ["/v1/completions", openAiCompletions],
  ["/v1/messages", anthropicMessages],
]);

export function dialectAt(path: string): Dialect | undefined {
  return DIALECTS.get(path);
}

const BY_NAME = new Map([...DIALECTS.values()].map((dialect) => [dialect.name, dialect]));

export function dialectNamed(name: DialectName): Dialect {
  return BY_NAME.get(name)!;
}
