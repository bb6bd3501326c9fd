/** Declares every setting of a training run with slime, with its default and bounds. */
import * as z from "zod";

const path = z.string().min(1).max(4096);
const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, "is not a name");
const count = z.number().int().min(1);
const share = z.number().gt(0).max(1);

export const slimeSchema = z.strictObject({
  expId: name.describe("Names the experiment: rollouts of step k belong to `<expId>-<k>`."),
  agent: path.describe("The executor: a .js, .mjs, .ts or .py file, an executable, or a server's URL."),
  modelDir: path.describe("The model's folder in Hugging Face form."),
  refLoad: z.optional(path).describe("The reference model as slime loads it (default: modelDir)."),
  dataPath: path.describe(
    'Rows in JSON Lines: {"prompt", "label"?, "metadata"}; metadata is the agent\'s payload.',
  ),
  modelType: name.describe("A file of slime's scripts/models without its ending: qwen2.5-3B."),
  book: path.default(".rollbook").describe("The book: a directory, or s3://bucket/prefix."),
  runDir: z
    .optional(path)
    .describe("Where rows, flags, hook and script are written (default: slime-runs/<expId>)."),

  numGpus: count.default(8).describe("GPUs of the machine."),
  tpSize: count.default(2).describe("GPUs that share one copy of the model in training."),
  rolloutGpusPerEngine: count.default(2).describe("GPUs of one SGLang engine."),
  slimeDir: path.default("/root/slime").describe("The folder of slime."),
  megatronDir: path.default("/root/Megatron-LM").describe("The folder of Megatron-LM."),
  cudaHome: z.optional(path).describe("The CUDA toolkit, where several are installed."),
  python: path.default("python3").describe("The Python that has slime."),

  modelId: z
    .string()
    .min(1)
    .max(512)
    .default("default")
    .describe("The model name that the agent asks the gateway for."),
  timeLimit: z.number().gt(0).default(900).describe("Seconds for one rollout."),
  rate: z.number().gt(0).default(25).describe("Rollouts begun per second."),
  maxConcurrent: count.max(4096).default(100).describe("Rollouts at a time."),
  gatewayPort: z.number().int().min(0).max(65_535).default(9090).describe("0 takes a free port."),
  sglangToolCallParser: z.string().min(1).default("qwen").describe("SGLang's parser of tool calls."),
  sglangReasoningParser: z.optional(z.string().min(1)).describe("SGLang's parser of reasoning."),

  rolloutBatchSize: count.default(32).describe("Prompts of one step."),
  nSamplesPerPrompt: count.default(8).describe("Rollouts of each prompt."),
  rolloutMaxResponseLen: count.default(1024).describe("Tokens of one reply."),
  rolloutTemperature: z.number().gt(0).default(1).describe("Temperature of sampling."),
  lr: z.number().gt(0).default(1e-6).describe("Learning rate."),
  epsClip: share.default(0.2).describe("Clip of the ratio below 1."),
  epsClipHigh: share.default(0.28).describe("Clip of the ratio above 1."),
  weightDecay: z.number().min(0).default(0.1).describe("Weight decay of Adam."),
  adamBeta2: z.number().gt(0).lt(1).default(0.98).describe("Second moment of Adam."),
  sglangMemFractionStatic: share.default(0.7).describe("Share of GPU memory for SGLang."),
  sglangContextLength: z
    .optional(count)
    .describe("Tokens of prompt and reply together (default: the model's)."),
  maxTokensPerGpu: count.default(9216).describe("Tokens of a micro-batch on one GPU."),

  wandbProject: z
    .optional(z.string().min(1))
    .describe("Logs to this project of Weights & Biases; the key comes from WANDB_API_KEY."),
  wandbGroup: z.optional(z.string().min(1)).describe("The group of the run there."),
  extraFlags: z
    .array(z.string().regex(/^[^\n]*$/, "a flag is one line"))
    .default([])
    .describe("Passed to slime's train.py as they are."),
});

export type SlimeOptions = z.input<typeof slimeSchema>;
export type SlimeSettings = z.output<typeof slimeSchema> & { readonly runDir: string };
