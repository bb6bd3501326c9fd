/** `rollout_config`: the settings that an agent gets beside its payload, with the names that agents already use.
 *  In: the parts to merge; the last part wins. Out: one frozen object. Provider keys never enter it from a file:
 *  its only key identifies this rollout to the gateway. */
import { frozenCopy, given, type Json, RollbookError } from "../../../base/index.ts";

export interface RolloutConfig {
  readonly exp_id: string;
  readonly input_id: string;
  /** Base URL of the models: the gateway, if one is used. */
  readonly base_url?: string;
  readonly api_key?: string;
  readonly model_id?: string;
  readonly sampling_params?: Readonly<Record<string, Json>>;
  readonly [extra: string]: Json | undefined;
}

export interface ConfigParts {
  readonly required: { readonly exp_id: string; readonly input_id: string };
  readonly extra?: Readonly<Record<string, Json>>;
  readonly endpoint?: { readonly base_url?: string; readonly api_key?: string; readonly model_id?: string };
  readonly overrides?: Readonly<Record<string, Json>>;
}

export function mergeConfig(parts: ConfigParts): RolloutConfig {
  return frozenCopy(merged(parts)) as RolloutConfig;
}

/** The sampling parameters of the merged configuration. Not a copy. */
export function samplingOf(parts: ConfigParts): Readonly<Record<string, Json>> {
  return ((merged(parts) as RolloutConfig).sampling_params ?? {}) as Readonly<Record<string, Json>>;
}

function merged({ required, extra, endpoint, overrides }: ConfigParts): Record<string, Json> {
  return { ...required, ...extra, ...given(endpoint ?? {}), ...overrides } as Record<string, Json>;
}

/** Configuration is written to the queue and hashed into ids, so it must not hold a key. */
export function refuseKeys(config: Readonly<Record<string, Json>> | undefined, where: string): void {
  if (config === undefined || !Object.hasOwn(config, "api_key")) return;
  throw new RollbookError(
    "key-on-disk",
    { where },
    `${where} holds api_key, which would be written to disk. Leave it out: agents read keys from the environment, or get the gateway's.`,
  );
}
