export { CHAT_LOG_FAMILY, chatLogDraft, isChatLog } from "./chat-log.ts";
export { type ChatPart, type ChatTurn, readTurn, sameTurn } from "./read-turn.ts";
export {
  type ChatMessage,
  type ExportedConversation,
  type PairRow,
  pairRows,
  plainText,
  type SftRow,
  sftRow,
  toMessages,
} from "./write-chat.ts";
