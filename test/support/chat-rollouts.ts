/** Rollouts with conversations, in the exchange form: a plain one with a tool, and one whose every text attacks its
 *  viewer. */
import { draftWire, stepWire } from "./shelf.ts";

type Wire = Record<string, unknown>;

const call = (messages: readonly unknown[], reply: unknown, over: Wire = {}): Wire => ({
  dialect: "openai-chat",
  model: "small-1",
  request: { messages, parameters: { temperature: 0 } },
  response: { messages: [reply], finishReason: "stop", status: 200 },
  usage: { promptTokens: 1200, completionTokens: 7 },
  costUsd: 0.0015,
  ...over,
});

const times = [
  { startedAtMs: 1100, firstByteMs: 30, durationMs: 80, delivery: "sent" },
  { startedAtMs: 1150, firstByteMs: 20, durationMs: 1500, delivery: "aborted" },
];

/** System, user, a tool call, its result, an answer. The second of the two calls resends the messages of the first. */
export function chatWire(name: string, over: Wire = {}): Wire {
  const system = { role: "system", content: "You track orders." };
  const user = { role: "user", content: "Where is order 7?\nIt is late." };
  const asks = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c-1", type: "function", function: { name: "track", arguments: '{"order": 7}' } }],
  };
  // The message as clients resend it: without nulls, and with reformatted arguments.
  const resent = {
    role: "assistant",
    tool_calls: [{ id: "c-1", type: "function", function: { name: "track", arguments: '{"order":7}' } }],
  };
  const result = { role: "tool", tool_call_id: "c-1", content: "in Lyon" };
  return draftWire(name, {
    calls: [
      call([system, user], asks),
      call([system, user, resent, result], { role: "assistant", content: "It is in Lyon." }),
    ],
    scores: [{ name: "solved", value: 1, weight: 1 }],
    streams: [stepWire({ step: { call: 0, reward: 0.5 } })],
    envelope: {
      worker: "worker-a",
      experiment: "first",
      startedAtMs: 1100,
      endedAtMs: 3000,
      callTimes: times,
    },
    ...over,
  });
}

/** Sets the window title, clears the screen, hides text, writes from right to left. */
export const STEERING = "\u001b]0;owned\u0007\u001b[2J\u001b[8mhidden\u009b31m\u202egnp.exe\r\u0008";
/** Scripts that run if a viewer interprets them as HTML; a run sets `window.owned`. */
export const SCRIPTS = [
  "<script>window.owned = 1</script>",
  '<img src="x" onerror="window.owned = 1">',
  '</script><script>window.owned = 1</script><svg onload="window.owned = 1">',
  '"><iframe srcdoc="<script>parent.owned = 1</script>"></iframe>',
  "<!--<script>", // puts the parser in a state in which </script> does not end a script
  "{@html '<script>window.owned = 1</script>'}",
  "javascript:window.owned=1",
];

export function hostileWire(name: string, { megabytes = 0 }: { megabytes?: number } = {}): Wire {
  const text = [STEERING, ...SCRIPTS].join("\n");
  const parts = [
    { role: SCRIPTS[1], content: text },
    {
      role: "user",
      content: [
        { type: "text", text },
        { type: "image_url", image_url: { url: `https://x/${SCRIPTS[1]}` } },
      ],
    },
    { role: "tool", tool_call_id: text, content: text },
    { odd: text },
  ];
  const asks = { role: "assistant", tool_calls: [{ id: text, function: { name: text, arguments: text } }] };
  const huge = {
    role: "assistant",
    content: `${SCRIPTS[0]}${"<b>x</b> \u001b[31m\n".repeat((megabytes * 1_000_000) / 15)}`,
  };
  return draftWire(name, {
    calls: [
      call(parts, asks, { model: SCRIPTS[0] }),
      ...(megabytes === 0 ? [] : [call([parts[1]], huge, { model: STEERING })]),
    ],
    ending: { kind: "failed", owner: "agent", message: text },
    streams: [stepWire({ step: { call: 0, reason: STEERING } })],
  });
}
