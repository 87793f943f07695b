import { setTimeout as sleep } from "node:timers/promises";
import type { DrivenInstance, EngineDriver, WritableSpace } from "../../engines/engine-driver.ts";
import { roleOf } from "../../engines/members.ts";
import type { ReplicationSilence } from "../../primary-lease/replication-silence.ts";
import { checkCollations } from "./collation-check.ts";
import type { DiskGuard } from "./disk-guard.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { listenerCheck, missingListeners } from "./listener-check.ts";
import type { MemoryWatch } from "./memory-watch.ts";
import type { ServerCertificate } from "../server-certificate.ts";
import { createSilence } from "./silence.ts";
import type { PeerWatch } from "./peer-watch.ts";
import { storageCheck } from "./storage-check.ts";
import { explain } from "./engine-messages.ts";

export interface ProbesDeps {
  readonly status: InstanceStatus;
  /** The running engine that accepts connections; undefined without one. */
  readonly target: () => DrivenInstance | undefined;
  readonly certificate: ServerCertificate;
  readonly memory: MemoryWatch;
  /** Called if the engine could bind an address that it does not listen on. */
  readonly onListenerFree: () => void;
  readonly diskGuard: Pick<DiskGuard, "check" | "blocked" | "level">;
  /** CPU time of the engine's first thread in milliseconds; undefined if the keeper reports none. */
  readonly engineCpuMs: () => Promise<number | undefined>;
  /** Called if the block of writes or clients has changed. */
  readonly onBlockChanged: () => void;
  readonly monotonicMs: () => number;
  readonly replicationSilence: Pick<ReplicationSilence, "record">;
  readonly peers: Pick<PeerWatch, "check">;
}

/**
 * Runs the health checks of the engine, its disk, memory, listeners, collations and certificate, each in a separate
 * loop, so that a check that hangs delays no other.
 */
export interface Probes {
  run(signal: AbortSignal): Promise<void>;
  /** Runs all checks now. */
  probeNow(): void;
  /** True if the engine has not responded for some seconds or does not start. A full disk does not count. */
  isUnresponsive(): boolean;
}

const livenessIntervalMs = 5_000;
/** A failover waits for this check of a member. */
const memberIntervalMs = 1_000;
/** Storage level in percent from which on a failing start is attributed to the disk. */
const fullLevel = 95;
const livenessTimeoutMs = 3_000;
const failureThreshold = 2;
/** Together with the check and the report, below the 15 s that the documentation promises. */
const sharedStorageIntervalMs = 10_000;
/** Interval for a separate disk, which one system call measures. */
const ownStorageIntervalMs = 1_000;
/** A fast writer can fill the last 5% of a small disk within a second. */
const lowStorageIntervalMs = 100;
/** A fast writer produces hundreds of megabytes of log a second. */
const reclaimIntervalMs = 200;
const memoryIntervalMs = 5_000;
/** A shorter check does not show whether the engine is busy. */
const minProbeMs = 500;
/** Share of a CPU. An idle engine takes a hundredth, and a busy one on an overcommitted host still more than this. */
const busyCpuShare = 0.05;
const busyMessage =
  "The engine is busy with one command (such as KEYS, SORT or a script over much data) and responds to no other until " +
  "that ends. It ends by itself, or when the service is stopped.";
const listenersIntervalMs = 10_000;
const certificateIntervalMs = 5_000;
/** Libraries change only with the image, but users may use another one at any time. */
const collationsIntervalMs = 300_000;

interface CpuSample {
  readonly cpuMs: number;
  readonly atMs: number;
}

