import type { ExportItem } from "./export-item.ts";
import type { Capacity } from "@holdfast/common/concurrency/capacity-queue.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type Delivered, DeliveryFailed, deliverItems, minBatchItems } from "./deliver-items.ts";
import type { EncodeContext, Encoder, VendorUrls } from "./destinations/destination.ts";
import {
  bytesOfEntries,
  bytesOfSamples,
  type ExportMemory,
  portionsOfEntries,
  portionsOfSamples,
} from "./export-memory.ts";
import { type ExportCursor, type RunStates, type Stream } from "./export-run-state.ts";
import type { SendRequest, SendTarget } from "./export-sender.ts";
import type { Standing } from "./export-concurrency.ts";
import { type ExportTargets, type MachineTarget, machineTarget } from "./export-targets.ts";
import { type LogSource, positionFrom } from "./log-source.ts";
import type { MetricsExportObject } from "./metrics-export.ts";
import type { SampleSource } from "./sample-source.ts";

/** The state of an integration in the memory of the controller that exports it. */
export interface ExportRun {
  readonly epoch: number;
  /** Cursors by stream and machine (`cursorKey`). */
  readonly cursors: Map<string, ExportCursor>;
  /** Batch sizes; reduced while a destination refuses parts of batches. */
  readonly batch: Record<Stream, number>;
}

/** The result of one stream's tick. */
export interface StreamResult {
  /** Status and message; undefined if the stream succeeded. */
  readonly error: string | undefined;
  /** True if the error is about items that were dropped: the ones that wait are sent without a delay. */
  readonly hasDropped: boolean;
  /** Delay that the destination requested (Retry-After). */
  readonly afterMs: number | undefined;
  readonly hasSent: boolean;
  /** Items before this time are delivered; undefined if no items wait. */
  readonly behindSinceMs: number | undefined;
}

export interface ExportTick {
  readonly integration: MetricsExportObject;
  readonly target: SendTarget;
  readonly targets: ExportTargets;
  readonly run: ExportRun;
  /** `failing` limits the memory of the tick, `new` its time. */
  readonly standing: Standing;
  readonly signal: AbortSignal;
  /** Aborts `signal` when the tick takes too long. */
  readonly late: AbortSignal;
}

export interface ExportShipper {
  /**
   * Sends a stream's items to the destination, at most ten batches. The cursors advance after each batch that was
   * accepted.
   */
  ship(stream: Stream, tick: ExportTick): Promise<StreamResult>;
  /**
   * Advances the cursors of overridden services, whose own integration of the same type exports their items.
   */
  skipOverridden(tick: ExportTick): Promise<void>;
}

