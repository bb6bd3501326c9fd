/** Resolves a typed name (an id, a digest, or the beginning of one) to exactly one record. */
import { type Digest, given, type Id, RollbookError, short } from "../../base/index.ts";
import {
  PolicyRevision,
  RolloutContent,
  RolloutEnvelope,
  standsBefore,
  Tombstone,
  TrainerBatch,
} from "../../contract/index.ts";
import { type BookIndex, type IndexedRecord, SHORTEST_PREFIX } from "./book-index.ts";

export interface IndexedArtifact {
  readonly content: IndexedRecord;
  /** Every envelope of this content, one per run, sorted by digest. */
  readonly envelopes: readonly Digest[];
}

/** All artifacts of the book, sorted by rollout id. */
export function artifactsOf(index: BookIndex): IndexedArtifact[] {
  return joined(index.ofKind(RolloutContent.kind), index.ofKind(RolloutEnvelope.kind));
}

/** Artifacts of these contents, sorted by rollout id. Throws if one of them is missing. */
export function artifactsWith(index: BookIndex, contents: ReadonlySet<Digest>): IndexedArtifact[] {
  const wanted = [...contents];
  const found = artifactsAmong(index, wanted);
  if (found.length === contents.size) return found;
  const there = new Set(found.map(({ content }) => content.digest));
  throw missingRecords(wanted.filter((digest) => !there.has(digest)).sort());
}

function artifactsAmong(index: BookIndex, contents: readonly Digest[]): IndexedArtifact[] {
  return joined(index.recordsWith(contents), index.about(contents, [RolloutEnvelope.kind]));
}

/** A content without an envelope is no artifact. */
function joined(contents: readonly IndexedRecord[], envelopes: readonly IndexedRecord[]): IndexedArtifact[] {
  const own = new Map<unknown, Digest[]>();
  for (const { digest, fields } of envelopes) {
    const known = own.get(fields.content);
    if (known === undefined) own.set(fields.content, [digest]);
    else known.push(digest);
  }
  return contents.flatMap((content) => {
    const found = own.get(content.digest);
    return found === undefined ? [] : [{ content, envelopes: found.sort() }];
  });
}

/** All artifacts, for operations on everything. Throws if records are lost, because damage must not be ignored
 *  silently. */
export function everyArtifact(index: BookIndex): IndexedArtifact[] {
  const lost = lostRecords(index);
  if (lost.length === 0) return artifactsOf(index);
  throw missingRecords(lost);
}

function missingRecords(lost: readonly Digest[]): RollbookError {
  return new RollbookError(
    "missing-blob",
    { lost },
    `${lost.length} records that the book should hold are damaged or gone, first ${lost[0]}. Import them again, or name the artifacts you mean with --artifact.`,
  );
}

/** Contents that envelopes name, and records that signatures name, if the book does not hold them. */
function lostRecords(index: BookIndex): Digest[] {
  const contents = new Set<unknown>(index.ofKind(RolloutContent.kind).map(({ digest }) => digest));
  const named = index.ofKind(RolloutEnvelope.kind).map(({ fields }) => fields.content as Digest);
  return [...named.filter((content) => !contents.has(content)), ...index.lostSubjects()].sort();
}

/** Finds an artifact by rollout id, by the first characters of an id, by the id of a decision, or by the digest of its
 *  content or of an envelope. With `wholeId`, only ids and digests of rollouts are accepted: an irreversible operation
 *  must not hit another rollout, or more than one decision. */
