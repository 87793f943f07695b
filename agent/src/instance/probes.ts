import { setTimeout as sleep } from "node:timers/promises";
import type { DrivenInstance, EngineDriver, RoomOnDisk } from "../engines/engine-driver.ts";
import { roleOf } from "../engines/members.ts";
import type { Quiet } from "../right/quiet.ts";
import { checkCollations } from "./collation-check.ts";
import type { DiskRoom } from "./disk-room.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { listenerCheck, missingListeners } from "./listener-check.ts";
import type { MemoryWatch } from "./memory-watch.ts";
import type { ServerCertificate } from "./server-certificate.ts";
import { storageCheck } from "./storage-check.ts";
import { verdictOf } from "./verdict.ts";

export interface ProbesDeps {
  readonly status: InstanceStatus;
  /** What runs and takes connections, as far as is known; undefined when nothing does. */
  readonly target: () => DrivenInstance | undefined;
  readonly certificate: ServerCertificate;
  readonly memory: MemoryWatch;
  /** The engine does not listen somewhere, and could by now. */
  readonly onListenerFree: () => void;
  readonly room: Pick<DiskRoom, "look" | "blocked" | "level">;
  /** CPU time in milliseconds of the engine's first thread; undefined where nothing says it. */
  readonly engineCpuMs: () => Promise<number | undefined>;
  /** Something else is kept from clients than before. */
  readonly onBlockChanged: () => void;
  readonly monotonicMs: () => number;
  readonly quiet: Pick<Quiet, "note">;
}

/**
 * Looks at the engine, its disk, its memory and its certificate, each in a loop of its own: one that hangs hides none
 * of the others.
 */
export interface Probes {
  run(signal: AbortSignal): Promise<void>;
  /** The next look at the engine is due now. */
  hurry(): void;
  /** Has the engine answered nobody for some seconds, or does it not start? A full disk does not count. */
  isSilent(): boolean;
}

const livenessEveryMs = 5_000;
/** Others wait for a verdict on a member's engine. */
const memberEveryMs = 1_000;
/** Longer than a pause that is nothing, with the look that comes upon it. */
const silentAfterMs = 5_000;
/** From here on a start that fails is the disk's. */
const fullLevel = 95;
const livenessTimeoutMs = 3_000;
const missesUntilUnhealthy = 2;
/** With the look itself, and what it takes to tell, below the 15 s that users are promised. */
const sharedStorageEveryMs = 10_000;
/** One call tells how full it is. */
const ownStorageEveryMs = 1_000;
/** A fast writer has the last twentieth of a small disk within a second. */
const lowStorageEveryMs = 100;
/** The log of a fast writer grows by some hundred megabytes a second. */
const roomEveryMs = 200;
const memoryEveryMs = 5_000;
/** A look that ends before says nothing of what the engine does. */
const leastLookMs = 500;
/** Of a CPU: an idle engine takes a hundredth, and one that others crowd out still more than this. */
const workingShare = 0.05;
const busyWords =
  "The engine works on one command and answers nobody else until it is done: KEYS, SORT, a script or another that goes over much data. It ends by itself, or with a stop of the service.";
const listenersEveryMs = 10_000;
const certificateEveryMs = 5_000;
/** Libraries change with the image only; users may come to depend on one at any time. */
const collationsEveryMs = 300_000;

interface Work {
  readonly cpuMs: number;
  readonly atMs: number;
}

