/** Reads and writes psionic-v1 JSON text. Reading checks rules and digests. Writing emits u64 as bare digits of any
 *  length, because the original accepts no other form. f32 is written as the shortest decimal that gives the same f32
 *  back. */
import { parseWideJson } from "../../base/index.ts";
import { checkPsionicArtifact, decodePsionic } from "./artifact.ts";
import { checkPsionicBatch } from "./batch.ts";
import {
  type PsionicArtifact,
  type PsionicBatch,
  type PsionicRevision,
  psionicArtifact,
  psionicBatch,
  psionicRevision,
} from "./schema.ts";

export function parsePsionicRevision(text: string, where = "psionic revision"): PsionicRevision {
  return decodePsionic(psionicRevision, parseWideJson(text, where), where);
}

export function parsePsionicArtifact(text: string, where = "psionic artifact"): PsionicArtifact {
  return checkPsionicArtifact(decodePsionic(psionicArtifact, parseWideJson(text, where), where));
}

/** A batch names its artifacts by digest only; `checkPsionicBatch(batch, rollouts)` compares the batch with them. */
export function parsePsionicBatch(text: string, where = "psionic batch"): PsionicBatch {
  return checkPsionicBatch(decodePsionic(psionicBatch, parseWideJson(text, where), where));
}

export function writePsionicJson(value: PsionicRevision | PsionicArtifact | PsionicBatch): string {
  return write(value);
}

function write(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return writeNumber(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    // The original omits absent optional fields and empty proof lists.
    .filter(([key, item]) => item !== undefined && !(key === "proof_references" && isEmpty(item)))
    .map(([key, item]) => `${JSON.stringify(key)}:${write(item)}`);
  return `{${members.join(",")}}`;
}

function writeNumber(value: number): string {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? "-0.0" : String(value);
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