export function resolveArtifact(
  index: BookIndex,
  name: string,
  { wholeId = false, also }: ResolveOptions = {},
): IndexedArtifact {
  const decision = decisionIn(name);
  if (decision !== undefined && !wholeId) return resolveArtifact(index, decision.rollout, given({ also }));
  const named = new Set<Digest>(
    index.named(name).flatMap(({ kind, digest, fields }) => {
      if (kind === RolloutContent.kind) return [digest];
      return kind === RolloutEnvelope.kind ? [fields.content as Digest] : [];
    }),
  );
  const found = artifactsAmong(index, [...named]);
  if (found.length === 0) requireNotErased(index, name);
  if (found.length === 0) {
    const starting = rolloutsStarting(index, name);
    if (wholeId && starting.length > 0) throw notWhole(name, starting);
    found.push(
      ...artifactsAmong(
        index,
        starting.map(({ digest }) => digest),
      ),
    );
  }
  return one(found, {
    what: "rollout",
    name,
    form: wholeId ? "id" : "start",
    hint: [
      ...(decision === undefined ? [] : [`${decision.rollout} is the rollout of this decision.`]),
      ...[seeArtifacts, also ?? []].flat(),
    ].join(" "),
    key: ({ content }) => content,
  });
}

/** An open rollout may have the given name, so the found one is not taken. */
function notWhole(name: string, starting: readonly IndexedRecord[]): RollbookError {
  const ids = [...new Set(starting.map(({ id }) => id!))].sort();
  const more = ids.length > MOST_LISTED ? ", …" : "";
  return new RollbookError(
    "not-found",
    { name, ids: ids.slice(0, MOST_LISTED) },
    `"${name}" is only the beginning of a rollout's id. This command needs the whole id: ${ids.slice(0, MOST_LISTED).join(", ")}${more}.`,
  );
}

const MOST_LISTED = 3;

/** Rollouts whose id begins with `name`. Every lookup falls back to them if no record has exactly this name. */
function rolloutsStarting(index: BookIndex, name: string): IndexedRecord[] {
  if (name.length < SHORTEST_PREFIX) return [];
  return index.ofKind(RolloutContent.kind).filter(({ id }) => id?.startsWith(name));
}

/** `<rollout>.<number>` names a call, as in the header x-rollbook-call. Any other name means a whole rollout. */
export function callIn(name: string): { rollout: string; call: number } | undefined {
  const [, rollout, digits] = /^(.+)\.(\d{1,9})$/.exec(name) ?? [];
  return rollout === undefined ? undefined : { rollout, call: Number(digits) };
}

/** `<rollout>/<stream>/<step>` names a decision, as the findings of `data check` do. No other name holds a slash. */
export function decisionIn(name: string): { rollout: string; stream: number; step: number } | undefined {
  const [, rollout, stream, step] = /^(.+)\/(\d{1,9})\/(\d{1,9})$/.exec(name) ?? [];
  return rollout === undefined ? undefined : { rollout, stream: Number(stream), step: Number(step) };
}

/** Finds a rollout, or one of its calls. A rollout id may end like the name of a call; the rollout then takes
 *  precedence, even if it was erased. */
export function resolveCall(
  index: BookIndex,
  name: string,
  options: ResolveOptions = {},
): { readonly artifact: IndexedArtifact; readonly call: number | undefined } {
  const named = callIn(name);
  const isWhole =
    index.named(name).some(({ kind }) => kind === RolloutContent.kind) || erasedAs(index, name).length > 0;
  return named === undefined || isWhole
    ? { artifact: resolveArtifact(index, name, options), call: undefined }
    : { artifact: resolveArtifact(index, named.rollout, options), call: named.call };
}

/** Finds a rollout for `artifact erase`: an artifact, or one whose erasure was interrupted. */
export function resolveErasable(index: BookIndex, name: string): { rollout: Id; content: Digest } {
  const [erased] = erasedAs(index, name);
  const isThere = artifactsOf(index).some(
    ({ content }) => content.digest === erased?.content || content.id === name,
  );
  if (erased !== undefined && !isThere) return erased;
  const { content } = resolveArtifact(index, name, { wholeId: true });
  return { rollout: content.id as Id, content: content.digest };
}

/** Subjects of tombstones with this rollout id, or with a content digest that begins with `name`. */
function erasedAs(index: BookIndex, name: string): { rollout: Id; content: Digest; tombstone: Digest }[] {
  const hex = `sha256:${name.replace(/^sha256:/, "").toLowerCase()}`;
  return index.ofKind(Tombstone.kind).flatMap(({ digest, fields }) => {
    const [rollouts, contents] = [fields.rollouts as Id[], fields.contents as Digest[]];
    const subjects = rollouts.map((rollout, i) => ({ rollout, content: contents[i]!, tombstone: digest }));
    return subjects.filter(
      ({ rollout, content }) => rollout === name || (name.length >= 4 && content.startsWith(hex)),
    );
  });
}

