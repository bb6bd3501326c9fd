/** The data source of the page: the server that sent the page, or the block of JSON inside its own file. */

import type { RolloutQuery } from "../../src/book/rollouts/rollout-row.ts";
import type { RolloutWindow } from "../../src/book/rollouts/rollout-window.ts";
import { selectRows, summaryOf, windowOf } from "../../src/book/rollouts/rollout-window.ts";
import type {
  BookFacts,
  PageBatch,
  PageData,
  PageTranscript,
  PageVerdict,
} from "../../src/view/viewer/page-data.ts";

export interface Source {
  /** True for a server, which can be asked again. A file has fixed content. */
  readonly isLive: boolean;
  /** The content to open first, if it is the only one. */
  readonly only?: string | undefined;
  book(options?: { reload: boolean }): Promise<BookFacts>;
  rollouts(query: RolloutQuery, window: { offset: number; limit: number }): Promise<RolloutWindow>;
  transcript(content: string): Promise<PageTranscript>;
  batches(): Promise<readonly PageBatch[]>;
  verdicts(): Promise<readonly PageVerdict[]>;
  /** Saves the whole bytes of a message as a file; undefined without a server. */
  saveBlob?(digest: string): Promise<void>;
}

export function openSource(): Source {
  const block = document.getElementById("data");
  return block === null
    ? serverSource(takeToken())
    : fileSource(JSON.parse(block.textContent ?? "") as PageData);
}

/** Removes the token from the address, so that it is neither visible nor bookmarked. Keeps it only for this tab. */
function takeToken(): string {
  const [, given] = /[#&]token=([\w-]+)/.exec(location.hash) ?? [];
  if (given !== undefined) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", "#/rollouts");
  }
  return given ?? sessionStorage.getItem("token") ?? "";
}

function serverSource(token: string): Source {
  const ask = async (path: string): Promise<Response> => {
    const response = await fetch(path, { headers: { authorization: `Bearer ${token}` } });
    if (response.ok) return response;
    const { error } = (await response.json()) as { error: { message: string } };
    throw new Error(error.message);
  };
  const json = async <T>(path: string): Promise<T> => (await (await ask(path)).json()) as T;
  return {
    isLive: true,
    book: (options) => json(`/api/book${options?.reload === true ? "?reload" : ""}`),
    rollouts(query, window) {
      const words = Object.entries({ ...query, ...window }).filter(([, value]) => value !== undefined);
      return json(
        `/api/rollouts?${new URLSearchParams(words.map(([name, value]) => [name, String(value)]))}`,
      );
    },
    transcript: (content) => json(`/api/rollouts/${encodeURIComponent(content)}`),
    batches: () => json("/api/batches"),
    verdicts: () => json("/api/verdicts"),
    async saveBlob(digest) {
      const url = URL.createObjectURL(await (await ask(`/api/blobs/${encodeURIComponent(digest)}`)).blob());
      const link = Object.assign(document.createElement("a"), {
        href: url,
        download: `${digest.slice(7, 19)}.json`,
      });
      link.click();
      URL.revokeObjectURL(url);
    },
  };
}

function fileSource(data: PageData): Source {
  let last:
    | { key: string; rows: ReturnType<typeof selectRows>; summary: ReturnType<typeof summaryOf> }
    | undefined;
  return {
    isLive: false,
    only: data.rollouts.length === 1 ? data.rollouts[0]!.content : undefined,
    book: async () => data.book,
    async rollouts(query, window) {
      const key = JSON.stringify(query);
      if (last?.key !== key) {
        const rows = selectRows(data.rollouts, query);
        last = { key, rows, summary: summaryOf(rows) };
      }
      return windowOf(data.rollouts, last.rows, { ...window, summary: last.summary });
    },
    async transcript(content) {
      const named = data.rollouts.find(({ rolloutId }) => rolloutId === content)?.content;
      const found = data.transcripts[content] ?? data.transcripts[named ?? ""];
      if (found === undefined) throw new Error("this file does not hold the transcript of that rollout");
      return found;
    },
    batches: async () => data.batches,
    verdicts: async () => data.verdicts,
  };
}
