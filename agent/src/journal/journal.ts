import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type TaskResult, TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { openRecordFile, readRecords } from "./record-file.ts";

/** What this machine began, what it finished, and the highest term and generations that it saw. Survives kill -9. */
export interface Journal {
  /** Highest term by owner. */
  readonly terms: ReadonlyMap<string, bigint>;
  /** Resolves when this term or a higher one is on the disk. */
  raiseTerm(ownerId: string, term: bigint): Promise<void>;
  /** Highest generation that was begun for a kind of task of this owner. */
  generation(ownerId: string, kind: string): bigint;
  /** Notes the intent and its generation; resolves when it is on the disk. It is kept until a day after the deadline. */
  begin(task: { id: string; ownerId: string; kind: string; generation: bigint; deadlineAt: number }): Promise<void>;
  /** Raises a generation without an intent, for tasks that nobody records. */
  raiseGeneration(ownerId: string, kind: string, generation: bigint): Promise<void>;
  finish(result: TaskResult): Promise<void>;
  /** "unknown", "begun" without a result, or what came of it. */
  outcome(taskId: string): "unknown" | "begun" | TaskResult;
  /** The controller has the result on record: the task may be forgotten. */
  forget(taskId: string): Promise<void>;
  /** Results that no controller acknowledged yet. */
  unacknowledged(): TaskResult[];
  /** Ids of the tasks that are not forgotten. */
  openTasks(): string[];
  /** Writes nothing more, so that somebody else may, until it is reopened with all that the disk has then. */
  suspend(): Promise<void>;
  reopen(): Promise<void>;
  close(): Promise<void>;
}

type Entry =
  | { readonly kind: "term"; readonly owner: string; readonly term: string }
  | { readonly kind: "generation"; readonly of: string; readonly generation: string }
  | { readonly kind: "intent"; readonly id: string; readonly deadlineAt: number }
  /** `result` is the message in base64. */
  | { readonly kind: "result"; readonly id: string; readonly result: string }
  | { readonly kind: "forgotten"; readonly id: string };

const compactAtBytes = 256 << 10;
/** No controller delivers a task after its deadline; the day is for clocks that differ. */
const keptAfterDeadlineMs = 24 * 3_600_000;

