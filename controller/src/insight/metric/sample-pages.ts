import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Call } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Metric } from "@holdfast/common/metrics/metric.ts";
import type {
  ListMetricSamplesRequest,
  ListMetricSamplesResponseSchema,
} from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { RecentSample } from "./samples/sample-points.ts";
import type { Samples } from "./samples/samples.ts";
import { NodeRole } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { MonitoredMachine } from "#fleet/owner/monitored-owner.ts";

type Page = MessageInitShape<typeof ListMetricSamplesResponseSchema>;

interface Deps {
  readonly storedSamples: Pick<Samples, "recent">;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

const defaultRangeMs = 60_000;
/** Interval of the queries of a follower that has read all samples. Samples are taken every 15 s. */
const refreshMs = 2_000;

/** Returns a function that reads a page of an owner's raw samples, which calls can follow. */
export function createSamplePages({ storedSamples, cursors, clock }: Deps) {
  /** Time of the last query of each follower that has read all samples. */
  const refreshedAt = new WeakMap<Call, number>();

  return async (
    request: ListMetricSamplesRequest,
    { machines }: MonitoredOwner,
    metrics: readonly Metric[],
    call: Call,
  ): Promise<Page> => {
    const now = clock.monotonicMs();
    if (
      request.follow === true &&
      request.cursor !== undefined &&
      now - (refreshedAt.get(call) ?? -refreshMs) < refreshMs
    )
      return { samples: [], nextCursor: request.cursor, hasMore: false };
    const metricNumbers = metrics.map(({ number }) => number);
    const { after, limit, cursorAt } = cursors.open(
      call,
      "metric-samples",
      [request.serviceId, metricNumbers],
      request,
    );
    const from = request.since === undefined ? clock.now() - defaultRangeMs : timestampMs(request.since);
    const nodes = new Map(machines.map((node) => [node.id, node]));
    const before: SamplePosition =
      after === undefined ? new Map([...nodes.keys()].map((id) => [id, from])) : readPosition(after, [...nodes.keys()]);
    const queries = [...before].map(([machineId, afterMs]) => ({ machineId, afterMs }));
    const page = samplePage(await storedSamples.recent(queries, metricNumbers, limit + 1), before, limit);
    if (!page.more) refreshedAt.set(call, now);
    return {
      samples: page.samples.flatMap(({ machineId, timeMs, values }) => {
        const node = nodes.get(machineId);
        if (node === undefined) return [];
        const named = metrics.flatMap(({ number, name }) => {
          const value = values.get(number);
          return value === undefined ? [] : [[name, value] as const];
        });
        return {
          time: timestampFromMs(timeMs),
          nodeId: machineId,
          role: machineRoleOf(node),
          values: Object.fromEntries(named),
        };
      }),
      nextCursor: cursorAt(positionText(page.position)),
      hasMore: page.more,
    };
  };
}

/** Read position: by node id, the time in milliseconds since 1970 up to which the reader has its samples. */
export type SamplePosition = ReadonlyMap<string, number>;

export interface SamplePage {
  readonly samples: readonly RecentSample[];
  readonly position: SamplePosition;
  readonly more: boolean;
}

/**
 * The oldest samples of all nodes. A node that was disconnected delivers its samples later than others, so each node
 * has a separate position.
 */
export function samplePage(read: readonly RecentSample[], before: SamplePosition, limit: number): SamplePage {
  const inOrder = read.toSorted((a, b) => a.timeMs - b.timeMs || (a.machineId < b.machineId ? -1 : 1));
  const samples = inOrder.slice(0, limit);
  const position = new Map(before);
  for (const { machineId, timeMs } of samples) position.set(machineId, timeMs);
  return { samples, position, more: inOrder.length > limit };
}

/**
 * The position as text: for each node the last 12 characters of its id and the time in base 36, separated by commas,
 * such as `1d2b0c9e7f10ms2k4f8`.
 */
export function positionText(position: SamplePosition): string {
  return [...position].map(([id, timeMs]) => `${shortIdOf(id)}${timeMs.toString(36)}`).join(",");
}

/** Parses a position for these nodes. A node that the text lacks begins at the earliest of the other positions. */
export function readPosition(text: string, nodeIds: readonly string[]): SamplePosition {
  const parts = text.split(",").filter((part) => part !== "");
  const times = new Map(
    parts.map((part) => [part.slice(0, shortIdLength), Number.parseInt(part.slice(shortIdLength), 36)]),
  );
  const first = Math.min(...times.values(), Number.MAX_SAFE_INTEGER);
  return new Map(nodeIds.map((id) => [id, times.get(shortIdOf(id)) ?? first]));
}

const shortIdLength = 12;

/** The random end of the id: UUIDs (version 7) that are created together begin with the same digits. */
function shortIdOf(id: string): string {
  return id.slice(-shortIdLength);
}

const roles = { primary: NodeRole.PRIMARY, replica: NodeRole.REPLICA } as const;

/** Role of a machine in messages. */
export function machineRoleOf({ role }: MonitoredMachine): NodeRole {
  return roles[role];
}
