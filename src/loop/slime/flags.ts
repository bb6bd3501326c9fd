/** Builds the command line of slime's train.py.
 *  In: settings and facts of the run. Out: flags in a fixed order. Names and meanings follow slime. Flags that only
 *  speed up a run on one node are copied from slime's own scripts. */
import type { SlimeSettings } from "./settings.ts";

/** Facts of a run that are not settings. */
interface SlimeRunFacts {
  readonly numRollout: number;
  /** Path of the checked copy of the rows; `hookConfig` is the path of the hook's settings. */
  readonly rows: string;
  readonly hookConfig: string;
}

/** File name of the hook without its extension: slime loads it as a module. */
export const HOOK = "rollbook_slime";

type Value = string | number | undefined;
/** [flag, setting that it is written from, its value]. A flag without a setting is fixed; true is a flag without a
 *  value. */
type FlagRow = readonly [flag: string, setting: keyof SlimeSettings | undefined, value: Value | true];

export function slimeFlags(settings: SlimeSettings, facts: SlimeRunFacts): string[] {
  return [
    ...flagTable(settings, facts).flatMap(([flag, , value]) =>
      value === undefined ? [] : value === true ? [flag] : [flag, String(value)],
    ),
    ...settings.extraFlags,
  ];
}

/** Every flag that a run writes, with the setting to change instead. */
export function flagNames(): ReadonlyMap<string, string> {
  const anything = new Proxy({}, { get: () => "x" });
  const table = flagTable(anything as SlimeSettings, anything as SlimeRunFacts);
  return new Map(table.map(([flag, setting]) => [flag, setting ?? "Rollbook"]));
}

function flagTable(settings: SlimeSettings, { numRollout, rows, hookConfig }: SlimeRunFacts): FlagRow[] {
  const from = (flag: string, setting: keyof SlimeSettings): FlagRow => [
    flag,
    setting,
    settings[setting] as Value,
  ];
  const fixed = (flag: string, value: Value | true = true): FlagRow => [flag, undefined, value];
  return [
    from("--hf-checkpoint", "modelDir"),
    from("--ref-load", "refLoad"),

    ["--prompt-data", "dataPath", rows],
    fixed("--input-key", "prompt"),
    fixed("--label-key", "label"),
    fixed("--metadata-key", "metadata"),
    fixed("--num-rollout", numRollout),
    from("--rollout-batch-size", "rolloutBatchSize"),
    from("--n-samples-per-prompt", "nSamplesPerPrompt"),
    from("--rollout-max-response-len", "rolloutMaxResponseLen"),
    from("--rollout-temperature", "rolloutTemperature"),
    fixed("--rollout-function-path", `${HOOK}.generate_rollout`),
    fixed("--custom-reward-post-process-path", `${HOOK}.normalize_rewards`),
    fixed("--custom-config-path", hookConfig),
    fixed("--num-steps-per-rollout", 1),
    // The recorded log-probabilities come from the engine that sampled, so the ratio is computed against them.
    fixed("--use-rollout-logprobs"),

    fixed("--advantage-estimator", "grpo"),
    fixed("--use-kl-loss"),
    fixed("--kl-loss-type", "low_var_kl"),
    from("--eps-clip", "epsClip"),
    from("--eps-clip-high", "epsClipHigh"),
    from("--lr", "lr"),
    fixed("--lr-decay-style", "constant"),
    from("--weight-decay", "weightDecay"),
    from("--adam-beta2", "adamBeta2"),
    fixed("--optimizer-cpu-offload"),
    fixed("--overlap-cpu-optimizer-d2h-h2d"),
    fixed("--use-precision-aware-optimizer"),

    from("--actor-num-gpus-per-node", "numGpus"),
    from("--tensor-model-parallel-size", "tpSize"),
    fixed("--sequence-parallel"),
    fixed("--colocate"),
    fixed("--use-dynamic-batch-size"),
    from("--max-tokens-per-gpu", "maxTokensPerGpu"),
    fixed("--attention-dropout", "0.0"),
    fixed("--hidden-dropout", "0.0"),
    fixed("--accumulate-allreduce-grads-in-fp32"),
    fixed("--attention-softmax-in-fp32"),
    fixed("--attention-backend", "flash"),

    from("--rollout-num-gpus-per-engine", "rolloutGpusPerEngine"),
    from("--sglang-mem-fraction-static", "sglangMemFractionStatic"),
    from("--sglang-context-length", "sglangContextLength"),
    from("--sglang-tool-call-parser", "sglangToolCallParser"),
    from("--sglang-reasoning-parser", "sglangReasoningParser"),
    fixed("--sglang-log-level", "warning"),
    fixed("--sglang-log-level-http", "warning"),

    ["--use-wandb", "wandbProject", settings.wandbProject === undefined ? undefined : true],
    from("--wandb-project", "wandbProject"),
    from("--wandb-group", "wandbGroup"),
  ];
}
