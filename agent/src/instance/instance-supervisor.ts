import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { agentSlots } from "../../keeper/succession.ts";
import { jobComponents } from "../backup/job-component.ts";
import { programComponent } from "../os/engine-programs.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { TaskFailed } from "../task-failed.ts";
import type { InstanceFiles } from "./instance-files.ts";
import type { InstanceRound } from "./instance-round.ts";
import type { InstanceStatus } from "./instance-status.ts";
import type { ServerCertificate } from "./server-certificate.ts";

/** Holds the machine to the newest settings, with or without a controller. */
export interface InstanceSupervisor {
  /** Keeps the settings on disk and resolves when the machine is as they say. An older generation is "superseded". */
  hold(spec: InstanceSpec, signal: AbortSignal): Promise<Held>;
  /** Resolves when the engine runs since a restart with this count or a higher one. */
  restart(restartCount: bigint, signal: AbortSignal): Promise<void>;
  /** Something that the settings do not tell may have changed: looks now whether anything is to be done. */
  look(): void;
  /** Resolves when it has been looked once, since run was called last, whether the machine is as wanted. */
  looked(): Promise<void>;
  /** The newest settings, and those on the disk. */
  settings(): { readonly wanted: InstanceSpec | undefined; readonly saved: InstanceSpec | undefined };
  run(signal: AbortSignal): Promise<void>;
}

export interface Held {
  readonly pendingRestart: readonly string[];
  readonly rejected: Readonly<Record<string, string>>;
}

