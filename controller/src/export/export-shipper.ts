import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type Delivered, DeliveryFailed, deliverItems, fewestItems } from "./deliver-items.ts";
import type { EncodeContext, Encoder, VendorUrls } from "./destinations/destination.ts";
import {
  type BatchRoom,
  bytesOfEntries,
  bytesOfSamples,
  type ExportMemory,
  portionsOfEntries,
  portionsOfSamples,
} from "./export-memory.ts";
import { type ExportCursor, type RunStates, type Stream } from "./export-run-state.ts";
import type { SendRequest, SendTarget } from "./export-sender.ts";
import type { Standing } from "./export-slots.ts";
import { type ExportTargets, type MachineTarget, machineTarget } from "./export-targets.ts";
import { type LogSource, positionFrom } from "./log-source.ts";
import type { MetricsExportObject } from "./metrics-export.ts";
import type { SampleSource } from "./sample-source.ts";

/** What one controller knows of an integration that it works on. */
export interface ExportRun {
  readonly epoch: number;
  /** By stream and machine. */
  readonly cursors: Map<string, ExportCursor>;
  /** Fewer at once while a destination refuses parts of batches. */
  readonly batch: Record<Stream, number>;
}

/** How the tick of one stream ended. */
export interface StreamEnd {
  /** Status and our own words; undefined when nothing failed. */
  readonly error: string | undefined;
  readonly afterMs: number | undefined;
  readonly hasSent: boolean;
  /** Up to then all is delivered; undefined when nothing is left. */
  readonly behindSinceMs: number | undefined;
}

export interface ExportTick {
  readonly integration: MetricsExportObject;
  readonly target: SendTarget;
  readonly targets: ExportTargets;
  readonly run: ExportRun;
  /** One that fails shares the memory of those that do, and a new one has less time. */
  readonly standing: Standing;
  readonly signal: AbortSignal;
  /** Ends `signal` when the tick took too long. */
  readonly late: AbortSignal;
}

