/** The chat request of the gateway's benchmarks, as its client sends it. Pure. */

export const PROMPT = "What does the quick brown fox do, and to whom? ".repeat(6).trim();

export function chatBody(stream: boolean, model = "bench-model", prompt = PROMPT): string {
  return JSON.stringify({
    model,
    messages: [
      { role: "system", content: "You are a helpful assistant. Answer briefly and to the point." },
      { role: "user", content: prompt },
    ],
    temperature: 0.7,
    ...(stream ? { stream: true } : {}),
  });
}
