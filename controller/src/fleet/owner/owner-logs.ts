import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type ListLogsRequest,
  type ListLogsResponse,
  ListLogsResponseSchema,
  LogLevel,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { create } from "@bufbuild/protobuf";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { ReadLogs, ReadLogsResult, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { MonitoredOwner } from "./monitored-owner.ts";

/** Reads the log of an owner's software from one machine, by default from its main machine, such as the primary. */
export interface OwnerLogs {
  /** Throws NOT_SUPPORTED for a separate log (`component`) that the software does not have. */
  page(owner: MonitoredOwner, request: ListLogsRequest, call: Call): Promise<ListLogsResponse>;
}

// biome-ignore format: a table, aligned so that it reads as one
const levels: readonly (readonly [LogLevel, string])[] = [
  [LogLevel.DEBUG,   "debug"],
  [LogLevel.INFO,    "info"],
  [LogLevel.WARNING, "warning"],
  [LogLevel.ERROR,   "error"],
];

const readTimeoutMs = 10_000;
/** Time for which followers at the end of the same log share one read. A follower polls twice a second. */
const sharedReadMs = 400;

export function createOwnerLogs({ fleet, cursors }: { fleet: Pick<Fleet, "run">; cursors: Cursors }): OwnerLogs {
  const reads = createSharedQueries<TaskResult>(sharedReadMs);
  return {
    async page(owner, request, call) {
      const machineId = machineOf(owner, request.nodeId);
      const level = levels.find(([value]) => value === request.level)?.[1] ?? "";
      // The filter does not include `since` and `newest`, which only select the first page.
      const filter = [owner.owner.id, level];
      if (request.nodeId !== undefined) filter.push(`node ${machineId}`);
      if (request.contains !== undefined) filter.push(`contains ${request.contains}`);
      if (request.component !== undefined) filter.push(`component ${request.component}`);
      const { after = "", limit, cursorAt } = cursors.open(call, "logs", filter, request);
      const value = {
        $typeName: "holdfast.agent.v1.ReadLogs",
        level,
        cursor: after,
        limit,
        completeEntries: false,
        newest: request.newest === true && after === "",
        contains: request.contains ?? "",
        component: request.component ?? "",
        ...(request.since === undefined ? {} : { since: request.since }),
      } as const;
      const task = {
        ownerId: owner.owner.id,
        generation: owner.generation,
        term: owner.term,
        lane: "query",
        deadlineMs: readTimeoutMs,
      } as const;
      const run = async (input: ReadLogs, signal?: AbortSignal) => {
        try {
          const request = { ...task, input: { case: "readLogs", value: input } } as const;
          return await fleet.run(machineId, request, readTimeoutMs, signal);
        } catch (error) {
          const isAway = error instanceof HoldfastError && error.key === "MACHINE_UNREACHABLE";
          if (!isAway || owner.suspension !== "stopped") throw error;
          const detail = `The ${owner.noun} is stopped. Its log is read from its machine: start it first.`;
          throw new HoldfastError("WRONG_STATE", detail, { cause: error });
        }
      };
      const read = (signal?: AbortSignal) => run(value, signal);
      // A cursor replaces `since`. Each caller's access to this owner was checked before.
      const { contains, component } = value;
      const sharedKey = [machineId, task.ownerId, task.generation, task.term, level, limit, after, contains, component];
      const follows = request.follow === true && after !== "";
      const result = await (follows ? reads.check(JSON.stringify(sharedKey), read, call.signal) : read(call.signal));
      const first = readOf(result);
      if (first.component !== component)
        throw new HoldfastError("NOT_SUPPORTED", `The machine has no log "${component}" of ${owner.software}.`);
      const isSelected = first.selected || (!value.newest && value.contains === "");
      const { lines, nextCursor, hasMore } = isSelected
        ? first
        : await selectLines(first, value, async (cursor) => readOf(await run({ ...value, cursor }, call.signal)));
      return create(ListLogsResponseSchema, {
        lines: lines.map((line) => ({
          component: line.component,
          message: line.message,
          nodeId: machineId,
          level: levels.find(([, name]) => name === line.level)?.[0] ?? LogLevel.INFO,
          ...(line.time === undefined ? {} : { time: line.time }),
        })),
        nextCursor: cursorAt(nextCursor),
        hasMore,
      });
    },
  };
}

/** The requested machine, by default the main one. Throws OBJECT_NOT_FOUND. */
function machineOf({ noun, machines, mainMachineId }: MonitoredOwner, id = mainMachineId): string {
  const machine = machines.find((each) => each.id === id);
  if (machine === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `The ${noun} has no such node.`);
  return machine.id;
}

function readOf(result: TaskResult): ReadLogsResult {
  if (result.output.case === "readLogs") return result.output.value;
  throw new HoldfastError(
    "MACHINE_UNREACHABLE",
    result.failure?.message ?? "The machine's agent did not read the log.",
  );
}

/** Maximum number of pages that one request reads from an agent without `newest` and `contains`; a log has fewer. */
const pagesMax = 200;

/** Selects lines of an agent that does not support `newest` and `contains`, and returns its complete log in pages. */
export async function selectLines(
  first: ReadLogsResult,
  { newest, contains, limit }: Pick<ReadLogs, "newest" | "contains" | "limit">,
  next: (cursor: string) => Promise<ReadLogsResult>,
): Promise<Pick<ReadLogsResult, "lines" | "nextCursor" | "hasMore">> {
  const text = contains.toLowerCase();
  const matching = ({ lines }: ReadLogsResult) => lines.filter(({ message }) => message.toLowerCase().includes(text));
  let page = first;
  let lines = matching(page);
  for (let pages = 1; page.hasMore && pages < pagesMax && (newest || lines.length === 0); pages += 1) {
    page = await next(page.nextCursor);
    lines = [...lines, ...matching(page)].slice(newest ? -limit : 0);
  }
  return { lines, nextCursor: page.nextCursor, hasMore: page.hasMore };
}

/** Concurrent callers with the same key share one result. */
export interface SharedQueries<T> {
  /**
   * The result of `query`, or of another caller's query at most `maxAgeMs` ago. A failure is reported to the waiting
   * callers and not cached. Rejects if the signal aborts; the query continues for the other callers.
   */
  check(key: string, query: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** Results are shared for `maxAgeMs` after the query ends. */
export function createSharedQueries<T>(maxAgeMs: number): SharedQueries<T> {
  const checks = new Map<string, Promise<T>>();

  function begin(key: string, query: () => Promise<T>): Promise<T> {
    const check = query();
    const remove = () => {
      checks.delete(key);
    };
    checks.set(key, check);
    check.then(() => setTimeout(remove, maxAgeMs).unref(), remove);
    return check;
  }

  return {
    async check(key, query, signal) {
      signal.throwIfAborted();
      const abandoned = Promise.withResolvers<never>();
      const onAbort = () => abandoned.reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        return await Promise.race([checks.get(key) ?? begin(key, query), abandoned.promise]);
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
    },
  };
}