interface Deps {
  readonly samples: SampleSource;
  readonly logs: LogSource;
  readonly states: Pick<RunStates, "advance" | "drop">;
  readonly memory: ExportMemory;
  readonly send: SendRequest;
  readonly vendors: VendorUrls;
  readonly clock: Clock;
  readonly log: Log;
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Batches per tick; afterwards other integrations get their turn. */
const batchesMax = 10;
const requestMs = 30_000;
/**
 * Deadline of a request with its retries for a new destination, so that unreachable ones
 * occupy their permits for ten seconds only.
 */
const newRequestMs = 10_000;
const tooSlow = "The destination was too slow: the batch was not delivered in time.";
/** Batch sizes: samples of machines, each with about twenty values, and log entries. */
export const fullBatch: Readonly<Record<Stream, number>> = { metrics: 200, logs: 1_000 };
const smallBatch: Readonly<Record<Stream, number>> = { metrics: 2, logs: minBatchItems };
/** Time without samples after which the cursor of a removed node is dropped. */
const silentMs = 3_600_000;

export function cursorKey({ stream, machineId }: Pick<ExportCursor, "stream" | "machineId">): string {
  return `${stream} ${machineId}`;
}

export function createExportShipper(deps: Deps): ExportShipper {
  const { samples, logs, states, memory, clock, log } = deps;

  async function deliver<I extends ExportItem>(
    items: readonly I[],
    portionsOf: (items: readonly I[]) => readonly (readonly I[])[],
    encoder: Encoder<I>,
    { target, signal, standing }: ExportTick,
  ): Promise<Delivered> {
    const deadlineMs = standing === "new" ? newRequestMs : requestMs;
    const context: EncodeContext = { nowMs: clock.now(), vendors: deps.vendors };
    const { oldestMs } = encoder;
    const recent = oldestMs === undefined ? items : items.filter(({ timeMs }) => timeMs > context.nowMs - oldestMs);
    const totals = {
      taken: 0,
      refused: 0,
      tooOld: items.length - recent.length,
      detail: undefined as string | undefined,
    };
    for (const portion of portionsOf(recent)) {
      const startedMs = clock.monotonicMs();
      const { taken, refused, tooOld, detail } = await deliverItems(portion, {
        encoder,
        configuration: target.configuration,
        context,
        send: (request) => deps.send(request, target, { deadlineMs, signal }),
        wait: (ms) => deps.wait(ms, signal),
        isLate: () => standing === "new" && clock.monotonicMs() - startedMs >= deadlineMs,
      });
      totals.taken += taken;
      totals.refused += refused;
      totals.tooOld += tooOld;
      totals.detail = detail ?? totals.detail;
    }
    return totals;
  }

  /** Records a delivered batch: counters and cursors are stored in one transaction, then applied here. */
  async function advance(
    { integration, run }: ExportTick,
    stream: Stream,
    delivered: Delivered,
    cursors: readonly ExportCursor[],
    expired: { readonly expired?: number; readonly expiredSegments?: number },
  ): Promise<void> {
    const { taken, tooOld, refused, detail } = delivered;
    const exportId = integration.metadata.id;
    if (detail !== undefined) log.warn("export refused", { export: exportId, stream, refused, tooOld, detail });
    await states.advance(exportId, run.epoch, {
      cursors,
      samples: stream === "metrics" ? taken : 0,
      logEntries: stream === "logs" ? taken : 0,
      tooOld,
      refused,
      expired: expired.expired ?? 0,
      expiredSegments: expired.expiredSegments ?? 0,
      atMs: clock.now(),
    });
    for (const cursor of cursors) run.cursors.set(cursorKey(cursor), cursor);
    run.batch[stream] = Math.min(fullBatch[stream], run.batch[stream] * 2);
  }

  /** The current machines, and machines of removed nodes with undelivered items. */
  function machinesOf(stream: Stream, { targets, run }: ExportTick): readonly MachineTarget[] {
    const currentIds = new Set(targets.machines.map(({ machineId }) => machineId));
    const removed = [...run.cursors.values()].flatMap((cursor) => {
      const owner = targets.owners.get(cursor.serviceId);
      if (cursor.stream !== stream || owner === undefined || currentIds.has(cursor.machineId)) return [];
      return [machineTarget(owner, cursor.machineId)];
    });
    return [...targets.machines, ...removed];
  }

  function positionOf(stream: Stream, { machineId }: MachineTarget, { run, integration }: ExportTick): string {
    const { since } = integration.spec;
    const position = run.cursors.get(cursorKey({ stream, machineId }))?.position;
    return position ?? (stream === "logs" ? positionFrom(since) : String(since));
  }

  const cursorOf = (stream: Stream, { machineId, origin: { serviceId } }: MachineTarget, position: string) => ({
    stream,
    machineId,
    serviceId,
    position,
  });

  async function withBudget<T>({ standing, signal }: ExportTick, work: (budget: Capacity) => Promise<T>): Promise<T> {
    const budget = await memory.reserve(standing === "failing", signal);
    try {
      return await work(budget);
    } finally {
      budget.release();
    }
  }

  async function shipSamples(tick: ExportTick, progress: StreamProgress): Promise<void> {
    const encoder = tick.target.destination.metrics;
    if (encoder === undefined) return;
    let waiting = machinesOf("metrics", tick);
    let batches = 0;
    while (waiting.length > 0 && batches < batchesMax) {
      const positioned = waiting.map((target) => ({ target, afterMs: Number(positionOf("metrics", target, tick)) }));
      const nowMs = clock.now();
      const { positions, done: totals } = await withBudget(tick, async (budget) => {
        const found = await samples.next(positioned, tick.run.batch.metrics, nowMs);
        const { items, expired } = found;
        budget.shrink(bytesOfSamples(items));
        const from = positioned.filter(({ target }) => found.positions.has(target.machineId));
        if (from.length === 0) return found;
        batches += 1;
        progress.begin(Math.min(...from.map(({ afterMs }) => afterMs)), items.length);
        const delivered = await deliver(items, portionsOfSamples, encoder, tick);
        const positionIn = ({ machineId }: MachineTarget) => String(found.positions.get(machineId));
        const cursors = from.map(({ target }) => cursorOf("metrics", target, positionIn(target)));
        await advance(tick, "metrics", delivered, cursors, { expired });
        progress.end(delivered);
        return found;
      });
      const silentMachines = positioned.filter(
        ({ target: { machineId }, afterMs }) => totals.has(machineId) && afterMs < nowMs - silentMs,
      );
      await dropSilent(
        tick,
        silentMachines.filter(({ target }) => !positions.has(target.machineId)).map(({ target }) => target),
      );
      waiting = waiting.filter(({ machineId }) => !totals.has(machineId));
    }
    if (waiting.length === 0) return progress.caughtUp();
    progress.setBehindSince(Math.min(...waiting.map((target) => Number(positionOf("metrics", target, tick)))));
  }

  /** Drops the cursors of removed nodes without new samples. */
  async function dropSilent(tick: ExportTick, silentMachines: readonly MachineTarget[]): Promise<void> {
    const expired = silentMachines
      .filter((target) => !tick.targets.machines.includes(target))
      .map(({ machineId }) => ({ machineId, stream: "metrics" as const }));
    if (expired.length === 0) return;
    await states.drop(tick.integration.metadata.id, tick.run.epoch, expired);
    for (const each of expired) tick.run.cursors.delete(cursorKey(each));
  }

  async function shipLogs(tick: ExportTick, progress: StreamProgress): Promise<void> {
    const encoder = tick.target.destination.logs;
    if (encoder === undefined) return;
    let batches = 0;
    let waiting = [...tick.targets.machines];
    // Round robin, so that a machine with many entries does not delay the others of its service.
    while (waiting.length > 0 && batches < batchesMax) {
      const withMoreEntries: MachineTarget[] = [];
      for (const target of waiting) {
        const newestMs = await withBudget(tick, async (budget) => {
          const position = positionOf("logs", target, tick);
          const found = await logs.next(target, position, tick.run.batch.logs, tick.signal);
          if (found === undefined || found.position === position) return undefined;
          const { items, expiredSegments } = found;
          budget.shrink(bytesOfEntries(items));
          if (items.length > 0) batches += 1;
          progress.begin(items[0]?.timeMs ?? clock.now(), items.length);
          const delivered = await deliver(items, portionsOfEntries, encoder, tick);
          await advance(tick, "logs", delivered, [cursorOf("logs", target, found.position)], { expiredSegments });
          progress.end(delivered);
          return found.hasMore ? (items.at(-1)?.timeMs ?? clock.now()) : undefined;
        });
        if (newestMs === undefined) continue;
        withMoreEntries.push(target);
        progress.setBehindSince(newestMs);
      }
      waiting = withMoreEntries;
    }
    if (waiting.length === 0) progress.caughtUp();
  }

  return {
    async ship(stream, tick) {
      const progress = createProgress();
      try {
        await (stream === "metrics" ? shipSamples(tick, progress) : shipLogs(tick, progress));
        return progress.result(undefined, undefined);
      } catch (error) {
        // The next tick sends the rest. A destination that accepted nothing during the whole tick has failed.
        if (tick.late.aborted && tick.signal.reason === tick.late.reason)
          return progress.result(progress.isStuck ? tooSlow : undefined, undefined);
        if (!(error instanceof DeliveryFailed)) throw error;
        if (error.isTooMixed) tick.run.batch[stream] = smallBatch[stream];
        return progress.result(error.message, error.afterMs);
      }
    },
    async skipOverridden(tick) {
      const { integration, targets, run } = tick;
      const now = clock.now();
      const machines = targets.overridden.flatMap((owner) => owner.machines.map(({ id }) => machineTarget(owner, id)));
      const cursors = machines.flatMap((target) => [
        cursorOf("metrics", target, String(now)),
        cursorOf("logs", target, positionFrom(now)),
      ]);
      if (cursors.length === 0) return;
      const nothing = { samples: 0, logEntries: 0, tooOld: 0, refused: 0, expired: 0, expiredSegments: 0 };
      await states.advance(integration.metadata.id, run.epoch, { ...nothing, cursors, atMs: now });
      for (const cursor of cursors) run.cursors.set(cursorKey(cursor), cursor);
    },
  };
}

type StreamProgress = ReturnType<typeof createProgress>;

/** The progress of one stream's tick. */
function createProgress() {
  let hasSent = false;
  let isWaiting = false;
  let behindSinceMs: number | undefined;
  let taken = 0;
  let refusal: string | undefined;
  return {
    begin(oldestMs: number, items: number) {
      hasSent ||= items > 0;
      isWaiting = items > 0;
      behindSinceMs = oldestMs;
    },
    /** True if a batch is in flight and none was accepted. */
    get isStuck() {
      return isWaiting && taken === 0;
    },
    end(delivered: Delivered) {
      isWaiting = false;
      taken += delivered.taken;
      refusal = delivered.detail ?? refusal;
    },
    /** Items before this time are delivered, and later ones wait. */
    setBehindSince(timeMs: number) {
      behindSinceMs = timeMs;
    },
    caughtUp() {
      behindSinceMs = undefined;
    },
    /** A destination that refused everything, also as too old, has failed, even if nothing waits. */
    result(error: string | undefined, afterMs: number | undefined): StreamResult {
      const hasDropped = error === undefined && taken === 0 && refusal !== undefined;
      return { error: hasDropped ? refusal : error, hasDropped, afterMs, hasSent, behindSinceMs };
    },
  };
}
