/** The wire formats by name and by path. */
import { anthropicMessages } from "./anthropic-messages.ts";
import type { Dialect, DialectName } from "./dialect.ts";
import { openAiChat } from "./openai-chat.ts";
import { openAiCompletions } from "./openai-completions.ts";
import { openAiResponses } from "./openai-responses.ts";

const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  "openai-completions": openAiCompletions,
  "anthropic-messages": anthropicMessages,
};

const BY_PATH: ReadonlyMap<string, Dialect> = new Map(
  Object.values(DIALECTS).map((dialect) => [dialect.path, dialect]),
);

export function dialectAt(path: string): Dialect | undefined {
  return BY_PATH.get(path);
}

export function dialectNamed(name: DialectName): Dialect {
  return DIALECTS[name];
}