export function createProbes(deps: ProbesDeps): Probes {
  const { status, target, certificate, memory, onListenerFree, room, onBlockChanged } = deps;
  let misses = 0;
  let answeredMs = deps.monotonicMs();
  let wake = new AbortController();
  let storageEveryMs = sharedStorageEveryMs;
  let space: RoomOnDisk | undefined;

  async function lookAtEngine(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine === undefined) {
      misses = 0;
      answeredMs = deps.monotonicMs();
      return;
    }
    const look = status.looks();
    const work = await startedWork(engine.driver);
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(livenessTimeoutMs)]);
      const observation = await inTime(engine.driver.observe(engine.instance, limit), limit);
      if (target() === undefined) return;
      misses = 0;
      if (observation.answered) answeredMs = deps.monotonicMs();
      else if (await isAtWork(work)) return works();
      for (const check of observation.checks) status.checked({ ...check, reason: verdictOf(check.reason).reason });
      if (!observation.checks.some(({ name }) => name === "liveness")) {
        status.checked({ name: "liveness", status: "healthy", reason: "" });
      }
      // What it was found to be as a replica is over.
      if (observation.replication?.role === "primary") status.dropChecks("replication");
      const { replication: told } = observation;
      if (told?.role === "replica" && told.received !== undefined) deps.quiet.note(told.received);
      status.observed(observation, look);
    } catch (error) {
      if (target() === undefined || signal.aborted) return;
      if (await isAtWork(work)) return works();
      misses += 1;
      const { kind, reason } = verdictOf((error as Error).message);
      // A verdict of its own needs no second look; a single miss may be chance.
      if (kind === "other" && misses < missesUntilUnhealthy) return;
      const words = kind === "other" ? `The engine did not take a write: ${reason}` : reason;
      status.checked({ name: "liveness", status: "unhealthy", reason: words });
    }
  }

  /** CPU time of an engine that answers in turn, as its look begins. */
  async function startedWork({ answersInTurn }: EngineDriver): Promise<Work | undefined> {
    const cpuMs = answersInTurn === true ? await deps.engineCpuMs() : undefined;
    return cpuMs === undefined ? undefined : { cpuMs, atMs: deps.monotonicMs() };
  }

  /** Has the engine worked all through a look that it did not answer? One that stands still, or waits for its disk, has not. */
  async function isAtWork(since: Work | undefined): Promise<boolean> {
    if (since === undefined || target() === undefined) return false;
    const cpuMs = await deps.engineCpuMs();
    const passedMs = deps.monotonicMs() - since.atMs;
    return cpuMs !== undefined && passedMs >= leastLookMs && (cpuMs - since.cpuMs) / passedMs >= workingShare;
  }

  function works(): void {
    misses = 0;
    answeredMs = deps.monotonicMs();
    for (const name of ["liveness", "commands"]) status.checked({ name, status: "degraded", reason: busyWords });
  }

  async function lookAtListeners(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine === undefined) return;
    const missing = await missingListeners(engine, signal).catch(() => undefined);
    if (missing === undefined || target() === undefined) return;
    status.checked(listenerCheck(missing));
    if (missing.some(({ why }) => why === "free")) onListenerFree();
  }

  async function lookAtDisk(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine === undefined) return;
    const { spec, paths } = engine.instance;
    try {
      const frees = engine.driver.freesWhenBlocked ?? false;
      const { space: measured, isOther } = await room.look(paths.data, spec, { frees }, signal);
      space = measured;
      // Before the size: a disk that is told to have grown is not as full any more.
      status.fills(room.level, room.blocked.writes);
      status.measured({ ...measured, totalBytes: measured.diskBytes });
      if (isOther) onBlockChanged();
      status.checked(storageCheck(measured, { blocked: room.blocked, role: roleOf(spec), frees }));
      storageEveryMs = !measured.own ? sharedStorageEveryMs : room.level === 0 ? ownStorageEveryMs : lowStorageEveryMs;
    } catch (error) {
      if (signal.aborted) return;
      status.checked({
        name: "storage",
        status: "unhealthy",
        reason: `The disk does not answer: ${(error as Error).message}`,
      });
    }
  }

  async function freeRoom(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine?.driver.freeRoom === undefined || space === undefined) return;
    // One that does not answer is the look's to tell.
    await engine.driver.freeRoom(engine.instance, space, signal).catch(() => undefined);
  }

  /** Every time, so that no end is missed; told while there is an engine. */
  async function lookAtMemory(): Promise<void> {
    const check = await memory.check();
    if (target() !== undefined) status.checked(check);
  }

  async function lookAtCertificate(): Promise<void> {
    if (target() !== undefined) status.checked(certificate.check());
  }

  async function lookAtCollations(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine === undefined) return;
    const look = await checkCollations(engine.driver, engine.instance, signal);
    if (look !== undefined && target() !== undefined) status.ordersTexts(look);
  }

  async function every(
    ms: number | (() => number),
    look: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      await look(signal);
      const hurried = AbortSignal.any([signal, wake.signal]);
      await sleep(typeof ms === "number" ? ms : ms(), undefined, { signal: hurried }).catch(() => undefined);
    }
  }

  const isMember = () => target()?.instance.spec.replication !== undefined;

  return {
    isSilent() {
      if (status.state === "failed") return room.level < fullLevel;
      return target() !== undefined && deps.monotonicMs() - answeredMs > silentAfterMs;
    },
    async run(signal) {
      await Promise.all([
        every(() => (isMember() ? memberEveryMs : livenessEveryMs), lookAtEngine, signal),
        every(listenersEveryMs, lookAtListeners, signal),
        every(() => storageEveryMs, lookAtDisk, signal),
        every(roomEveryMs, freeRoom, signal),
        every(memoryEveryMs, lookAtMemory, signal),
        every(certificateEveryMs, lookAtCertificate, signal),
        every(collationsEveryMs, lookAtCollations, signal),
      ]);
    },
    hurry() {
      wake.abort();
      wake = new AbortController();
    },
  };
}

/** A driver that does not listen to its signal must not hold the probe up. */
function inTime<T>(work: Promise<T>, limit: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    limit.addEventListener("abort", () => reject(new Error("no answer in time")), { once: true });
    work.then(resolve, reject);
  });
}
