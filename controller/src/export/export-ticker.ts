import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Ownership, WorkLease } from "#kernel/runtime/ownership.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { openConfiguration } from "./configuration/secrets.ts";
import type { Destination } from "./destinations/destination.ts";
import { destinationOf } from "./destinations/destinations.ts";
import { exportEvent } from "./export-events.ts";
import { firstDueAt, followUp, nextDueAt, standingOf } from "./export-plan.ts";
import { newRunState, TakenOver, type RunState, type RunStates, type Stream } from "./export-run-state.ts";
import {
  cursorKey,
  type ExportRun,
  type ExportShipper,
  type ExportTick,
  fullBatch,
  type StreamResult,
} from "./export-shipper.ts";
import { createExportConcurrency, type Standing } from "./export-concurrency.ts";
import type { ExportTargets } from "./export-targets.ts";
import { carriesLogs, carriesMetrics, type MetricsExportObject, metricsExportKind } from "./metrics-export.ts";

export interface ExportTickerDeps {
  readonly exports: Collection<MetricsExportObject>;
  readonly targetsOf: (integration: MetricsExportObject) => ExportTargets;
  readonly shipper: ExportShipper;
  readonly states: RunStates;
  readonly ownership: Ownership;
  readonly begin: () => UnitOfWork;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
  /** Resolves when all collections that targets are read from are in memory. */
  readonly ready: Promise<unknown>;
  /** Interval between checks for due integrations; 250 ms by default. */
  readonly pollIntervalMs?: number;
  /** Limit of a tick; five minutes by default. */
  readonly tickMaxMs?: number;
}

export interface ExportTicker {
  /** The integrations that this controller exports, and their run states. */
  readonly working: ReadonlyMap<string, { readonly state: RunState }>;
  /** Resolves when all ticks have ended. */
  stop(): Promise<void>;
}

interface ActiveExport {
  /** Revision of the integration that the other fields belong to. */
  readonly modRevision: bigint;
  dueAt: number;
  isRunning: boolean;
  run: ExportRun | undefined;
  state: RunState;
}

/** The streams of a tick, and the number that runs concurrently. */
interface Share {
  readonly streams: readonly Stream[];
  readonly concurrency: number;
  readonly standing: Standing;
}

const tickMaxMs = 5 * 60_000;

