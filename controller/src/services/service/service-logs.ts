import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  LogLevel,
  type ListLogsRequest,
  type ListLogsResponse,
  ListLogsResponseSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { create } from "@bufbuild/protobuf";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createSharedLooks } from "./shared-looks.ts";
import { type ManagedServiceObject, primaryOf } from "./managed-service.ts";

/** The engine's log, read from the machine that has it. */
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
/** A follower looks twice a second: all who follow one log to its end have the lines of one look. */
const lookMs = 400;

export function createServiceLogs({ fleet, cursors }: { fleet: Fleet; cursors: Cursors }): ServiceLogs {
  const looks = createSharedLooks<TaskResult>(lookMs);
  return {
    async page(service, request, call) {
      const node = primaryOf(service);
      const level = levels.find(([shown]) => shown === request.level)?.[1] ?? "";
      // Not bound to `since`: it only says where the first page begins.
      const filter = [service.metadata.id, level];
      const { after = "", limit, cursorAt } = cursors.open(call, "logs", filter, request);
      const value = {
        $typeName: "holdfast.agent.v1.ReadLogs",
        level,
        cursor: after,
        limit,
        wholeEntries: false,
        ...(request.since === undefined ? {} : { since: request.since }),
      } as const;
      const task = {
        ownerId: service.metadata.id,
        generation: service.spec.instanceGeneration,
        term: service.status.term,
        lane: "query",
        input: { case: "readLogs", value },
        deadlineMs: readTimeoutMs,
      } as const;
      const read = (signal?: AbortSignal) => fleet.run(node.id, task, readTimeoutMs, signal);
      // Behind a cursor `since` means nothing any more. Each caller may read this service: that was judged before.
      const question = [node.id, task.ownerId, task.generation, task.term, level, limit, after];
      const follows = request.follow === true && after !== "";
      const result = await (follows ? looks.look(JSON.stringify(question), read, call.signal) : read(call.signal));
      if (result.output.case !== "readLogs") {
        throw new HoldfastError("MACHINE_UNREACHABLE", result.failure?.message ?? "The agent did not read its logs.");
      }
      const { lines, nextCursor, hasMore } = result.output.value;
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