/** Reads what is there; a last record that was cut is left out. */
export async function openJournal(path: string, now: () => number): Promise<Journal> {
  let file = await openRecordFile<Entry>(path);
  const terms = new Map<string, bigint>();
  const generations = new Map<string, bigint>();
  const intents = new Map<string, number>();
  const results = new Map<string, string>();
  let compactAbove = compactAtBytes;
  /** The terms that are certain to be on the disk. */
  let keptTerms = new Map<string, bigint>();
  /** The disk did not take all that is known here: whatever is written next brings it along. */
  let isAhead = false;

  function read(): void {
    for (const known of [terms, generations, intents, results]) known.clear();
    for (const entry of file.records) apply(entry);
    keptTerms = new Map(terms);
    isAhead = false;
  }

  function apply(entry: Entry): void {
    switch (entry.kind) {
      case "term":
        terms.set(entry.owner, BigInt(entry.term));
        return;
      case "generation":
        generations.set(entry.of, BigInt(entry.generation));
        return;
      case "intent":
        intents.set(entry.id, entry.deadlineAt);
        return;
      case "result":
        results.set(entry.id, entry.result);
        return;
      case "forgotten":
        intents.delete(entry.id);
        results.delete(entry.id);
    }
  }

  read();
  // A disk that is full keeps no agent from coming up.
  await forgetOld().catch(() => undefined);

  function current(): Entry[] {
    return [
      ...[...terms].map(([owner, term]): Entry => ({ kind: "term", owner, term: String(term) })),
      ...[...generations].map(
        ([of, generation]): Entry => ({ kind: "generation", of, generation: String(generation) }),
      ),
      ...[...intents].map(([id, deadlineAt]): Entry => ({ kind: "intent", id, deadlineAt })),
      ...[...results].map(([id, result]): Entry => ({ kind: "result", id, result })),
    ];
  }

  async function write(...entries: Entry[]): Promise<void> {
    for (const entry of entries) apply(entry);
    if (isAhead) return rewrite();
    try {
      await Promise.all(entries.map((entry) => file.append(entry)));
    } catch (error) {
      isAhead = true;
      throw error;
    }
    // All of it is on the disk: one that has no room for another copy is no reason to refuse anything.
    if (file.sizeBytes >= compactAbove) await rewrite().catch(() => undefined);
  }

  async function rewrite(): Promise<void> {
    compactAbove = Number.POSITIVE_INFINITY;
    try {
      await file.rewrite(current);
      isAhead = false;
    } finally {
      // What must stay may itself be large: twice that is worth another pass.
      compactAbove = Math.max(compactAtBytes, file.sizeBytes * 2);
    }
  }

  /** A result waits for its acknowledgement, however long; an intent alone that nobody delivers again says nothing any more. */
  async function forgetOld(): Promise<void> {
    const before = now() - keptAfterDeadlineMs;
    const old = [...intents].filter(([id, deadlineAt]) => deadlineAt < before && !results.has(id));
    await write(...old.map(([id]): Entry => ({ kind: "forgotten", id })));
  }

  function higherGeneration(ownerId: string, kind: string, generation: bigint): Entry[] {
    const of = `${ownerId} ${kind}`;
    if (generation <= (generations.get(of) ?? -1n)) return [];
    return [{ kind: "generation", of, generation: String(generation) }];
  }

  return {
    terms,
    async raiseTerm(ownerId, term) {
      // What is known here may be on its way to the disk, or may not have got there.
      if (term <= (keptTerms.get(ownerId) ?? 0n)) return;
      const known = terms.get(ownerId) ?? 0n;
      const highest = known > term ? known : term;
      await write({ kind: "term", owner: ownerId, term: String(highest) });
      if (highest > (keptTerms.get(ownerId) ?? 0n)) keptTerms.set(ownerId, highest);
    },
    generation: (ownerId, kind) => generations.get(`${ownerId} ${kind}`) ?? 0n,
    async begin({ id, ownerId, kind, generation, deadlineAt }) {
      await Promise.all([
        forgetOld(),
        write({ kind: "intent", id, deadlineAt }, ...higherGeneration(ownerId, kind, generation)),
      ]);
    },
    raiseGeneration: (ownerId, kind, generation) => write(...higherGeneration(ownerId, kind, generation)),
    async finish(result) {
      const bytes = Buffer.from(toBinary(TaskResultSchema, result)).toString("base64");
      await write({ kind: "result", id: result.taskId, result: bytes });
    },
    outcome(taskId) {
      const result = results.get(taskId);
      if (result !== undefined) return decode(result);
      return intents.has(taskId) ? "begun" : "unknown";
    },
    async forget(taskId) {
      if (intents.has(taskId) || results.has(taskId)) await write({ kind: "forgotten", id: taskId });
    },
    unacknowledged: () => [...results.values()].map(decode),
    suspend: () => file.close(),
    async reopen() {
      file = await openRecordFile<Entry>(path);
      read();
    },
    openTasks: () => [...new Set([...intents.keys(), ...results.keys()])],
    close: () => file.close(),
  };
}

/** Reads it while somebody else writes it; throws for records that this version does not know. */
export async function checkJournal(path: string): Promise<void> {
  const known: Record<Entry["kind"], true> = {
    term: true,
    generation: true,
    intent: true,
    result: true,
    forgotten: true,
  };
  for (const { kind } of await readRecords<Entry>(path)) {
    if (!(kind in known)) throw new Error(`the journal has records of an unknown kind, ${kind}`);
  }
}

function decode(result: string): TaskResult {
  return fromBinary(TaskResultSchema, Buffer.from(result, "base64"));
}
