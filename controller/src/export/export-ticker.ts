import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Ownership, Right } from "#kernel/runtime/ownership.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { openConfiguration } from "./configuration/secrets.ts";
import type { Destination } from "./destinations/destination.ts";
import { destinationOf } from "./destinations/destinations.ts";
import { exportEvent } from "./export-events.ts";
import { firstDueAt, followUp, nextDueAt, standingOf } from "./export-plan.ts";
import { newRunState, Overtaken, type RunState, type RunStates, type Stream } from "./export-run-state.ts";
import {
  cursorKey,
  type ExportRun,
  type ExportShipper,
  type ExportTick,
  fullBatch,
  type StreamEnd,
} from "./export-shipper.ts";
import { createExportSlots, type Standing } from "./export-slots.ts";
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
  /** Resolves when everything that targets are read from is in memory. */
  readonly ready: Promise<unknown>;
  /** How often due integrations are looked for; a quarter of a second unless given. */
  readonly lookMs?: number;
  /** A tick ends after so long; five minutes unless given. */
  readonly tickMaxMs?: number;
}

export interface ExportTicker {
  /** Integrations that this controller works on, and how far each is. */
  readonly working: ReadonlyMap<string, { readonly state: RunState }>;
  /** Resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}

interface Kept {
  /** Revision of the integration that the rest is of. */
  readonly modRevision: bigint;
  dueAt: number;
  isRunning: boolean;
  run: ExportRun | undefined;
  state: RunState;
}

/** What a tick works on, and with how many slots. */
interface Share {
  readonly streams: readonly Stream[];
  readonly atOnce: number;
  readonly standing: Standing;
}

const tickMaxMs = 5 * 60_000;