/** Runs the ticks of the integrations that this controller owns, each when it is due. Starts immediately. */
export function createExportTicker(deps: ExportTickerDeps): ExportTicker {
  const { exports, states, ownership, clock, log, shipper } = deps;
  const stopping = new AbortController();
  const active = new Map<string, ActiveExport>();
  const concurrency = createExportConcurrency();
  const running = new Set<Promise<void>>();

  function startDue(): void {
    const now = clock.now();
    const due: { readonly stored: Stored<MetricsExportObject>; readonly entry: ActiveExport }[] = [];
    for (const stored of exports.values()) {
      const { metadata, spec } = stored.object;
      if (!spec.isEnabled || !ownership.owns(metadata.id)) continue;
      const entry = activeOf(stored, now);
      if (!entry.isRunning && entry.dueAt <= now) due.push({ stored, entry });
    }
    // The longest waiting first; an integration with a backlog is due again after the others.
    for (const { stored, entry } of due.toSorted((a, b) => a.entry.dueAt - b.entry.dueAt)) begin(stored, entry);
    for (const [id, entry] of active) {
      const isFinished = exports.get(id)?.object.spec.isEnabled !== true || !ownership.owns(id);
      if (isFinished && !entry.isRunning) active.delete(id);
    }
  }

  function activeOf(stored: Stored<MetricsExportObject>, now: number): ActiveExport {
    const before = active.get(stored.object.metadata.id);
    if (before !== undefined && (before.isRunning || before.modRevision === stored.modRevision)) return before;
    const created: ActiveExport = {
      modRevision: stored.modRevision,
      dueAt: before === undefined ? firstDueAt(timingOf(stored.object), now) : now,
      isRunning: false,
      run: undefined,
      state: newRunState,
    };
    active.set(stored.object.metadata.id, created);
    return created;
  }

  function begin(stored: Stored<MetricsExportObject>, entry: ActiveExport): void {
    const { metadata, spec } = stored.object;
    const streams = streamsOf(spec, destinationOf(spec.destinationType));
    const { run } = entry;
    // The standing is only known after the state is read, which needs no destination.
    const standing = run === undefined ? "healthy" : standingOf(entry.state, timingOf(stored.object));
    const requested = run !== undefined && standing === "healthy" ? streams.length : 1;
    const taken = concurrency.take(metadata.organizationId, requested, standing);
    if (taken === undefined) return;
    const workLease = ownership.begin(metadata.id);
    if (workLease === undefined) return taken.release();
    entry.isRunning = true;
    const share = { streams, concurrency: taken.count, standing };
    const started = run === undefined ? takeOver(stored, entry, workLease) : tick(stored, entry, run, share, workLease);
    const work = started.finally(() => {
      workLease.end();
      taken.release();
      entry.isRunning = false;
      running.delete(work);
    });
    running.add(work);
  }

  /** The integration stays due, so its first tick follows. */
  async function takeOver(
    { object }: Stored<MetricsExportObject>,
    entry: ActiveExport,
    workLease: WorkLease,
  ): Promise<void> {
    const { id } = object.metadata;
    try {
      const { state, cursors } = await states.take(id);
      const byKey = new Map(cursors.map((cursor) => [cursorKey(cursor), cursor] as const));
      entry.state = state;
      entry.run = { epoch: state.epoch, cursors: byKey, batch: { ...fullBatch } };
    } catch (error) {
      if (!stopping.signal.aborted && !workLease.signal.aborted) logFailure(id, error);
      entry.dueAt = nextDueAt(timingOf(object), entry.state, clock.now());
    }
  }

  async function tick(
    stored: Stored<MetricsExportObject>,
    entry: ActiveExport,
    run: ExportRun,
    { streams, concurrency, standing }: Share,
    workLease: WorkLease,
  ): Promise<void> {
    const integration = stored.object;
    const { id, organizationId } = integration.metadata;
    const timing = timingOf(integration);
    let afterMs: number | undefined;
    let isBehind = false;
    try {
      const late = AbortSignal.timeout(deps.tickMaxMs ?? tickMaxMs);
      const signal = AbortSignal.any([workLease.signal, stopping.signal, late]);
      const destination = destinationOf(integration.spec.destinationType);
      const configuration = openConfiguration(integration, destination, deps.sealer);
      const target = { destination, configuration, organizationId };
      const targets = deps.targetsOf(integration);
      const current = { integration, target, targets, run, standing, signal, late };
      await shipper.skipOverridden(current);
      const ends = await shipAll(streams, concurrency, current);
      const errors = ends.flatMap(({ error }) => error ?? []);
      const behind = ends.flatMap(({ behindSinceMs }) => behindSinceMs ?? []);
      const waits = ends.flatMap((end) => end.afterMs ?? []);
      afterMs = waits.length === 0 ? undefined : Math.max(...waits);
      const end = {
        atMs: clock.now(),
        error: errors[0]?.slice(0, errorMax) ?? null,
        behindSinceMs: behind.length === 0 ? null : Math.min(...behind),
        hasSent: ends.some(({ hasSent }) => hasSent),
      };
      // Items that were dropped after an outage must not delay later ones until those are too old as well.
      isBehind = end.behindSinceMs !== null && ends.every((each) => each.error === undefined || each.hasDropped);
      if (isChanged(entry.state, end)) entry.state = await states.endTick(id, run.epoch, end);
      await announce(stored, entry.state, run, workLease);
    } catch (error) {
      entry.run = undefined;
      // The next owner, or the next tick, continues from the stored cursors.
      if (!stopping.signal.aborted && !workLease.signal.aborted && !(error instanceof TakenOver)) logFailure(id, error);
    }
    const now = clock.now();
    entry.dueAt = isBehind ? now : nextDueAt(timing, entry.state, now, afterMs);
  }

  /** Runs the streams one after the other when the permit is for one. */
  async function shipAll(
    streams: readonly Stream[],
    concurrency: number,
    tick: ExportTick,
  ): Promise<readonly StreamResult[]> {
    if (concurrency >= streams.length) return Promise.all(streams.map((stream) => shipper.ship(stream, tick)));
    const ends: StreamResult[] = [];
    for (const stream of streams) ends.push(await shipper.ship(stream, tick));
    return ends;
  }

  /**
   * Announces or disables a failing integration. The event is written before the state: a crash repeats it, and never
   * loses it.
   */
  async function announce(stored: Stored<MetricsExportObject>, state: RunState, run: ExportRun, workLease: WorkLease) {
    const next = followUp(state, clock.now());
    if (next === "nothing") return;
    const integration = stored.object;
    const { id } = integration.metadata;
    const unit = deps.begin();
    if (workLease.claim !== undefined) unit.onlyWhile(workLease.claim);
    if (next === "disable") {
      const { metadata, spec } = integration;
      const reason = `It failed for seven days: ${state.lastError ?? ""}`;
      unit.update(metricsExportKind, stored, {
        ...integration,
        metadata: nextMetadata(metadata, clock.now()),
        spec: { ...spec, isEnabled: false, disabledReason: reason },
      });
      unit.event(exportEvent("export.disabled", integration, state));
    } else if (next === "announceFailing") unit.event(exportEvent("export.failing", integration, state));
    else unit.event(exportEvent("export.recovered", integration));
    await unit.commit(workLease.signal);
    if (next !== "disable") await states.setAnnounced(id, run.epoch, next === "announceFailing");
  }

  function logFailure(id: string, error: unknown): void {
    // The history is unavailable: nothing was sent or lost. Or another write came first: the next tick sees it.
    if (error instanceof Conflict || (error instanceof HoldfastError && error.key === "STORE_UNAVAILABLE"))
      log.debug("export postponed", { export: id, error: String(error) });
    else log.error("export tick failed", { export: id, error });
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      startDue();
      await delay(deps.pollIntervalMs ?? 250, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }
  const looping = deps.ready.then(loop);

  return {
    working: active,
    async stop() {
      stopping.abort(new Error("the controller stops"));
      await looping;
      await Promise.all(running);
    },
  };
}

const errorMax = 300;

function timingOf({ metadata, spec }: MetricsExportObject) {
  return { id: metadata.id, intervalMs: spec.intervalSeconds * 1_000, changedAt: metadata.updatedAt };
}

/** The streams that the integration requests and its destination supports. */
function streamsOf(spec: MetricsExportObject["spec"], destination: Destination): readonly Stream[] {
  const metrics = carriesMetrics(spec) && destination.metrics !== undefined;
  const logs = carriesLogs(spec) && destination.logs !== undefined;
  return [...(metrics ? (["metrics"] as const) : []), ...(logs ? (["logs"] as const) : [])];
}

/** True if the tick changed the run state; a tick that sent nothing and found no error writes nothing. */
function isChanged(
  state: RunState,
  end: { error: string | null; behindSinceMs: number | null; hasSent: boolean },
): boolean {
  return (
    end.hasSent || end.error !== state.lastError || end.error !== null || end.behindSinceMs !== state.behindSinceMs
  );
}
