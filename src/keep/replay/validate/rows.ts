/** Rules of single tables: keys, uniqueness, dictionaries, reason names, features, and the hashes of a segment. */

import { DigestTable } from "../../../base/index.ts";
import { columnsOf, HASHED_LINEAGE, HashedSets } from "../tables/index.ts";
import { addStoredChains, readSources, readTargets, sourceKey, targetKey } from "../write/index.ts";
import type { Rule } from "./rule.ts";

const TEXT = { dictionary: ["text"] } as const;

/** Texts and reasons are unique; the list of reasons is a prefix of the manifest's list. */
export const dictionaries: Rule = {
  needs: { ...TEXT, reasons: ["name"] },
  async check({ reader, manifest, report }) {
    const texts = await reader.texts();
    const { name } = await reader.read("reasons", ["name"]);
    for (const [array, list] of [
      ["dictionary/text", texts],
      ["reasons/name", name],
    ] as const) {
      const seen = new Set<string>();
      list.forEach((text, row) => {
        if (seen.has(text)) report(array, row, "unique", `${JSON.stringify(text)} appears twice`);
        seen.add(text);
      });
    }
    name.forEach((text, bit) => {
      if (manifest.reasons[bit] !== text)
        report(
          "reasons/name",
          bit,
          "reasons",
          `bit ${bit} is ${text}, the manifest says ${manifest.reasons[bit]}`,
        );
    });
  },
};

export const sources: Rule = {
  needs: { ...TEXT, sources: columnsOf("sources"), source_features: ["value"] },
  async check({ reader, entry, report }) {
    const seen = new FirstRows();
    let widest = 0;
    for await (const { row, key, source } of readSources(reader)) {
      if (Buffer.compare(key, sourceKey(source)) !== 0)
        report("sources/key", row, "hash", "the key is not the digest of the row");
      const first = seen.of(key, row);
      if (first !== row) report("sources/key", row, "unique", `the same source is in row ${first}`);
      const bad = source.features.findIndex((value) => !Number.isFinite(value));
      if (bad >= 0)
        report("source_features/value", row, "value", `feature ${bad} of this source is not finite`);
      widest = Math.max(widest, source.features.length);
    }
    if (widest !== entry.maxContext)
      report(
        "sources/features_length",
        null,
        "shape",
        `the longest context is ${widest}, the manifest says ${entry.maxContext}`,
      );
  },
};

export const targets: Rule = {
  needs: { ...TEXT, targets: columnsOf("targets") },
  async check({ reader, report }) {
    const seen = new FirstRows();
    for (const [row, { key, valid, target }] of (await readTargets(reader)).entries()) {
      if (Buffer.compare(key, targetKey(target)) !== 0)
        report("targets/key", row, "hash", "the key is not the digest of the row");
      const first = seen.of(key, row);
      if (first !== row) report("targets/key", row, "unique", `the same target is in row ${first}`);
      if (valid !== (target.invalidReason === undefined))
        report(
          "targets/valid",
          row,
          "value",
          `valid is ${valid}, the reason against it is ${target.invalidReason ?? "none"}`,
        );
    }
  },
};

/** First row of every key. */
class FirstRows {
  readonly #keys = new DigestTable();
  readonly #rows: number[] = [];

  of(key: Uint8Array, row: number): number {
    const number = this.#keys.addBytes(key);
    this.#rows[number] ??= row;
    return this.#rows[number];
  }
}

/** Recomputes the hashes of the manifest from the rows. */
export const hashes: Rule = {
  needs: {
    ...TEXT,
    chains: ["content", "stream"],
    lineage: HASHED_LINEAGE,
    sources: columnsOf("sources"),
    source_features: ["value"],
  },
  async check({ reader, entry, report }) {
    const sets = new HashedSets();
    await addStoredChains(sets, reader);
    for await (const { source } of readSources(reader)) sets.addSplit(source);
    const actual = sets.digests();
    for (const name of new Set([...Object.keys(actual), ...Object.keys(entry.hashes)]))
      if (actual[name] !== entry.hashes[name])
        report(
          `hashes/${name}`,
          null,
          "hash",
          `the rows give ${actual[name]}, the manifest says ${entry.hashes[name]}`,
        );
  },
};
