export { CHAT_LOG_FAMILY, chatLogDraft, chatLogFault, isChatLog } from "./chat-log.ts";
export { type ChatPart, type ChatTurn, readTurn, sameTurn, toolName } from "./read-turn.ts";
export {
  type ChatMessage,
  type ExportedConversation,
  pairRows,
  plainText,
  sftRow,
  toMessages,
} from "./write-chat.ts";
