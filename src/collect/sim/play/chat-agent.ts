/** The built-in agent: drives any OpenAI-compatible model through a task, by tools or in plain text.
 *  In: a visible task as payload, a model's name, a runner of the visible tests. Out: the files to hand in and the
 *  calls they took. The first call may go to a routed alias. Later calls name the model that answered, so a rollout has
 *  one routing decision (unless `route_every_turn` is set). Ends by submitting, by a limit, or when a model takes no
 *  more actions. Grades nothing. */
import { isRollbookError, type Json } from "../../../base/index.ts";
import type { Ending } from "../../../contract/index.ts";
import {
  failedBy,
  type Payload,
  type RolloutContext,
  type RolloutFunction,
  type RolloutOutput,
} from "../../rollout/index.ts";
import {
  type Action,
  actionOfCall,
  actionsInText,
  type Message,
  openingMessages,
  type Protocol,
  TEXT_PROTOCOL,
  TOOLS,
  type VisibleTask,
} from "../tasks/index.ts";
import { openEnvironment, type PaidCall, type RunTests, type TaskEnvironment } from "../world/index.ts";
import { type ModelAnswer, postChat, type Reply, readAnswer } from "./ask-model.ts";

/** Number of replies without an action after which the agent ends. */
const MAX_IDLE = 2;

export function chatAgent(runTests: RunTests): RolloutFunction {
  return async (payload, context) => {
    const visible = readVisible(payload);
    const talk = new AgentConversation(visible, context);
    const environment = openEnvironment(visible, (task, files) =>
      unlessStopped(runTests(task, files), context.signal),
    );
    const ending = await converse(talk, environment, context);
    return handIn(environment, talk.calls, ending);
  };
}

/** Reads the payload of a simulated task. Any other payload is the task's failure. */
export function readVisible(payload: Payload): VisibleTask {
  const visible = payload as unknown as VisibleTask;
  if (typeof visible.statement === "string" && Array.isArray(visible.editable) && visible.check !== undefined)
    return visible;
  throw failedBy("task", "the payload is not a simulated task: statement, editable or check is missing.");
}

async function converse(
  talk: AgentConversation,
  environment: TaskEnvironment,
  context: RolloutContext,
): Promise<Ending> {
  try {
    let idle = 0;
    while (!environment.submitted && idle < MAX_IDLE) {
      context.nextTurn();
      const actions = await talk.next();
      if (actions.length === 0) {
        idle++;
        talk.nudge();
        continue;
      }
      idle = 0;
      for (const { action, answers } of actions) talk.observe(await environment.act(action), answers);
    }
    return { kind: "terminal" };
  } catch (error) {
    // Files written so far still count: a limit ends the rollout but does not discard its work.
    for (const limit of ["turns", "budget", "time"] as const)
      if (isRollbookError(error, `limit-${limit}`)) return { kind: "truncated", limit };
    if (context.signal.aborted) return { kind: "truncated", limit: "time" };
    throw error;
  }
}

function handIn({ files }: TaskEnvironment, calls: readonly PaidCall[], ending: Ending): RolloutOutput {
  return {
    finalState: { files, calls } as unknown as Json,
    metrics: { calls: calls.length },
    ending,
  };
}

interface AskedAction {
  readonly action: Action;
  /** Id of the tool call that the observation answers. Undefined in plain text. */
  readonly answers: string | undefined;
}

/** The messages so far, and the model that answers them. */
class AgentConversation {
  readonly calls: PaidCall[] = [];
  readonly #context: RolloutContext;
  readonly #visible: VisibleTask;
  #messages: Message[];
  #model: string;
  #protocol: Protocol = "tools";

  constructor(visible: VisibleTask, context: RolloutContext) {
    const { model_id: model, text_protocol: text } = context.rolloutConfig;
    if (model === undefined)
      throw failedBy("infrastructure", "no model is named: give --model, or a router.");
    this.#model = model;
    this.#context = context;
    this.#visible = visible;
    if (text === true) this.#protocol = "text";
    this.#messages = openingMessages(visible, this.#protocol);
  }

  /** Asks the model and returns its actions. Empty if the reply holds no action. */
  async next(): Promise<AskedAction[]> {
    const { message, model, promptTokens, completionTokens } = await this.#ask();
    if (this.#context.rolloutConfig.route_every_turn !== true) this.#model = model;
    this.calls.push({ model, promptTokens, completionTokens });
    this.#messages.push(message);
    const called = message.tool_calls ?? [];
    if (called.length > 0) return called.map((call) => ({ action: actionOfCall(call), answers: call.id }));
    return (actionsInText(message.content ?? "") ?? []).map((action) => ({ action, answers: undefined }));
  }

  observe(text: string, answers: string | undefined): void {
    const last = this.#messages.at(-1)!;
    if (answers !== undefined) this.#messages.push({ role: "tool", tool_call_id: answers, content: text });
    else if (last.role === "user")
      this.#messages.splice(-1, 1, { role: "user", content: `${last.content}\n${text}` });
    else this.#messages.push({ role: "user", content: text });
  }

  nudge(): void {
    const how = this.#protocol === "tools" ? "Use a tool; submit when you are done." : TEXT_PROTOCOL;
    this.#messages.push({ role: "user", content: how });
  }

  async #ask(): Promise<ModelAnswer> {
    const reply = await this.#post();
    if (reply.status === 400 && this.#protocol === "tools" && /tool/i.test(reply.text)) {
      this.#protocol = "text";
      this.#messages = openingMessages(this.#visible, "text");
      return readAnswer(await this.#post(), this.#model);
    }
    return readAnswer(reply, this.#model);
  }

  #post(): Promise<Reply> {
    return postChat(this.#context, {
      model: this.#model,
      messages: this.#messages,
      ...(this.#protocol === "tools" ? { tools: TOOLS } : {}),
    });
  }
}

/** Rejects for the caller on abort. The sandbox itself keeps running. */
function unlessStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