function requireNotErased(index: BookIndex, name: string): void {
  const [erased] = erasedAs(index, name);
  if (erased === undefined) return;
  throw new RollbookError(
    "erased",
    { name, ...erased },
    `${erased.rollout} was erased: the tombstone ${short(erased.tombstone)} says by whom and why. \`rollbook verify\` prints it.`,
  );
}

/** Finds a revision. If several records describe it, one stands for all, as in a lineage. */
export function resolveRevision(
  index: BookIndex,
  name: string,
  family?: string,
  /** Additional advice for an ambiguous name; it ends the error's sentence. */
  also = "",
): IndexedRecord {
  const unique = uniqueRevisions(
    index
      .named(name)
      .filter(
        (record) => record.kind === PolicyRevision.kind && (family === undefined || record.family === family),
      ),
  );
  const show = (record: IndexedRecord) => `${record.id} of ${record.family} (${short(record.digest)})`;
  const elsewhere = family === undefined ? [] : familiesOf(index, name);
  if (unique.length === 0 && elsewhere.length > 0)
    throw new RollbookError(
      "not-found",
      { name, what: "policy revision", family, families: elsewhere },
      `${name} is a revision of family ${elsewhere.join(", ")}, not of ${family}. Leave --family out, or name a target of ${family}. ${knownRevisions(index)}`,
    );
  return one(unique, {
    ...{ what: "policy revision", name, form: "revision", hint: knownRevisions(index) },
    ...{ show, key: asItself, also },
  });
}

/** Lists the revisions of the book in one sentence, for the error about an unknown name. */
export function knownRevisions(index: BookIndex): string {
  const all = [...new Set(revisionsIn(index).map(({ id, family }) => `${id} of family ${family}`))];
  if (all.length === 0)
    return "The book has no policy revision yet: record rollouts through a gateway, or import them with `rollbook artifact import`.";
  const more = all.length > MOST_NAMED ? ` and ${all.length - MOST_NAMED} more` : "";
  return `The book has ${all.slice(0, MOST_NAMED).join(", ")}${more}.`;
}

/** Maximum number of revisions that an error lists. */
const MOST_NAMED = 20;

/** One record for each revision of the book. */
export function revisionsIn(index: BookIndex): IndexedRecord[] {
  return uniqueRevisions(index.ofKind(PolicyRevision.kind));
}

function uniqueRevisions(records: readonly IndexedRecord[]): IndexedRecord[] {
  const unique = new Map<string, IndexedRecord>();
  for (const record of records) {
    const key = JSON.stringify([record.family, record.id, record.fields.digest]);
    const known = unique.get(key);
    if (known === undefined || standsBefore(producedOf(record), producedOf(known))) unique.set(key, record);
  }
  return [...unique.values()];
}

function producedOf({ digest, fields }: IndexedRecord) {
  return { digest, record: { producedAtMs: fields.producedAtMs as number } };
}

function familiesOf(index: BookIndex, revision: string): string[] {
  const found = index.named(revision).filter(({ kind }) => kind === PolicyRevision.kind);
  return [...new Set(found.map(({ family }) => String(family)))].sort();
}

export function resolveBatch(index: BookIndex, name: string): IndexedRecord {
  const found = index.named(name).filter((record) => record.kind === TrainerBatch.kind);
  const hint = "`rollbook batch show` lists them.";
  return one(found, { what: "batch", name, hint, form: "digest", key: asItself });
}

/** Finds any record. */
export function resolveRecord(index: BookIndex, name: string): IndexedRecord {
  const named = index.named(name);
  const meant = named.every(({ id }) => id === name) ? oneOfEachRevision(named) : named;
  if (meant.length === 0) requireNotErased(index, name);
  if (meant.length === 0) meant.push(...rolloutsStarting(index, name));
  return one(meant, { what: "record", name, form: "start", hint: seeRecords, key: asItself });
}

