export { type ChatPart, type ChatTurn, readTurn, sameTurn } from "./read-turn.ts";
