import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { createMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { Log } from "@holdfast/common/log.ts";
import { agentSlots } from "../../keeper/agent-handover.ts";
import { jobComponents } from "../backup/job-component.ts";
import { isProgram } from "../os/engine-programs.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { TaskFailed } from "../task-failed.ts";
import type { WorkloadStatus } from "./workload-status.ts";

/** The fields of a spec that decide when a workload converges. */
export interface ConvergedSpec {
  readonly generation: bigint;
  readonly restartCount: bigint;
  readonly running: boolean;
}

/** Signals that end a reconcile early. */
export interface ReconcileSignals {
  /** The agent ends, or the workload must stop: everything is aborted. */
  readonly urgent: AbortSignal;
  /** The settings have changed: waits are aborted. */
  readonly changed: AbortSignal;
}

/**
 * Converges the machine to its newest settings, with or without a controller. It stores each spec on disk, then calls
 * the reconciler; it repeats after a failure with back-off, after a crash of a component, and once a minute.
 */
export interface WorkloadSupervisor<S extends ConvergedSpec> {
  /**
   * Writes the settings to disk and resolves once the machine has converged to them. Throws "superseded" for a
   * generation older than the newest one.
   */
  apply(spec: S, signal: AbortSignal): Promise<void>;
  /** Reconciles now, for a change that is not part of the settings. */
  recheck(): void;
  /** Resolves after the first reconcile since the last call of `run`. */
  firstRound(): Promise<void>;
  /** The newest settings, and those on disk. */
  settings(): { readonly desired: S | undefined; readonly saved: S | undefined };
  run(signal: AbortSignal): Promise<void>;
}

export interface WorkloadSupervisorDeps<S extends ConvergedSpec> {
  readonly files: { loadSpec(): Promise<S | undefined>; saveSpec(spec: S): Promise<void> };
  /** Id of the spec's owner. */
  readonly ownerOf: (spec: S) => string;
  /** Noun of the workload in messages, such as `engine`. */
  readonly noun: string;
  readonly keeper: Pick<KeeperClient, "subscribe">;
  readonly reconciler: {
    /** Resolves once the machine matches the spec; rejects with a message for users, or with `WorkloadEnded`. */
    converge(spec: S, signals: ReconcileSignals): Promise<void>;
    /** True while the workload runs and is ready. */
    isReady(): boolean;
  };
  /** Time of the next change that is due without new settings, in milliseconds since 1970. */
  readonly dueAt: () => number | undefined;
  readonly status: Pick<WorkloadStatus, "state" | "setState" | "specSaved" | "setCheck" | "removeChecks">;
  /** Observes the workload now, since it may have changed. */
  readonly probeNow: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

const firstRetryMs = 1_000;
const maxRetryMs = 30_000;
/** A run of this length resets the back-off. */
const stableRunMs = 60_000;
/** Longest time between reconciles. */
const idleMs = 60_000;

interface Waiter<S> {
  readonly spec: S;
  resolve(): void;
  reject(error: Error): void;
}

export function createWorkloadSupervisor<S extends ConvergedSpec>(
  deps: WorkloadSupervisorDeps<S>,
): WorkloadSupervisor<S> {
  const { files, ownerOf, noun, keeper, reconciler, dueAt, status, probeNow, clock, log } = deps;
  let desired: S | undefined;
  let saved: S | undefined;
  let loaded: Promise<void> | undefined;
  const saving = createMutex();
  let changed = new AbortController();
  let urgent = new AbortController();
  let woken = new AbortController();
  let failures = 0;
  let waiters: Waiter<S>[] = [];
  let firstRound = Promise.withResolvers<void>();

  function load(): Promise<void> {
    loaded ??= files.loadSpec().then((spec) => {
      desired = spec;
      saved = spec;
      if (spec !== undefined) status.specSaved(spec.generation);
    });
    return loaded;
  }

  function settle(spec: S, error?: Error): void {
    const done = waiters.filter((waiter) => waiter.spec === spec);
    waiters = waiters.filter((waiter) => waiter.spec !== spec);
    for (const waiter of done) {
      if (error === undefined) waiter.resolve();
      else waiter.reject(error);
    }
  }

  async function setDesired(spec: S, signal: AbortSignal): Promise<void> {
    const superseded = waiters;
    waiters = [];
    for (const waiter of superseded) waiter.reject(new TaskFailed("superseded", "Newer settings arrived."));
    desired = spec;
    failures = 0;
    const done = new Promise<void>((resolve, reject) => {
      waiters.push({ spec, resolve, reject });
    });
    done.catch(() => undefined);
    await saving(() => files.saveSpec(spec));
    saved = spec;
    status.specSaved(spec.generation);
    changed.abort();
    if (!spec.running) urgent.abort();
    woken.abort();
    signal.addEventListener("abort", () => settle(spec, signal.reason as Error), { once: true });
    await done;
  }

  async function runRound(spec: S, signal: AbortSignal): Promise<number> {
    changed = new AbortController();
    urgent = new AbortController();
    const signals = {
      changed: AbortSignal.any([signal, changed.signal]),
      urgent: AbortSignal.any([signal, urgent.signal]),
    };
    const startedAt = clock.monotonicMs();
    try {
      await reconciler.converge(spec, signals);
      settle(spec);
      probeNow();
      return untilDue();
    } catch (error) {
      if (signals.changed.aborted) return 0;
      const reason = error instanceof Error ? error.message : String(error);
      log.warn("workload not converged", { owner: ownerOf(spec), generation: String(spec.generation), reason });
      // A running workload keeps running; only the change failed.
      if (reconciler.isReady()) status.setCheck({ name: "configuration", status: "degraded", reason });
      // The end of a running workload is reported already; the next round starts it.
      else if (!(error instanceof WorkloadEnded)) status.setState("failed", reason);
      settle(spec, new TaskFailed("failed", reason, { retryable: true }));
      return retryAfter(clock.monotonicMs() - startedAt);
    }
  }

  /** Reports that a running workload ended, whether or not a round runs. */
  function reportEnd(): void {
    if (status.state !== "running" || reconciler.isReady()) return;
    status.removeChecks("liveness");
    status.setState("starting", restartReason(noun));
  }

  function untilDue(): number {
    status.removeChecks("configuration");
    const at = dueAt();
    return at === undefined ? idleMs : Math.min(idleMs, Math.max(200, at - clock.now()));
  }

  function retryAfter(ranMs: number): number {
    failures = ranMs >= stableRunMs ? 1 : failures + 1;
    return Math.min(firstRetryMs * 2 ** (failures - 1), maxRetryMs);
  }

  return {
    async apply(spec, signal) {
      await load();
      if (desired !== undefined && ownerOf(spec) !== ownerOf(desired)) {
        throw new TaskFailed("invalid_task", "This machine has the data of another owner.");
      }
      if (desired !== undefined && spec.generation < desired.generation) {
        throw new TaskFailed(
          "superseded",
          `Generation ${spec.generation} is older than generation ${desired.generation}.`,
        );
      }
      // A restart requested by newer settings is not lost if older ones arrive with a lower count.
      const restartCount =
        desired !== undefined && desired.restartCount > spec.restartCount ? desired.restartCount : spec.restartCount;
      await setDesired({ ...spec, restartCount }, signal);
    },
    recheck: () => woken.abort(),
    firstRound: () => firstRound.promise,
    settings: () => ({ desired, saved }),
    async run(signal) {
      firstRound = Promise.withResolvers();
      await load();
      const crashes = createCrashes(clock.monotonicMs);
      const subscription = keeper.subscribe((component) => {
        if (isAgent(component.name) || isProgram(component.name) || jobComponents.has(component.name)) return;
        if (component.state !== "empty" || component.cause === "requested") return;
        crashes.note(clock.now() - component.startedAt);
        log.warn("component ended", { component: component.name, exit: component.exit, cause: component.cause });
        reportEnd();
        woken.abort();
      });
      while (!signal.aborted) {
        woken = new AbortController();
        const spec = desired;
        // Only settings on disk are reported, since those are the ones found after a restart of the machine: wait until
        // the newest ones are on disk or could not be written.
        await saving(async () => undefined);
        if (desired !== spec) continue;
        const waitMs = spec === undefined ? idleMs : await runRound(spec, signal);
        firstRound.resolve();
        if (desired !== spec || waitMs === 0) continue;
        if (status.state === "failed") {
          // The failed start was reported already, and the next attempt has its own delay.
          crashes.takeNew();
          woken = new AbortController();
        }
        await sleep(waitMs, undefined, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => undefined);
        if (!crashes.takeNew() || desired !== spec) continue;
        // A round that noticed the end late may have set the state "running" after it.
        reportEnd();
        const cut = AbortSignal.any([signal, changed.signal]);
        await sleep(crashes.delayMs(), undefined, { signal: cut }).catch(() => undefined);
      }
      subscription.close();
    },
  };
}

/** Thrown by a reconcile if the workload ended during it. */
export class WorkloadEnded extends Error {
  constructor(noun: string) {
    super(restartReason(noun));
  }
}

/** Reason of a workload that starts because it ended. */
export function restartReason(noun: string): string {
  return `The ${noun} ended and is started again.`;
}

function isAgent(name: string): boolean {
  return agentSlots.some((slot) => slot === name);
}

/** Back-off between restarts after crashes: the first restart is immediate, later ones are delayed more and more. */
function createCrashes(monotonicMs: () => number) {
  let count = 0;
  let lastAt = Number.NEGATIVE_INFINITY;
  let hasNew = false;
  return {
    /** Returns true once for each recorded crash. */
    takeNew(): boolean {
      const was = hasNew;
      hasNew = false;
      return was;
    },
    note(ranMs: number): void {
      hasNew = true;
      count = ranMs >= stableRunMs || monotonicMs() - lastAt > stableRunMs ? 1 : count + 1;
      lastAt = monotonicMs();
    },
    delayMs: () => (count <= 1 ? 0 : Math.min(firstRetryMs * 2 ** (count - 2), maxRetryMs)),
  };
}