/** A revision may have a second record with fewer facts, made when samples were logged under it. An id means the fuller
 *  record. */
function oneOfEachRevision(named: readonly IndexedRecord[]): IndexedRecord[] {
  const isRevision = ({ kind }: IndexedRecord) => kind === PolicyRevision.kind;
  return [...named.filter((each) => !isRevision(each)), ...uniqueRevisions(named.filter(isRevision))];
}

/** Finds any blob, by id of a record, digest, or the first digits of one. */
export function resolveBlob(index: BookIndex, name: string): Digest {
  const named = oneOfEachRevision(index.named(name).filter(({ id }) => id === name));
  const found = [...new Set([...named.map(({ digest }) => digest), ...index.blobsNamed(name)])];
  if (found.length === 0) found.push(...rolloutsStarting(index, name).map(({ digest }) => digest));
  const show = (digest: Digest) => {
    const record = index.record(digest);
    return record?.id === undefined ? digest.slice(7, 39) : nameOf(record);
  };
  const key = (digest: Digest) => index.record(digest) ?? { digest };
  return one(found, { what: "blob", name, form: "start", hint: seeRecords, show, key });
}

export function nameOf(record: IndexedRecord): string {
  const kind = record.kind.replace(/^rollbook\.|\.v\d+$/g, "");
  return `${kind} ${record.id === undefined ? "" : `${record.id} `}${short(record.digest)}`;
}

const seeArtifacts =
  "`rollbook artifact ls` lists the rollouts. A rollout that is open at a gateway is not in the book yet: close it first. A rollout that was closed without a call is in no book.";

const seeRecords =
  "`rollbook artifact ls` lists rollouts, `rollbook artifact ls --revisions` policy revisions, and `rollbook batch show` batches.";

interface ResolveOptions {
  /** True if the beginning of an id is not enough. */
  readonly wholeId?: boolean;
  /** Another next step if there is no such rollout: a sentence. */
  readonly also?: string;
}

interface WantedRecord<T> {
  readonly what: string;
  readonly name: string;
  /** Advice on where to find the right name. */
  readonly hint: string;
  /** Form of the names that are accepted (default: id). */
  readonly form?: keyof typeof FORMS;
  /** Text of a candidate in the error (default: kind, id and digest). */
  show?(item: T): string;
  key(item: T): Pick<IndexedRecord, "digest"> & Partial<IndexedRecord>;
  /** Another way to resolve an ambiguous name. */
  readonly also?: string;
}

/** Advice for a name that was not found, by form. */
const FORMS = {
  digest: `at least ${SHORTEST_PREFIX} digits of its digest`,
  id: `its id or at least ${SHORTEST_PREFIX} digits of its digest`,
  revision: `its id, or at least ${SHORTEST_PREFIX} digits from the column RECORD of \`artifact ls --revisions\``,
  start: `its id or digest, or at least the first ${SHORTEST_PREFIX} characters of one`,
};

const asItself = (record: IndexedRecord) => record;

function one<T>(found: readonly T[], wanted: WantedRecord<T>): T {
  const { what, name } = wanted;
  if (found.length === 1) return found[0]!;
  if (found.length === 0) {
    throw new RollbookError(
      "not-found",
      { name, what },
      `no ${what} ${JSON.stringify(name)} in the book. Give ${FORMS[wanted.form ?? "id"]}. ${wanted.hint}`,
    );
  }
  const { key, also = "", show = (item: T) => nameOf(key(item) as IndexedRecord) } = wanted;
  const candidates = found.map(show);
  const shown =
    candidates.slice(0, 10).join(", ") +
    (candidates.length > 10 ? ` and ${candidates.length - 10} more` : "");
  const isWholeName = found.some((item) => key(item).id === name);
  throw new RollbookError(
    "ambiguous-name",
    { name, what, candidates },
    `${JSON.stringify(name)} may be ${shown}. ${isWholeName ? `Name one by its digest, for example ${short(key(found[0]!).digest)}${also}` : "Give more of it"}.`,
  );
}
