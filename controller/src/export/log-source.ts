import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { ExportedLevel, LogItem } from "./export-item.ts";
import type { MachineTarget } from "./export-targets.ts";

/** The next entries of one machine's engine log. */
export interface LogBatch {
  readonly items: readonly LogItem[];
  readonly position: string;
  readonly hasMore: boolean;
  /** Number of log segments that were deleted before they were read. */
  readonly expiredSegments: number;
}

export interface LogSource {
  /** Complete entries after the position; undefined while the machine is unreachable. */
  next(target: MachineTarget, position: string, max: number, signal: AbortSignal): Promise<LogBatch | undefined>;
}

const readTimeoutMs = 10_000;
/** Prefix of a position that is a time, such as `@1764246000000`. */
const fromTime = "@";

/** The position of the first entry from a time on, milliseconds since 1970. */
export function positionFrom(timeMs: number): string {
  return `${fromTime}${Math.trunc(timeMs)}`;
}

// biome-ignore format: a table, aligned so that it reads as one
const levels: ReadonlyMap<string, ExportedLevel> = new Map(
  Object.entries<ExportedLevel>({
  debug: "debug",
  info: "info",
  warning: "warn",
  error: "error",
}),
);

/** Reads in the lane for bulk work, so that interactive reads of logs do not wait for exports. */
export function createLogSource(fleet: Pick<Fleet, "run">): LogSource {
  return {
    async next({ machineId, owner, origin, role }, position, max, signal) {
      const isTime = position.startsWith(fromTime);
      const value = {
        $typeName: "holdfast.agent.v1.ReadLogs" as const,
        level: "",
        cursor: isTime ? "" : position,
        limit: max,
        completeEntries: true,
        component: "",
        newest: false,
        contains: "",
        ...(isTime && { since: timestampFromMs(Number(position.slice(fromTime.length))) }),
      };
      const request = {
        ownerId: owner.owner.id,
        generation: owner.generation,
        term: owner.term,
        lane: "bulk",
        input: { case: "readLogs", value },
        deadlineMs: readTimeoutMs,
      } as const;
      try {
        const { output } = await fleet.run(machineId, request, readTimeoutMs, signal);
        if (output.case !== "readLogs") return undefined;
        const { lines, nextCursor, hasMore, lostSegments } = output.value;
        const items = lines.map(({ time, component, level, message }) => ({
          origin,
          level: levels.get(level) ?? "info",
          message,
          component,
          role,
          timeMs: time === undefined ? 0 : timestampMs(time),
        }));
        return { items, position: nextCursor, hasMore, expiredSegments: lostSegments };
      } catch (error) {
        // The machine is stopped or unreachable; its log stays there.
        if (error instanceof HoldfastError && (error.key === "MACHINE_UNREACHABLE" || error.key === "RATE_LIMITED"))
          return undefined;
        throw error;
      }
    },
  };
}
