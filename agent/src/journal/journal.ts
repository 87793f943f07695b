import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type TaskResult, TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { openRecordFile, readRecords } from "./record-file.ts";

/**
 * Durable record of the machine's tasks: those started, those finished, and the highest term and generations seen.
 * Survives kill -9.
 */
export interface TaskJournal {
  /** Highest term by owner. */
  readonly terms: ReadonlyMap<string, bigint>;
  /** Resolves once this term or a higher one is on disk. */
  raiseTerm(ownerId: string, term: bigint): Promise<void>;
  /** Highest generation that was started for a kind of task of this owner. */
  generation(ownerId: string, kind: string): bigint;
  /**
   * Records the intent and its generation; resolves once it is on disk. It is retained until a day after the deadline.
   */
  begin(task: { id: string; ownerId: string; kind: string; generation: bigint; deadlineAt: number }): Promise<void>;
  /** Raises a generation without an intent, for tasks that are not durable. */
  raiseGeneration(ownerId: string, kind: string, generation: bigint): Promise<void>;
  finish(result: TaskResult): Promise<void>;
  /** Returns "unknown", "started" (without a result), or the result. */
  outcome(taskId: string): "unknown" | "started" | TaskResult;
  /** The controller has stored the result, so the task may be removed. */
  remove(taskId: string): Promise<void>;
  /** Results that no controller has acknowledged. */
  unacknowledged(): TaskResult[];
  /** Ids of the tasks that have not been removed. */
  openTasks(): string[];
  /** Closes the file so that another agent can write it, until `reopen` reads what is on disk then. */
  suspend(): Promise<void>;
  reopen(): Promise<void>;
  close(): Promise<void>;
}

type Entry =
  | { readonly kind: "term"; readonly owner: string; readonly term: string }
  | { readonly kind: "generation"; readonly of: string; readonly generation: string }
  | { readonly kind: "intent"; readonly id: string; readonly deadlineAt: number }
  /** `result` is the TaskResult message in base64. */
  | { readonly kind: "result"; readonly id: string; readonly result: string }
  | { readonly kind: "forgotten"; readonly id: string };

const compactAtBytes = 256 << 10;
/** Controllers deliver no task after its deadline; the day allows for clocks that differ. */
const retainedAfterDeadlineMs = 24 * 3_600_000;

/** Opens the journal. A truncated last record is dropped. */
export async function openTaskJournal(path: string, now: () => number): Promise<TaskJournal> {
  let file = await openRecordFile<Entry>(path);
  const terms = new Map<string, bigint>();
  const generations = new Map<string, bigint>();
  const intents = new Map<string, number>();
  const results = new Map<string, string>();
  let compactAbove = compactAtBytes;
  /** Terms that are certainly on disk. */
  let durableTerms = new Map<string, bigint>();
  /** The disk lacks entries that are in memory; the next write rewrites the file. */
  let isMemoryAhead = false;

  function read(): void {
    for (const seen of [terms, generations, intents, results]) seen.clear();
    for (const entry of file.records) apply(entry);
    durableTerms = new Map(terms);
    isMemoryAhead = false;
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
  // A full disk must not prevent the start of the agent.
  await removeOld().catch(() => undefined);

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
    if (isMemoryAhead) return rewrite();
    try {
      await Promise.all(entries.map((entry) => file.append(entry)));
    } catch (error) {
      isMemoryAhead = true;
      throw error;
    }
    // All entries are on disk, so a disk that is too full for a rewrite does not fail the call.
    if (file.sizeBytes >= compactAbove) await rewrite().catch(() => undefined);
  }

  async function rewrite(): Promise<void> {
    compactAbove = Number.POSITIVE_INFINITY;
    try {
      await file.rewrite(current);
      isMemoryAhead = false;
    } finally {
      // The retained entries may be large: compacts again at twice their size.
      compactAbove = Math.max(compactAtBytes, file.sizeBytes * 2);
    }
  }

  /**
   * Removes old intents without a result, whose tasks are no longer delivered. Results are retained until they are
   * acknowledged.
   */
  async function removeOld(): Promise<void> {
    const before = now() - retainedAfterDeadlineMs;
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
      // The term in memory may not be on disk yet, or its write may have failed.
      if (term <= (durableTerms.get(ownerId) ?? 0n)) return;
      const seen = terms.get(ownerId) ?? 0n;
      const highest = seen > term ? seen : term;
      await write({ kind: "term", owner: ownerId, term: String(highest) });
      if (highest > (durableTerms.get(ownerId) ?? 0n)) durableTerms.set(ownerId, highest);
    },
    generation: (ownerId, kind) => generations.get(`${ownerId} ${kind}`) ?? 0n,
    async begin({ id, ownerId, kind, generation, deadlineAt }) {
      await Promise.all([
        removeOld(),
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
      return intents.has(taskId) ? "started" : "unknown";
    },
    async remove(taskId) {
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

/** Reads the journal while another agent writes it; throws for records that this release cannot read. */
export async function checkJournal(path: string): Promise<void> {
  const seen: Record<Entry["kind"], true> = {
    term: true,
    generation: true,
    intent: true,
    result: true,
    forgotten: true,
  };
  for (const { kind } of await readRecords<Entry>(path)) {
    if (!(kind in seen)) throw new Error(`the journal has records of an unknown kind, ${kind}`);
  }
}

function decode(result: string): TaskResult {
  return fromBinary(TaskResultSchema, Buffer.from(result, "base64"));
}
