/** Makes the parts of a gateway and connects them. In: the options, the secrets, the result of recovery. Out: parts
 *  that are not running; server.ts starts and stops them. */
import { type Clock, given } from "../../../base/index.ts";
import type { PromptVectors } from "../../../policy/index.ts";
import { HostCheck } from "../../host-check.ts";
import { type CallContext, isCredentialHeader, Returned, type TellEvent, TurnEnd } from "../call/index.ts";
import { compile, type GatewayConfig, PLACEHOLDER_KEYS } from "../config.ts";
import { Metrics } from "../metrics.ts";
import { redactCall, redactOptions, redactText } from "../redact/index.ts";
import {
  type ClosedIndex,
  NamedRecords,
  type Recovered,
  Rollouts,
  type RolloutsOptions,
} from "../rollouts/index.ts";
import { DecisionSealer, SealQueue } from "../sealing/index.ts";
import { firstInList, Routes, Upstream } from "../upstream/index.ts";
import { callStarter, type StartCall } from "./call-starter.ts";
import { ControlApi } from "./control-api.ts";
import type { GatewayOptions } from "./gateway-options.ts";
import { Gatekeeper } from "./identity.ts";
import { Peers } from "./peers.ts";
import { type Refuse, refuser } from "./refusals.ts";

/** Results of opening a gateway, before its parts are made. */
export interface GatewayFindings {
  readonly tokens: readonly string[];
  /** API keys of the upstreams, by upstream name. */
  readonly keys: ReadonlyMap<string, string>;
  readonly secrets: readonly string[];
  readonly closed: ClosedIndex;
  readonly recovered: Recovered;
  /** Directory of the journal. */
  readonly directory: string;
}

export interface GatewayParts {
  readonly gatekeeper: Gatekeeper;
  readonly hosts: HostCheck;
  readonly peers: Peers;
  readonly calls: CallContext;
  readonly sealing: SealQueue;
  readonly control: ControlApi;
  readonly startCall: StartCall;
  readonly refuse: Refuse;
}

/** Facts of the server that its parts need. */
interface ServerFacts {
  /** Number of requests in progress. */
  readonly active: () => number;
  /** Aborted when no client waits for an embedding any more. */
  readonly embedding: AbortSignal;
}

export function makeParts(
  options: GatewayOptions,
  { tokens, keys, secrets, closed, recovered, directory }: GatewayFindings,
  { active, embedding }: ServerFacts,
): GatewayParts {
  const { config, book, clock, rng, signer, newId, admit } = options;
  const { worker: gatewayName } = config;
  const { journal } = recovered;
  const metrics = new Metrics();
  const redact = redactOptions([...secrets, ...headerSecrets(config)], {
    patterns: config.redact.map((each) => compile(each)),
    redact: options.redact,
  });
  const returned = new Returned(redact.secrets);
  const log = (line: string) => options.log?.(redactText(line, redact));
  const sealing = new SealQueue({
    ...{ root: book.root, gatewayName, journal, directory, signer, admit, clock, log },
    onDeath: () => metrics.count("rollbook_gateway_sealing_deaths_total"),
    readMs: config.limits.sealMs,
    keptThread: options.keptThread,
  });
  // Reads the records that a launch in this process has put, even before the sealing thread has started.
  const named = new NamedRecords(async (digests) => {
    const own = await Promise.all(digests.map((digest) => book.getOwn(digest)));
    return own.every((blob) => blob !== undefined) ? own : sealing.look(digests);
  });
  const { dataSource } = config.rollouts;
  const rollouts = new Rollouts({
    ...{ config, store: book, journal, closed, sealing, signer, clock, newId, metrics, log },
    checkNamed: (id, opening) => named.check(id, opening),
    decisions: new DecisionSealer({ store: book, signer, admit, clock, gatewayName, dataSource }),
    onClosed: options.onEvent && tellClosed(options.onEvent, clock),
  });
  const knows = (id: string) => rollouts.knows(id);
  const peers = new Peers({ config, token: tokens[0], knows, clock, metrics, log });
  const isOpen = (id: string) => rollouts.isOpen(id);
  const gatekeeper = new Gatekeeper(tokens, isOpen, peers.isAlone ? undefined : gatewayName);
  const routes = new Routes(config, options.choose ?? firstInList(rng.split("routes")), {
    ...{ load: options.loadRouter, inUse: () => rollouts.namedRouters, log },
  });
  const upstreams = openUpstreams(options, keys, metrics);
  const isResting = (upstream: string) => upstreams.get(upstream)!.breaker.isOpen;
  const calls: CallContext = {
    ...{ config, clock, rollouts, journal, metrics, routes, upstreams, isResting, log, returned },
    steadyMs: () => performance.now(),
    turnEnd: new TurnEnd(),
    redact: redactCall(redact),
    replies: { heldBytes: 0 },
    tell: options.onEvent,
  };
  const embed =
    options.embed &&
    ((prompt: string): Promise<PromptVectors | undefined> => options.embed!(prompt, embedding));
  const control = new ControlApi({
    ...{ rollouts, routes, upstreams, isResting, redact, book, returned, embed },
    maxErrorBytes: config.limits.responseBytes,
    keyFor: (rollout) => gatekeeper.keyFor(rollout),
    metrics: () => {
      metrics.set("rollbook_gateway_active_calls", active());
      metrics.set("rollbook_gateway_seal_backlog", sealing.waiting);
      metrics.set("rollbook_gateway_unsealed_singles", rollouts.unsealedSingles);
      return metrics.text() + (options.moreMetrics?.() ?? "");
    },
  });
  return {
    ...{ gatekeeper, peers, calls, sealing, control },
    hosts: new HostCheck(config.listen.host, config.listen.names),
    startCall: callStarter(calls, { redact, embed }),
    refuse: refuser({ rollouts, redact, metrics, clock, log, tell: options.onEvent }),
  };
}

function tellClosed(tell: TellEvent, clock: Clock): NonNullable<RolloutsOptions["onClosed"]> {
  return (rollout, { ending, calls, content, envelope }) => {
    const { id, opening, promptTokens, completionTokens } = rollout;
    const costUsd = calls === 0 || rollout.unpricedCalls < calls ? rollout.costUsd : undefined;
    tell({
      kind: "rollout",
      atMs: clock.nowMs(),
      rollout: id,
      task: opening.task.id,
      openedAtMs: opening.atMs,
      ...{ ending: ending.kind, calls, promptTokens, completionTokens },
      ...(ending.kind === "failed" ? { owner: ending.owner } : {}),
      ...given({ costUsd, content, envelope }),
    });
  };
}

/** Keys written in the configuration file itself. */
function headerSecrets({ upstreams }: GatewayConfig): string[] {
  const all = Object.values(upstreams).flatMap(({ headers }) => Object.entries(headers));
  return all
    .filter(([name, value]) => isCredentialHeader(name.toLowerCase()) && !PLACEHOLDER_KEYS.has(value))
    .map(([, value]) => value.replace(/^(?:Bearer|Basic|Token)\s+/i, ""));
}

function openUpstreams(
  { config, clock, rng, local }: GatewayOptions,
  keys: ReadonlyMap<string, string>,
  metrics: Metrics,
): Map<string, Upstream> {
  const make = ([name, each]: [string, GatewayConfig["upstreams"][string]]): [string, Upstream] => {
    const onRetry = () => metrics.count("rollbook_gateway_retries_total", { upstream: name });
    const options = { key: keys.get(name), clock, rng: rng.split(name), onRetry, local };
    return [name, new Upstream(name, each, options)];
  };
  return new Map(Object.entries(config.upstreams).map(make));
}
