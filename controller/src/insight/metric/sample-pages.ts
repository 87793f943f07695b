import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Call } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Metric } from "@holdfast/common/metric-catalog.ts";
import type {
  ListMetricSamplesRequest,
  ListMetricSamplesResponseSchema,
} from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { roleOf } from "#services/service/managed-service-message.ts";
import type { Samples } from "./samples/samples.ts";
import { positionText, readPosition, samplePage, type SamplePosition } from "./sample-page.ts";

type Page = MessageInitShape<typeof ListMetricSamplesResponseSchema>;

interface Deps {
  readonly storedSamples: Pick<Samples, "recent">;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

const usualBackMs = 60_000;
/** Samples are taken every 15 s: a follower who has all looks again after so long. */
const ownLookMs = 2_000;

/** Pages of raw samples of a service, which can be followed. */
export function createSamplePages({ storedSamples, cursors, clock }: Deps) {
  /** When followers that had all last looked. */
  const looked = new WeakMap<Call, number>();

  return async (
    asked: ListMetricSamplesRequest,
    service: ManagedServiceObject,
    metrics: readonly Metric[],
    call: Call,
  ): Promise<Page> => {
    const now = clock.monotonicMs();
    if (asked.follow === true && asked.cursor !== undefined && now - (looked.get(call) ?? -ownLookMs) < ownLookMs)
      return { samples: [], nextCursor: asked.cursor, hasMore: false };
    const slots = metrics.map(({ slot }) => slot);
    const { after, limit, cursorAt } = cursors.open(call, "metric-samples", [asked.serviceId, slots], asked);
    const from = asked.since === undefined ? clock.now() - usualBackMs : timestampMs(asked.since);
    const nodes = new Map(service.spec.nodes.map((node) => [node.id, node]));
    const before: SamplePosition =
      after === undefined ? new Map([...nodes.keys()].map((id) => [id, from])) : readPosition(after, [...nodes.keys()]);
    const wanted = [...before].map(([machineId, afterMs]) => ({ machineId, afterMs }));
    const page = samplePage(await storedSamples.recent(wanted, slots, limit + 1), before, limit);
    if (!page.more) looked.set(call, now);
    return {
      samples: page.samples.flatMap(({ machineId, timeMs, values }) => {
        const node = nodes.get(machineId);
        if (node === undefined) return [];
        const named = metrics.flatMap(({ slot, name }) => {
          const value = values.get(slot);
          return value === undefined ? [] : [[name, value] as const];
        });
        return {
          time: timestampFromMs(timeMs),
          nodeId: machineId,
          role: roleOf(service, node),
          values: Object.fromEntries(named),
        };
      }),
      nextCursor: cursorAt(positionText(page.position)),
      hasMore: page.more,
    };
  };
}
