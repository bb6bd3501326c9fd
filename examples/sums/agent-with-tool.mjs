/** An agent with a tool, for Node 20 and newer, without a package: it asks a model, runs the tools that the model calls, and
 *  asks again until the model answers. */

const TOOLS = [
  {
    type: "function",
    function: {
      name: "add",
      description: "Adds numbers.",
      parameters: {
        type: "object",
        properties: { numbers: { type: "array", items: { type: "number" } } },
        required: ["numbers"],
      },
    },
  },
];

const run = {
  add: ({ numbers }) => numbers.reduce((sum, each) => sum + each, 0),
};

const MAX_TURNS = 4;

export default async function solve(task, context) {
  const messages = [{ role: "user", content: task.question }];
  for (let turns = 1; turns <= MAX_TURNS; turns++) {
    const message = await ask(messages, context);
    messages.push(message);
    const calls = message.tool_calls ?? [];
    if (calls.length === 0) {
      const right = Number(message.content) === task.answer;
      return { reward: right ? 1 : 0, metrics: { turns }, finalState: message.content };
    }
    for (const { id, function: called } of calls) {
      const result = run[called.name]?.(JSON.parse(called.arguments)) ?? `there is no tool ${called.name}`;
      messages.push({ role: "tool", tool_call_id: id, content: String(result) });
    }
  }
  return { reward: 0, ending: { kind: "truncated", limit: "turns" } };
}

async function ask(messages, { baseUrl, apiKey, rolloutConfig, signal }) {
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: rolloutConfig.model_id ?? "tiny", messages, tools: TOOLS }),
    signal,
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}: ${await response.text()}`);
  return (await response.json()).choices[0].message;
}