/** Runs the ticks of the integrations that this controller owns, each when it is due. It begins by itself. */
export function createExportTicker(deps: ExportTickerDeps): ExportTicker {
  const { exports, states, ownership, clock, log, shipper } = deps;
  const stopping = new AbortController();
  const kept = new Map<string, Kept>();
  const slots = createExportSlots();
  const running = new Set<Promise<void>>();

  function look(): void {
    const now = clock.now();
    const due: { readonly stored: Stored<MetricsExportObject>; readonly its: Kept }[] = [];
    for (const stored of exports.values()) {
      const { metadata, spec } = stored.object;
      if (!spec.isEnabled || !ownership.owns(metadata.id)) continue;
      const its = keptOf(stored, now);
      if (!its.isRunning && its.dueAt <= now) due.push({ stored, its });
    }
    // Those that wait longest come first: one that is behind takes its next turn after them.
    for (const { stored, its } of due.toSorted((a, b) => a.its.dueAt - b.its.dueAt)) begin(stored, its);
    for (const [id, its] of kept) {
      const isOver = exports.get(id)?.object.spec.isEnabled !== true || !ownership.owns(id);
      if (isOver && !its.isRunning) kept.delete(id);
    }
  }

  function keptOf(stored: Stored<MetricsExportObject>, now: number): Kept {
    const before = kept.get(stored.object.metadata.id);
    if (before !== undefined && (before.isRunning || before.modRevision === stored.modRevision)) return before;
    const fresh: Kept = {
      modRevision: stored.modRevision,
      dueAt: before === undefined ? firstDueAt(timingOf(stored.object), now) : now,
      isRunning: false,
      run: undefined,
      state: newRunState,
    };
    kept.set(stored.object.metadata.id, fresh);
    return fresh;
  }

  function begin(stored: Stored<MetricsExportObject>, its: Kept): void {
    const { metadata, spec } = stored.object;
    const streams = streamsOf(spec, destinationOf(spec.destinationType));
    const { run } = its;
    // What it may have is known once its state was read, which waits for no destination.
    const standing = run === undefined ? "well" : standingOf(its.state, timingOf(stored.object));
    const wanted = run !== undefined && standing === "well" ? streams.length : 1;
    const taken = slots.take(metadata.organizationId, wanted, standing);
    if (taken === undefined) return;
    const right = ownership.begin(metadata.id);
    if (right === undefined) return taken.release();
    its.isRunning = true;
    const share = { streams, atOnce: taken.count, standing };
    const begun = run === undefined ? takeOver(stored, its, right) : tick(stored, its, run, share, right);
    const work = begun.finally(() => {
      right.end();
      taken.release();
      its.isRunning = false;
      running.delete(work);
    });
    running.add(work);
  }

  /** It stays due: its tick is the next thing that is looked for. */
  async function takeOver({ object }: Stored<MetricsExportObject>, its: Kept, right: Right): Promise<void> {
    const { id } = object.metadata;
    try {
      const { state, cursors } = await states.take(id);
      const byKey = new Map(cursors.map((cursor) => [cursorKey(cursor), cursor] as const));
      its.state = state;
      its.run = { epoch: state.epoch, cursors: byKey, batch: { ...fullBatch } };
    } catch (error) {
      if (!stopping.signal.aborted && !right.signal.aborted) told(id, error);
      its.dueAt = nextDueAt(timingOf(object), its.state, clock.now());
    }
  }

  async function tick(
    stored: Stored<MetricsExportObject>,
    its: Kept,
    run: ExportRun,
    { streams, atOnce, standing }: Share,
    right: Right,
  ): Promise<void> {
    const integration = stored.object;
    const { id, organizationId } = integration.metadata;
    const timing = timingOf(integration);
    let afterMs: number | undefined;
    let isBehind = false;
    try {
      const late = AbortSignal.timeout(deps.tickMaxMs ?? tickMaxMs);
      const signal = AbortSignal.any([right.signal, stopping.signal, late]);
      const destination = destinationOf(integration.spec.destinationType);
      const configuration = openConfiguration(integration, destination, deps.sealer);
      const target = { destination, configuration, organizationId };
      const targets = deps.targetsOf(integration);
      const current = { integration, target, targets, run, standing, signal, late };
      await shipper.pass(current);
      const ends = await shipAll(streams, atOnce, current);
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
      isBehind = end.error === null && end.behindSinceMs !== null;
      if (isNews(its.state, end)) its.state = await states.endTick(id, run.epoch, end);
      await follow(stored, its.state, run, right);
    } catch (error) {
      its.run = undefined;
      // The next owner, or the next tick, goes on from the cursors.
      if (!stopping.signal.aborted && !right.signal.aborted && !(error instanceof Overtaken)) told(id, error);
    }
    const now = clock.now();
    its.dueAt = isBehind ? now : nextDueAt(timing, its.state, now, afterMs);
  }

  /** One after another where there is a slot for one alone. */
  async function shipAll(streams: readonly Stream[], atOnce: number, tick: ExportTick): Promise<readonly StreamEnd[]> {
    if (atOnce >= streams.length) return Promise.all(streams.map((stream) => shipper.ship(stream, tick)));
    const ends: StreamEnd[] = [];
    for (const stream of streams) ends.push(await shipper.ship(stream, tick));
    return ends;
  }

  /** What an owner has to be told, or done. The announcement comes first: twice is better than never. */
  async function follow(stored: Stored<MetricsExportObject>, state: RunState, run: ExportRun, right: Right) {
    const next = followUp(state, clock.now());
    if (next === "nothing") return;
    const integration = stored.object;
    const { id } = integration.metadata;
    const unit = deps.begin();
    if (right.claim !== undefined) unit.onlyWhile(right.claim);
    if (next === "disable") {
      const { metadata, spec } = integration;
      const reason = `It failed for seven days: ${state.lastError ?? ""}`;
      unit.update(metricsExportKind, stored, {
        ...integration,
        metadata: nextMetadata(metadata, clock.now()),
        spec: { ...spec, isEnabled: false, disabledReason: reason },
      });
      unit.event(exportEvent("export.disabled", integration, state));
    } else if (next === "tellFailing") unit.event(exportEvent("export.failing", integration, state));
    else unit.event(exportEvent("export.recovered", integration));
    await unit.commit(right.signal);
    if (next !== "disable") await states.tell(id, run.epoch, next === "tellFailing");
  }

  function told(id: string, error: unknown): void {
    // The history is away: nothing is sent, and nothing lost. Another writer was first: the next tick sees its change.
    if (error instanceof Conflict || (error instanceof HoldfastError && error.key === "STORE_UNAVAILABLE"))
      log.debug("export waits", { export: id, error: String(error) });
    else log.error("export tick failed", { export: id, error });
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      look();
      await delay(deps.lookMs ?? 250, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }
  const looping = deps.ready.then(loop);

  return {
    working: kept,
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

/** What the integration asks for and its destination takes. */
function streamsOf(spec: MetricsExportObject["spec"], destination: Destination): readonly Stream[] {
  const metrics = carriesMetrics(spec) && destination.metrics !== undefined;
  const logs = carriesLogs(spec) && destination.logs !== undefined;
  return [...(metrics ? (["metrics"] as const) : []), ...(logs ? (["logs"] as const) : [])];
}

/** A tick that sent nothing and found nothing amiss leaves everything as it was. */
function isNews(
  state: RunState,
  end: { error: string | null; behindSinceMs: number | null; hasSent: boolean },
): boolean {
  return (
    end.hasSent || end.error !== state.lastError || end.error !== null || end.behindSinceMs !== state.behindSinceMs
  );
}
