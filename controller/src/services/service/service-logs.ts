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
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import { taskTarget } from "./member/member-roles.ts";

/** The engine's log, read from the machine of a node, by default of the primary. */
export interface ServiceLogs {
  page(service: ManagedServiceObject, request: ListLogsRequest, call: Call): Promise<ListLogsResponse>;
}

// biome-ignore format: a table, aligned so that it reads as one
const levels: readonly (readonly [LogLevel, string])[] = [
  [LogLevel.DEBUG,   "debug"],
  [LogLevel.INFO,    "info"],
  [LogLevel.WARNING, "warning"],
  [LogLevel.ERROR,   "error"],
];

const readTimeoutMs = 10_000;
/** A follower polls twice a second; all followers at the end of the same log share one read. */
const sharedReadMs = 400;

export function createServiceLogs({ fleet, cursors }: { fleet: Fleet; cursors: Cursors }): ServiceLogs {
  const reads = createSharedChecks<TaskResult>(sharedReadMs);
  return {
    async page(service, request, call) {
      const node = nodeOf(service, request.nodeId);
      const level = levels.find(([value]) => value === request.level)?.[1] ?? "";
      // The filter does not include `since` and `newest`, which only select the first page.
      const filter = [service.metadata.id, level];
      if (request.nodeId !== undefined) filter.push(`node ${node.id}`);
      if (request.contains !== undefined) filter.push(`contains ${request.contains}`);
      const { after = "", limit, cursorAt } = cursors.open(call, "logs", filter, request);
      const value = {
        $typeName: "holdfast.agent.v1.ReadLogs",
        level,
        cursor: after,
        limit,
        completeEntries: false,
        newest: request.newest === true && after === "",
        contains: request.contains ?? "",
        ...(request.since === undefined ? {} : { since: request.since }),
      } as const;
      const task = {
        ownerId: service.metadata.id,
        generation: service.spec.instanceGeneration,
        term: service.status.term,
        lane: "query",
        deadlineMs: readTimeoutMs,
      } as const;
      const run = (input: ReadLogs, signal?: AbortSignal) =>
        fleet.run(node.id, { ...task, input: { case: "readLogs", value: input } }, readTimeoutMs, signal);
      const read = (signal?: AbortSignal) => run(value, signal);
      // A cursor replaces `since`. Each caller's access to this service was checked before.
      const question = [node.id, task.ownerId, task.generation, task.term, level, limit, after, value.contains];
      const follows = request.follow === true && after !== "";
      const result = await (follows ? reads.check(JSON.stringify(question), read, call.signal) : read(call.signal));
      const first = readOf(result);
      const isSelected = first.selected || (!value.newest && value.contains === "");
      const { lines, nextCursor, hasMore } = isSelected
        ? first
        : await selectLines(first, value, async (cursor) => readOf(await run({ ...value, cursor }, call.signal)));
      return create(ListLogsResponseSchema, {
        lines: lines.map((line) => ({
          component: line.component,
          message: line.message,
          nodeId: node.id,
          level: levels.find(([, name]) => name === line.level)?.[0] ?? LogLevel.INFO,
          ...(line.time === undefined ? {} : { time: line.time }),
        })),
        nextCursor: cursorAt(nextCursor),
        hasMore,
      });
    },
  };
}

/** The node with this id, by default the primary. Throws OBJECT_NOT_FOUND. */
function nodeOf(service: ManagedServiceObject, id: string | undefined): NodeSpec {
  if (id === undefined) return taskTarget(service);
  const node = service.spec.nodes.find((each) => each.id === id);
  if (node === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The service has no such node.");
  return node;
}

function readOf(result: TaskResult): ReadLogsResult {
  if (result.output.case === "readLogs") return result.output.value;
  throw new HoldfastError("MACHINE_UNREACHABLE", result.failure?.message ?? "The agent did not read its logs.");
}

/** Most pages of an older agent's log that one request reads; a log has fewer. */
const pagesMax = 200;

/** Selects lines for an agent without `newest` and `contains`, which returns its whole log in pages. */
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
export interface SharedChecks<T> {
  /**
   * The result of `query`, or of another caller's query at most `maxAgeMs` ago. A failure is reported to the waiting
   * callers and not cached. Rejects when the signal aborts; the query continues for the others.
   */
  check(key: string, query: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** Results are shared for `maxAgeMs` after the query ends. */
export function createSharedChecks<T>(maxAgeMs: number): SharedChecks<T> {
  const checks = new Map<string, Promise<T>>();

  function begin(key: string, query: () => Promise<T>): Promise<T> {
    const check = query();
    const forget = () => {
      checks.delete(key);
    };
    checks.set(key, check);
    check.then(() => setTimeout(forget, maxAgeMs).unref(), forget);
    return check;
  }

  return {
    async check(key, query, signal) {
      signal.throwIfAborted();
      const abandoned = Promise.withResolvers<never>();
      const leave = () => abandoned.reject(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      try {
        return await Promise.race([checks.get(key) ?? begin(key, query), abandoned.promise]);
      } finally {
        signal.removeEventListener("abort", leave);
      }
    },
  };
}