export function createProbes(deps: ProbesDeps): Probes {
  const { status, target, certificate, memory, onListenerFree, diskGuard, onBlockChanged } = deps;
  let misses = 0;
  const silence = createSilence({
    monotonicMs: deps.monotonicMs,
    longestRoundMs: livenessTimeoutMs + memberIntervalMs,
  });
  let wake = new AbortController();
  let storageIntervalMs = sharedStorageIntervalMs;
  let space: WritableSpace | undefined;

  async function checkEngine(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine === undefined) {
      misses = 0;
      silence.end();
      return;
    }
    const number = status.startObservation();
    const sample = await sampleCpu(engine.driver);
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(livenessTimeoutMs)]);
      const observation = await withinLimit(engine.driver.observe(engine.instance, limit), limit);
      if (target() === undefined) return;
      misses = 0;
      if (observation.responded) silence.end();
      else if (await isBusy(sample)) return reportBusy();
      else silence.continue();
      for (const check of observation.checks) status.setCheck({ ...check, reason: explain(check.reason).reason });
      if (!observation.checks.some(({ name }) => name === "liveness")) {
        status.setCheck({ name: "liveness", status: "healthy", reason: "" });
      }
      // The replica's check does not apply to a primary.
      if (observation.replication?.role === "primary") status.removeChecks("replication");
      const { replication: replica } = observation;
      if (replica?.role === "replica" && replica.received !== undefined)
        deps.replicationSilence.record(replica.received);
      status.setObservation(observation, number);
    } catch (error) {
      if (target() === undefined || signal.aborted) return;
      if (await isBusy(sample)) return reportBusy();
      misses += 1;
      silence.continue();
      const { kind, reason } = explain((error as Error).message);
      // A known cause is reported immediately; a single unexplained failure may be chance.
      if (kind === "other" && misses < failureThreshold) return;
      const message = kind === "other" ? `The engine did not take a write: ${reason}` : reason;
      status.setCheck({ name: "liveness", status: "unhealthy", reason: message });
    }
  }

  /** CPU time of a single-threaded engine at the start of a check. */
  async function sampleCpu({ singleThreaded }: EngineDriver): Promise<CpuSample | undefined> {
    const cpuMs = singleThreaded === true ? await deps.engineCpuMs() : undefined;
    return cpuMs === undefined ? undefined : { cpuMs, atMs: deps.monotonicMs() };
  }

  /**
   * True if the engine was busy during a check to which it did not respond. A stopped engine, or one that waits for its
   * disk, uses no CPU.
   */
  async function isBusy(since: CpuSample | undefined): Promise<boolean> {
    if (since === undefined || target() === undefined) return false;
    const cpuMs = await deps.engineCpuMs();
    const passedMs = deps.monotonicMs() - since.atMs;
    return cpuMs !== undefined && passedMs >= minProbeMs && (cpuMs - since.cpuMs) / passedMs >= busyCpuShare;
  }

  function reportBusy(): void {
    misses = 0;
    silence.end();
    for (const name of ["liveness", "commands"]) status.setCheck({ name, status: "degraded", reason: busyMessage });
  }

  async function checkListeners(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine === undefined) return;
    const missing = await missingListeners(engine, signal).catch(() => undefined);
    if (missing === undefined || target() === undefined) return;
    status.setCheck(listenerCheck(missing));
    if (missing.some(({ reason }) => reason === "free")) onListenerFree();
  }

  async function checkDisk(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine === undefined) return;
    const { spec, paths } = engine.instance;
    try {
      const acceptsDeletes = engine.driver.acceptsDeletesWhenBlocked ?? false;
      const { space: measured, blockChanged } = await diskGuard.check(paths.data, spec, { acceptsDeletes }, signal);
      space = measured;
      // Set before the size: an enlarged disk is no longer as full.
      status.setStorageLevel(diskGuard.level, diskGuard.blocked.writes);
      status.setDiskSpace({ ...measured, totalBytes: measured.diskBytes });
      if (blockChanged) onBlockChanged();
      status.setCheck(storageCheck(measured, { blocked: diskGuard.blocked, role: roleOf(spec), acceptsDeletes }));
      storageIntervalMs = !measured.isSeparate
        ? sharedStorageIntervalMs
        : diskGuard.level === 0
          ? ownStorageIntervalMs
          : lowStorageIntervalMs;
    } catch (error) {
      if (signal.aborted) return;
      status.setCheck({
        name: "storage",
        status: "unhealthy",
        reason: `The disk does not respond: ${(error as Error).message}`,
      });
    }
  }

  async function reclaimSpace(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine?.driver.reclaimSpace === undefined || space === undefined) return;
    // The liveness check reports an engine that does not respond.
    await engine.driver.reclaimSpace(engine.instance, space, signal).catch(() => undefined);
  }

  /** Runs without an engine as well, so that no kill is missed; reported only with one. */
  async function checkMemory(): Promise<void> {
    const check = await memory.check();
    if (target() !== undefined) status.setCheck(check);
  }

  async function checkCertificate(): Promise<void> {
    if (target() !== undefined) status.setCheck(certificate.check());
  }

  async function updateCollations(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine === undefined) return;
    const number = await checkCollations(engine.driver, engine.instance, signal);
    if (number !== undefined && target() !== undefined) status.setCollations(number);
  }

  async function every(
    ms: number | (() => number),
    number: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      await number(signal);
      const woken = AbortSignal.any([signal, wake.signal]);
      await sleep(typeof ms === "number" ? ms : ms(), undefined, { signal: woken }).catch(() => undefined);
    }
  }

  async function checkPeers(signal: AbortSignal): Promise<void> {
    const engine = target();
    if (engine !== undefined) await deps.peers.check(engine, signal).catch(() => undefined);
  }

  const isMember = () => {
    const { replication, peers } = target()?.instance.spec ?? {};
    return replication !== undefined || peers !== undefined;
  };

  return {
    isUnresponsive() {
      if (status.state === "failed") return diskGuard.level < fullLevel;
      return target() !== undefined && silence.isLong();
    },
    async run(signal) {
      await Promise.all([
        every(() => (isMember() ? memberIntervalMs : livenessIntervalMs), checkEngine, signal),
        every(memberIntervalMs, checkPeers, signal),
        every(listenersIntervalMs, checkListeners, signal),
        every(() => storageIntervalMs, checkDisk, signal),
        every(reclaimIntervalMs, reclaimSpace, signal),
        every(memoryIntervalMs, checkMemory, signal),
        every(certificateIntervalMs, checkCertificate, signal),
        every(collationsIntervalMs, updateCollations, signal),
      ]);
    },
    probeNow() {
      wake.abort();
      wake = new AbortController();
    },
  };
}

/** Rejects at the limit even if a driver ignores its signal. */
function withinLimit<T>(work: Promise<T>, limit: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    limit.addEventListener("abort", () => reject(new Error("no response in time")), { once: true });
    work.then(resolve, reject);
  });
}