export interface ExportShipper {
  /** Brings what a stream has to the destination, ten batches at most; each moves its cursors once it was taken. */
  ship(stream: Stream, tick: ExportTick): Promise<StreamEnd>;
  /** Services that have an integration of the type themselves: what is told meanwhile is not for this one. */
  pass(tick: ExportTick): Promise<void>;
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

/** After so many it is the others' turn. */
const batchesMax = 10;
const requestMs = 30_000;
/** A destination that took nothing yet has so long for a request and its tries: many that hang come to their ends soon. */
const newRequestMs = 10_000;
const tooSlow = "The destination was too slow: the batch did not get through.";
/** Samples of machines, each of some twenty values; and entries of logs. */
export const fullBatch: Readonly<Record<Stream, number>> = { metrics: 200, logs: 1_000 };
const smallBatch: Readonly<Record<Stream, number>> = { metrics: 2, logs: fewestItems };
/** A machine whose node is gone tells nothing more once it was silent for so long. */
const silentMs = 3_600_000;

export function cursorKey({ stream, machineId }: Pick<ExportCursor, "stream" | "machineId">): string {
  return `${stream} ${machineId}`;
}

export function createExportShipper(deps: Deps): ExportShipper {
  const { samples, logs, states, memory, clock, log } = deps;

  async function deliver<I extends { readonly timeMs: number }>(
    items: readonly I[],
    portionsOf: (items: readonly I[]) => readonly (readonly I[])[],
    encoder: Encoder<I>,
    { target, signal, standing }: ExportTick,
  ): Promise<Delivered> {
    const deadlineMs = standing === "new" ? newRequestMs : requestMs;
    const context: EncodeContext = { nowMs: clock.now(), vendors: deps.vendors };
    const { oldestMs } = encoder;
    const fresh = oldestMs === undefined ? items : items.filter(({ timeMs }) => timeMs > context.nowMs - oldestMs);
    const done = { taken: 0, refused: 0, tooOld: items.length - fresh.length, why: undefined as string | undefined };
    for (const portion of portionsOf(fresh)) {
      const begunMs = clock.monotonicMs();
      const { taken, refused, tooOld, why } = await deliverItems(portion, {
        encoder,
        configuration: target.configuration,
        context,
        send: (request) => deps.send(request, target, { deadlineMs, signal }),
        wait: (ms) => deps.wait(ms, signal),
        isLate: () => standing === "new" && clock.monotonicMs() - begunMs >= deadlineMs,
      });
      done.taken += taken;
      done.refused += refused;
      done.tooOld += tooOld;
      done.why = why ?? done.why;
    }
    return done;
  }

  /** One batch is over: its figures and cursors are written in one, then hold here. */
  async function advance(
    { integration, run }: ExportTick,
    stream: Stream,
    delivered: Delivered,
    moved: readonly ExportCursor[],
    gone: { readonly gone?: number; readonly goneSegments?: number },
  ): Promise<void> {
    const { taken, tooOld, refused, why } = delivered;
    const exportId = integration.metadata.id;
    if (refused > 0) log.warn("export refused", { export: exportId, stream, refused, why });
    await states.advance(exportId, run.epoch, {
      cursors: moved,
      samples: stream === "metrics" ? taken : 0,
      logEntries: stream === "logs" ? taken : 0,
      tooOld,
      refused,
      gone: gone.gone ?? 0,
      goneSegments: gone.goneSegments ?? 0,
      atMs: clock.now(),
    });
    for (const cursor of moved) run.cursors.set(cursorKey(cursor), cursor);
    run.batch[stream] = Math.min(fullBatch[stream], run.batch[stream] * 2);
  }

  /** Machines of now, and those whose nodes are gone with something that is not delivered yet. */
  function machinesOf(stream: Stream, { targets, run }: ExportTick): readonly MachineTarget[] {
    const there = new Set(targets.machines.map(({ machineId }) => machineId));
    const left = [...run.cursors.values()].flatMap((cursor) => {
      const service = targets.services.get(cursor.serviceId);
      if (cursor.stream !== stream || service === undefined || there.has(cursor.machineId)) return [];
      return [machineTarget(service, cursor.machineId)];
    });
    return [...targets.machines, ...left];
  }

  function positionOf(stream: Stream, { machineId }: MachineTarget, { run, integration }: ExportTick): string {
    const { since } = integration.spec;
    const known = run.cursors.get(cursorKey({ stream, machineId }))?.position;
    return known ?? (stream === "logs" ? positionFrom(since) : String(since));
  }

  const cursorOf = (stream: Stream, { machineId, origin: { serviceId } }: MachineTarget, position: string) => ({
    stream,
    machineId,
    serviceId,
    position,
  });

  async function withRoom<T>({ standing, signal }: ExportTick, work: (room: BatchRoom) => Promise<T>): Promise<T> {
    const room = await memory.take(standing === "failing", signal);
    try {
      return await work(room);
    } finally {
      room.release();
    }
  }

  async function shipSamples(tick: ExportTick, progress: StreamProgress): Promise<void> {
    const encoder = tick.target.destination.metrics;
    if (encoder === undefined) return;
    let waiting = machinesOf("metrics", tick);
    let batches = 0;
    while (waiting.length > 0 && batches < batchesMax) {
      const placed = waiting.map((target) => ({ target, afterMs: Number(positionOf("metrics", target, tick)) }));
      const nowMs = clock.now();
      const { positions, done } = await withRoom(tick, async (room) => {
        const found = await samples.next(placed, tick.run.batch.metrics, nowMs);
        const { items, gone } = found;
        room.shrink(bytesOfSamples(items));
        const from = placed.filter(({ target }) => found.positions.has(target.machineId));
        if (from.length === 0) return found;
        batches += 1;
        progress.begin(Math.min(...from.map(({ afterMs }) => afterMs)), items.length);
        const delivered = await deliver(items, portionsOfSamples, encoder, tick);
        const positionIn = ({ machineId }: MachineTarget) => String(found.positions.get(machineId));
        const moved = from.map(({ target }) => cursorOf("metrics", target, positionIn(target)));
        await advance(tick, "metrics", delivered, moved, { gone });
        progress.end(delivered);
        return found;
      });
      const silent = placed.filter(
        ({ target: { machineId }, afterMs }) => done.has(machineId) && afterMs < nowMs - silentMs,
      );
      await forgetSilent(
        tick,
        silent.filter(({ target }) => !positions.has(target.machineId)).map(({ target }) => target),
      );
      waiting = waiting.filter(({ machineId }) => !done.has(machineId));
    }
    if (waiting.length === 0) return progress.caughtUp();
    progress.left(Math.min(...waiting.map((target) => Number(positionOf("metrics", target, tick)))));
  }

  /** Cursors of machines that no node has any more, once nothing comes of them. */
  async function forgetSilent(tick: ExportTick, silent: readonly MachineTarget[]): Promise<void> {
    const gone = silent
      .filter((target) => !tick.targets.machines.includes(target))
      .map(({ machineId }) => ({ machineId, stream: "metrics" as const }));
    if (gone.length === 0) return;
    await states.drop(tick.integration.metadata.id, tick.run.epoch, gone);
    for (const each of gone) tick.run.cursors.delete(cursorKey(each));
  }

  async function shipLogs(tick: ExportTick, progress: StreamProgress): Promise<void> {
    const encoder = tick.target.destination.logs;
    if (encoder === undefined) return;
    let batches = 0;
    let waiting = [...tick.targets.machines];
    // Each machine in turn, so that a talkative one does not hold up the others of its service.
    while (waiting.length > 0 && batches < batchesMax) {
      const further: MachineTarget[] = [];
      for (const target of waiting) {
        const newestMs = await withRoom(tick, async (room) => {
          const position = positionOf("logs", target, tick);
          const found = await logs.next(target, position, tick.run.batch.logs, tick.signal);
          if (found === undefined || found.position === position) return undefined;
          const { items, goneSegments } = found;
          room.shrink(bytesOfEntries(items));
          if (items.length > 0) batches += 1;
          progress.begin(items[0]?.timeMs ?? clock.now(), items.length);
          const delivered = await deliver(items, portionsOfEntries, encoder, tick);
          await advance(tick, "logs", delivered, [cursorOf("logs", target, found.position)], { goneSegments });
          progress.end(delivered);
          return found.hasMore ? (items.at(-1)?.timeMs ?? clock.now()) : undefined;
        });
        if (newestMs === undefined) continue;
        further.push(target);
        progress.left(newestMs);
      }
      waiting = further;
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
        // The rest is the next tick's. A destination that took nothing all the time keeps slots from others, and has failed.
        if (tick.late.aborted && tick.signal.reason === tick.late.reason)
          return progress.result(progress.isStuck ? tooSlow : undefined, undefined);
        if (!(error instanceof DeliveryFailed)) throw error;
        if (error.isTooMixed) tick.run.batch[stream] = smallBatch[stream];
        return progress.result(error.message, error.afterMs);
      }
    },
    async pass(tick) {
      const { integration, targets, run } = tick;
      const now = clock.now();
      const machines = targets.elsewhere.flatMap((service) =>
        service.spec.nodes.map(({ id }) => machineTarget(service, id)),
      );
      const cursors = machines.flatMap((target) => [
        cursorOf("metrics", target, String(now)),
        cursorOf("logs", target, positionFrom(now)),
      ]);
      if (cursors.length === 0) return;
      const nothing = { samples: 0, logEntries: 0, tooOld: 0, refused: 0, gone: 0, goneSegments: 0 };
      await states.advance(integration.metadata.id, run.epoch, { ...nothing, cursors, atMs: now });
      for (const cursor of cursors) run.cursors.set(cursorKey(cursor), cursor);
    },
  };
}

type StreamProgress = ReturnType<typeof createProgress>;

/** What a stream's tick came to so far. */
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
    /** A batch is on its way, and none came through. */
    get isStuck() {
      return isWaiting && taken === 0;
    },
    end(delivered: Delivered) {
      isWaiting = false;
      taken += delivered.taken;
      if (delivered.refused > 0) refusal = delivered.why;
    },
    left(oldestMs: number) {
      behindSinceMs = oldestMs;
    },
    caughtUp() {
      behindSinceMs = undefined;
    },
    /** A destination that refused everything has failed, though nothing is left to be sent. */
    result(error: string | undefined, afterMs: number | undefined): StreamEnd {
      return { error: error ?? (taken === 0 ? refusal : undefined), afterMs, hasSent, behindSinceMs };
    },
  };
}