export interface SupervisorDeps {
  readonly files: InstanceFiles;
  readonly keeper: KeeperClient;
  readonly round: InstanceRound;
  readonly certificate: ServerCertificate;
  readonly status: InstanceStatus;
  /** Something may have changed: looks at the engine now. */
  readonly hurryProbes: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

const firstRetryMs = 1_000;
const longestRetryMs = 30_000;
/** An engine that was up this long did not fail at once. */
const goodRunMs = 60_000;
/** The certificate is looked at this often even when nothing else happens. */
const idleMs = 60_000;

interface Waiter {
  readonly spec: InstanceSpec;
  resolve(): void;
  reject(error: Error): void;
}

export function createInstanceSupervisor(deps: SupervisorDeps): InstanceSupervisor {
  const { files, keeper, round, certificate, status, hurryProbes, clock, log } = deps;
  let wanted: InstanceSpec | undefined;
  let kept: InstanceSpec | undefined;
  let loaded: Promise<void> | undefined;
  /** Ends when the newest settings are on the disk, or cannot be. */
  let saved: Promise<unknown> = Promise.resolve();
  let changed = new AbortController();
  let urgent = new AbortController();
  let poked = new AbortController();
  let failures = 0;
  let waiters: Waiter[] = [];
  let looked = Promise.withResolvers<void>();

  function load(): Promise<void> {
    loaded ??= files.loadSpec().then((spec) => {
      wanted = spec;
      kept = spec;
      if (spec !== undefined) status.kept(spec.generation);
    });
    return loaded;
  }

  function settle(spec: InstanceSpec, error?: Error): void {
    const done = waiters.filter((waiter) => waiter.spec === spec);
    waiters = waiters.filter((waiter) => waiter.spec !== spec);
    for (const waiter of done) {
      if (error === undefined) waiter.resolve();
      else waiter.reject(error);
    }
  }

  async function want(spec: InstanceSpec, signal: AbortSignal): Promise<void> {
    const overtaken = waiters;
    waiters = [];
    for (const waiter of overtaken) waiter.reject(new TaskFailed("superseded", "newer settings came"));
    wanted = spec;
    failures = 0;
    const done = new Promise<void>((resolve, reject) => {
      waiters.push({ spec, resolve, reject });
    });
    done.catch(() => undefined);
    const saving = saved.then(() => files.saveSpec(spec));
    saved = saving.catch(() => undefined);
    await saving;
    kept = spec;
    status.kept(spec.generation);
    changed.abort();
    if (!spec.running) urgent.abort();
    poked.abort();
    signal.addEventListener("abort", () => settle(spec, signal.reason as Error), { once: true });
    await done;
  }

  function held(): Held {
    const message = status.message();
    return { pendingRestart: status.pendingRestart, rejected: message?.rejectedParameters ?? {} };
  }

  async function once(spec: InstanceSpec, signal: AbortSignal): Promise<number> {
    changed = new AbortController();
    urgent = new AbortController();
    const signals = {
      changed: AbortSignal.any([signal, changed.signal]),
      urgent: AbortSignal.any([signal, urgent.signal]),
    };
    const startedAt = clock.monotonicMs();
    try {
      await round.converge(spec, signals);
      settle(spec);
      hurryProbes();
      return untilRenewal();
    } catch (error) {
      if (signals.changed.aborted) return 0;
      const reason = error instanceof Error ? error.message : String(error);
      log.warn("instance not as wanted", { service: spec.serviceId, generation: String(spec.generation), reason });
      // An engine that runs goes on running; only what was asked for could not be done.
      if (round.engine() !== undefined) status.checked({ name: "configuration", status: "degraded", reason });
      else status.become("failed", reason);
      settle(spec, new TaskFailed("failed", reason, { retryable: true }));
      return retryAfter(clock.monotonicMs() - startedAt);
    }
  }

  function untilRenewal(): number {
    status.dropChecks("configuration");
    const at = certificate.renewalAt;
    return at === undefined ? idleMs : Math.min(idleMs, Math.max(200, at - clock.now()));
  }

  function retryAfter(ranMs: number): number {
    failures = ranMs >= goodRunMs ? 1 : failures + 1;
    return Math.min(firstRetryMs * 2 ** (failures - 1), longestRetryMs);
  }

  return {
    async hold(spec, signal) {
      await load();
      if (wanted !== undefined && spec.serviceId !== wanted.serviceId) {
        throw new TaskFailed("invalid_task", "this machine holds the data of another service");
      }
      if (wanted !== undefined && spec.generation < wanted.generation) {
        throw new TaskFailed("superseded", `generation ${spec.generation} is older than ${wanted.generation}`);
      }
      // A restart that was asked for in the meantime is not forgotten by settings that were made before it.
      const restartCount =
        wanted !== undefined && wanted.restartCount > spec.restartCount ? wanted.restartCount : spec.restartCount;
      await want({ ...spec, restartCount }, signal);
      return held();
    },
    async restart(restartCount, signal) {
      await load();
      if (wanted === undefined)
        throw new TaskFailed("not_ready", "nothing was asked for on this machine yet", { retryable: true });
      const higher = restartCount > wanted.restartCount ? restartCount : wanted.restartCount;
      await want({ ...wanted, restartCount: higher }, signal);
    },
    look: () => poked.abort(),
    looked: () => looked.promise,
    settings: () => ({ wanted, saved: kept }),
    async run(signal) {
      looked = Promise.withResolvers();
      await load();
      const crashes = createCrashes(clock.monotonicMs);
      const subscription = keeper.subscribe((component) => {
        if (isAgent(component.name) || component.name === programComponent || jobComponents.has(component.name)) return;
        if (component.state !== "empty" || component.cause === "requested") return;
        crashes.note(clock.now() - component.startedAt);
        log.warn("component ended", { component: component.name, exit: component.exit, cause: component.cause });
        poked.abort();
      });
      while (!signal.aborted) {
        poked = new AbortController();
        const spec = wanted;
        // What is told of an engine is told of settings that a restart of the machine finds again.
        await saved;
        if (wanted !== spec) continue;
        const waitMs = spec === undefined ? idleMs : await once(spec, signal);
        looked.resolve();
        if (wanted !== spec || waitMs === 0) continue;
        if (status.state === "failed") {
          // The end of an engine that would not start is told already; its next attempt has its own delay.
          crashes.unanswered();
          poked = new AbortController();
        }
        await sleep(waitMs, undefined, { signal: AbortSignal.any([signal, poked.signal]) }).catch(() => undefined);
        if (!crashes.unanswered() || wanted !== spec) continue;
        if (status.state === "running" && round.engine() === undefined) {
          status.dropChecks("liveness");
          status.become("starting", "The engine ended and is started again.");
        }
        const napped = AbortSignal.any([signal, changed.signal]);
        await sleep(crashes.delayMs(), undefined, { signal: napped }).catch(() => undefined);
      }
      subscription.close();
    },
  };
}

function isAgent(name: string): boolean {
  return agentSlots.some((slot) => slot === name);
}

/** The first crash is answered at once, those that follow it closely more and more slowly. */
function createCrashes(monotonicMs: () => number) {
  let count = 0;
  let lastAt = Number.NEGATIVE_INFINITY;
  let open = false;
  return {
    /** Was there a crash since this was asked last? */
    unanswered(): boolean {
      const was = open;
      open = false;
      return was;
    },
    note(ranMs: number): void {
      open = true;
      count = ranMs >= goodRunMs || monotonicMs() - lastAt > goodRunMs ? 1 : count + 1;
      lastAt = monotonicMs();
    },
    delayMs: () => (count <= 1 ? 0 : Math.min(firstRetryMs * 2 ** (count - 2), longestRetryMs)),
  };
}
