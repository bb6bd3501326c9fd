/** The libraries that read the output of `data convert`, pinned. No behaviour. */
export interface ReaderSetup {
  /** Installed with their dependencies, but never torch. */
  readonly packages: readonly string[];
  /** Installed without dependencies: their metadata requires CUDA, or far more than reading needs. */
  readonly alone?: readonly string[];
  readonly torch?: true;
  /** The oldest supported Python (default: python3). */
  readonly python?: string;
}

export const TORCH = ["torch==2.11.0", "nvidia-cuda-runtime", "nvidia-cuda-cupti", "nvidia-cufile"];
export const TORCH_NEEDS = [
  "numpy==2.4.6",
  "typing_extensions",
  "sympy",
  "networkx",
  "jinja2",
  "fsspec",
  "filelock",
  "setuptools",
];

export const READERS: Readonly<Record<string, ReaderSetup>> = {
  readers: {
    packages: ["pyarrow==26.0.1", "duckdb==2.0.0", "datasets==5.2.0", "numpy==2.4.6", "safetensors==0.8.0"],
  },
  slime: {
    packages: ["httpx[http2]", "ray==2.52.1", "pyarrow==26.0.1", "pillow"],
    alone: ["miles-rl==0.0.2"],
    torch: true,
  },
  trl: {
    packages: [
      "datasets==5.2.0",
      "tokenizers",
      "huggingface_hub",
      "safetensors",
      "regex",
      "pyyaml",
      "tqdm",
      "psutil",
      "typer",
    ],
    alone: ["trl==1.16.0", "transformers==5.22.2", "accelerate==1.13.0"],
    torch: true,
  },
  verl: {
    packages: [
      ...[
        "datasets==5.2.0",
        "tokenizers==0.22.2",
        "httpx",
        "huggingface_hub",
        "safetensors",
        "regex",
        "pyyaml",
        "tqdm",
        "psutil",
        "typer",
      ],
      ...[
        "ray==2.52.1",
        "hydra-core",
        "pillow",
        "codetiming",
        "cloudpickle",
        "orjson",
        "importlib_metadata",
        "pyvers",
        "aiohttp",
      ],
      ...["pydantic", "dill", "pylatexenc", "cachetools", "fastapi", "uvicorn", "pyzmq", "msgspec"],
    ],
    alone: [
      "verl==0.9.1",
      "transformers==5.10.2",
      "accelerate==1.13.0",
      "tensordict==0.10.0",
      "torchdata==0.11.0",
      "peft==0.18.0",
    ],
    torch: true,
  },
  verifiers: { packages: ["verifiers==0.4.0"] },
  art: { packages: ["openpipe-art==0.5.18", "pyarrow==26.0.1", "duckdb==2.0.0"] },
  atif: { packages: ["pydantic"], alone: ["harbor==0.25.0"] },
};

/** The trainer of python/rollbook_torch. */
export const TRAINER: ReaderSetup = {
  packages: ["tokenizers", "huggingface_hub", "safetensors", "regex", "pyyaml", "tqdm", "typer"],
  alone: ["transformers==5.22.2"],
  torch: true,
};
