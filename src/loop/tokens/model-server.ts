/** Runs the model server of a run: started on first use, and restarted on the same port after a crash.
 *  In: revisions as checkpoint folders. Out: a URL that answers for them. */
import { RollbookError } from "../../base/index.ts";
import { type TorchPlace, TorchProcess } from "./torch-process.ts";

export interface ServedRevision {
  readonly id: string;
  readonly digest: string;
  readonly folder: string;
}

interface ServingModel {
  readonly url: string;
  /** Digest of the tokenizer's file, as the server read it. */
  readonly tokenizer: string;
  /** Aborts when the server has died. */
  readonly died: AbortSignal;
}

export class ModelServer {
  readonly #place: TorchPlace;
  readonly #maxBatch: number;
  #process: TorchProcess | undefined;
  #url: string | undefined;
  #starting: Promise<unknown> | undefined;
  /** Last requested revision; the server keeps it loaded while it lives. */
  #last: { readonly revision: ServedRevision; readonly serving: Promise<ServingModel> } | undefined;

  constructor(place: TorchPlace, { maxBatch }: { maxBatch: number }) {
    this.#place = place;
    this.#maxBatch = maxBatch;
  }

  /** Returns the server when it can answer for this revision. */
  serve(revision: ServedRevision): Promise<ServingModel> {
    const isLast = this.#last?.revision.id === revision.id && this.#last.revision.digest === revision.digest;
    if (!isLast || this.#process?.ended.aborted !== false)
      this.#last = { revision, serving: this.#load(revision) };
    const { serving } = this.#last!;
    serving.catch(() => {
      if (this.#last?.serving === serving) this.#last = undefined; // a later request may succeed
    });
    return serving;
  }

  async #load(revision: ServedRevision): Promise<ServingModel> {
    const { url, ended } = await this.#running();
    const { id, folder, digest } = revision;
    const reply = await fetch(`${url}/admin/revisions`, {
      method: "POST",
      body: JSON.stringify({ revision: id, folder, digest }),
    }).catch((cause: unknown) => {
      if (this.#process?.ended.aborted) throw this.#process.death();
      throw cause;
    });
    const body = (await reply.json()) as { tokenizer: string; error?: { code: string; message: string } };
    if (!reply.ok)
      throw new RollbookError(
        body.error?.code ?? "bad-model",
        { revision: id, folder, status: reply.status },
        `the model server does not serve ${id}: ${body.error?.message ?? reply.status}`,
      );
    return { url, tokenizer: body.tokenizer, died: ended };
  }

  /** Seconds that the server has spent on decoding; they contain no work of Rollbook. */
  async decodeSeconds(): Promise<number> {
    if (this.#url === undefined || this.#process?.ended.aborted !== false) return 0;
    const text = await (await fetch(`${this.#url}/metrics`)).text();
    return Number(/rollbook_torch_decode_seconds_total (\S+)/.exec(text)?.[1] ?? 0);
  }

  async #running(): Promise<{ url: string; ended: AbortSignal }> {
    if (this.#process === undefined || this.#process.ended.aborted) {
      const port = this.#url === undefined ? "0" : new URL(this.#url).port;
      const started = new TorchProcess("serve", this.#place, [
        ...["--port", port, "--max-batch", String(this.#maxBatch)],
      ]);
      this.#process = started;
      this.#starting = started.read().then((said) => {
        this.#url = (said as { url: string }).url;
      });
    }
    const { ended } = this.#process;
    await this.#starting;
    return { url: this.#url!, ended };
  }

  async close(): Promise<void> {
    await this.#process?.close();
  }
}
