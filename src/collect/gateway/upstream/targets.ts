/** The models that may answer. In: a model's name and configuration. Out: its target: its upstream, its recorded
 *  facts, its price. Pure. */
import { type Digest, digestJson, type Id, idFault, parseId } from "../../../base/index.ts";
import type { LogprobKind, RevisionKey } from "../../../contract/index.ts";
import type { ModelConfig } from "../config.ts";

/** Recorded facts of a target. */
export interface TargetFacts {
  /** The upstream's name of the model. */
  readonly model: string;
  readonly family?: Id | undefined;
  readonly revision?: RevisionKey | undefined;
  readonly logprobKind?: LogprobKind | undefined;
  readonly tokenizer?: Digest | undefined;
}

export interface Target extends TargetFacts {
  readonly upstream: string;
  readonly price: ModelConfig["price"];
  readonly capture: ModelConfig["capture"];
  /** The facts as JSON, as text and in UTF-8. */
  readonly factsText: string;
  readonly factsBytes: Buffer;
  /** The model's name as JSON, for bodies. */
  readonly modelJson: Buffer;
  /** The name in metrics: the model's own name, if it is configured. */
  readonly label: string;
}

/** A model without a declared revision is identified by its name. The digest covers that name, not the weights. */
export function targetOf(
  name: string,
  config: Pick<ModelConfig, "upstream"> & Partial<ModelConfig>,
  label = name,
): Target {
  const model = config.model ?? name;
  const family = config.family ?? safeId(name);
  const revision = config.revision ?? {
    id: safeId(model),
    digest: digestJson("rollbook.unpinned-model.v1", {
      upstream: config.upstream,
      model: model.toWellFormed(),
    }),
  };
  const facts: TargetFacts = {
    model: model.toWellFormed(),
    family: parseId(family, "family"),
    revision: { id: parseId(safeId(revision.id)), digest: revision.digest as Digest },
    logprobKind: config.logprobKind,
    tokenizer: config.tokenizer,
  };
  const factsText = JSON.stringify(facts);
  return {
    ...facts,
    upstream: config.upstream,
    price: config.price,
    capture: config.capture,
    factsText,
    factsBytes: Buffer.from(factsText),
    modelJson: Buffer.from(JSON.stringify(facts.model)),
    label,
  };
}

function safeId(name: string): string {
  if (idFault(name) === undefined) return name;
  const safe = name.replaceAll(/[^A-Za-z0-9_.:+-]/g, "_").slice(0, 120);
  return /^[A-Za-z0-9_]/.test(safe) ? safe : `_${safe}`;
}

/** The highest prices of the list. */
export function dearestOf(prices: readonly Target["price"][]): Target["price"] {
  const known = prices.filter((price) => price !== undefined);
  if (known.length === 0) return undefined;
  return {
    prompt: Math.max(...known.map(({ prompt }) => prompt)),
    completion: Math.max(...known.map(({ completion }) => completion)),
  };
}
