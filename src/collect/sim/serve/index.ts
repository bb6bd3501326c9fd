export { chatCompletion, chatStream, readChat, refuse } from "./chat-wire.ts";
export { type ServedUpstream, serveOnLoopback } from "./loopback.ts";
export { type ModelHandler, serveSimulatedModels, simulatedModels } from "./model-server.ts";
export { badRecording, parseRecording, type Recording } from "./recording.ts";
