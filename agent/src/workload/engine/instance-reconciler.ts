import { mkdir } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { Log } from "@holdfast/common/log.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Archives } from "../../backup/archives.ts";
import type { Restores } from "../../backup/restores.ts";
import { effectiveParameters } from "../../engines/effective-parameters.ts";
import type { DrivenInstance, EngineDriver, EngineFailure, Instance } from "../../engines/engine-driver.ts";
import { EngineRefused } from "../../engines/engine-errors.ts";
import { needsPrimaryLease, roleOf } from "../../engines/members.ts";
import type { PrimaryLeaseHolder } from "../../primary-lease/primary-lease-holder.ts";
import type { ReconcileSignals } from "../workload-supervisor.ts";
import { createAppliedSettings } from "./applied-settings.ts";
import type { DataVersion } from "./data-version.ts";
import type { DiskGuard } from "./disk-guard.ts";
import type { EngineProcess } from "./engine-process.ts";
import { type InstanceFiles, syncConfigFiles } from "./instance-files.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { restartReason, WorkloadEnded } from "../workload-supervisor.ts";
import { listenerMessage, missingListeners } from "./listener-check.ts";
import type { TextLogReader } from "../log-reader.ts";
import { type MemberData, exceedsParameters, untilParametersSuffice, withRequiredParameters } from "./member-data.ts";
import type { MemoryWatch } from "./memory-watch.ts";
import type { PeerData } from "./peer-data.ts";
import type { PeerWatch } from "./peer-watch.ts";
import type { RestartLimit } from "./restart-limit.ts";
import { createReadiness } from "./readiness.ts";
import { createReadyEngine } from "./ready-engine.ts";
import type { ServerCertificate } from "../server-certificate.ts";
import { stopReason } from "./stop-reasons.ts";
import { startFailureMessage, wasKilled } from "./engine-messages.ts";

export interface InstanceReconcilerDeps {
  readonly files: InstanceFiles;
  readonly process: EngineProcess;
  readonly certificate: ServerCertificate;
  readonly status: InstanceStatus;
  readonly logs: TextLogReader;
  readonly memory: MemoryWatch;
  readonly driverOf: (engine: string) => Promise<EngineDriver | undefined>;
  readonly restores: Pick<Restores, "isPending" | "ensure">;
  readonly members: MemberData;
  readonly peerData: Pick<PeerData, "ensure">;
  readonly peers: Pick<PeerWatch, "requireSafeStop">;
  readonly dataVersion: DataVersion;
  readonly archives: Pick<Archives, "follow">;
  /** Limits restarts that only make the engine listen on its addresses. */
  readonly restartLimit: RestartLimit;
  readonly diskGuard: Pick<DiskGuard, "load" | "check" | "blocked" | "level">;
  readonly lease: Pick<PrimaryLeaseHolder, "acquire">;
  /** True if the engine has not responded for some seconds. */
  readonly isUnresponsive: () => boolean;
  readonly log: Log;
}

/**
 * Converges the machine to its instance spec. Each step reads the actual state first, so a reconcile may be repeated at
 * any time, such as by a new agent that adopts a running engine.
 */
export interface InstanceReconciler {
  /** Resolves once the machine matches the spec; rejects with a message for users. */
  converge(spec: InstanceSpec, signals: ReconcileSignals): Promise<void>;
  /** The engine, while it runs and has accepted a write since its start or its adoption. */
  engine(): DrivenInstance | undefined;
}

/** More than an engine prints until it is ready. Where the log of an adopted engine's start begins is unknown. */
const startLogBytes = 256 << 10;

/** True if the engine has, or ever had, other members. */
function isMember({ replication, peers }: InstanceSpec): boolean {
  return replication !== undefined || peers !== undefined;
}

export function createInstanceReconciler(deps: InstanceReconcilerDeps): InstanceReconciler {
  const {
    files,
    process,
    certificate,
    status,
    logs,
    memory,
    restartLimit,
    restores,
    members,
    dataVersion,
    archives,
    driverOf,
    lease,
    log,
  } = deps;
  const readiness = createReadiness({ process, status, logs, log });
  const applied = createAppliedSettings({ files, status });
  const ready = createReadyEngine({ process, readiness, dataVersion, status });
  /** Starts in a row that a kill ended, whose cause is not known. */
  let killedStarts = 0;
  /** True if the engine has not loaded the files on disk, such as while a script keeps it busy. */
  let isReloadDue = false;

  async function stopEngine(driver: EngineDriver, instance: Instance, { urgent }: ReconcileSignals): Promise<void> {
    const yieldsPrimary = roleOf(instance.spec) === "none" && !process.isEmpty;
    // The next primary waits for the end of this engine, and an unresponsive engine does not shut down cleanly. The
    // state is "stopping" by now: an engine that never became ready, whose "failed" counts as unresponsive for its
    // lease, is shut down cleanly.
    const force = yieldsPrimary && deps.isUnresponsive();
    ready.clear();
    status.removeChecks();
    const facet = instance.spec.replication === undefined ? undefined : driver.replication;
    if (yieldsPrimary && !force) await facet?.prepareStop(instance, urgent);
    await process.stop(driver, instance, { force });
    // The role is read from the data once no engine runs on them: the settings may name a member the primary that was
    // never promoted.
    const data = facet === undefined ? "absent" : await facet.dataRole(instance);
    if (data === "primary")
      status.setReplication({ role: data, dataRole: data, stoppedAt: await facet?.shutdownPosition(instance, urgent) });
    else if (data === "follower") status.setReplication({ role: "replica", dataRole: "replica" });
    status.setState("stopped");
  }

  function instanceOf(driver: EngineDriver, spec: InstanceSpec): Instance {
    const parameters = applied.parameters(spec);
    const { writes: writesBlocked, clients } = deps.diskGuard.blocked;
    const allowedCidrs = clients ? [] : spec.allowedCidrs;
    const platformAccess = clients ? [] : spec.platformAccess;
    return {
      spec: { ...spec, parameters, allowedCidrs, platformAccess },
      paths: files.pathsOf(driver.software(spec.version)),
      writesBlocked,
    };
  }

  /** Frees the disk reserve for an engine that recovers on a full disk, and blocks clients from using it. */
  async function prepareDisk(driver: EngineDriver, spec: InstanceSpec, signal: AbortSignal): Promise<void> {
    const { data } = files.pathsOf(driver.software(spec.version));
    try {
      const { space } = await deps.diskGuard.check(
        data,
        spec,
        { isStarting: true, acceptsDeletes: driver.acceptsDeletesWhenBlocked ?? false },
        signal,
      );
      // Reported before the start: the controller enlarges only a disk that was reported full, and on such a disk the
      // engine may never start.
      status.setStorageLevel(deps.diskGuard.level, deps.diskGuard.blocked.writes);
      status.setDiskSpace({ ...space, totalBytes: space.diskBytes });
    } catch (error) {
      signal.throwIfAborted();
      log.warn("disk not measured", { service: spec.serviceId, reason: (error as Error).message });
    }
  }

  /** Starts the engine. Parameters that prevent the start are rolled back, and the engine is started without them. */
  async function launch(driver: EngineDriver, spec: InstanceSpec, signals: ReconcileSignals): Promise<void> {
    ready.clear();
    const isNew = applied.isNew && spec.source === undefined;
    // A report may contain only the last of several states of one start, so each state has the reason of the start.
    const cause = status.reason === restartReason("engine") ? status.reason : "";
    status.setState("preparing", cause);
    await prepareDisk(driver, spec, signals.urgent);
    const base = instanceOf(driver, spec);
    const { paths } = base;
    // Issuing the certificate takes longest, so it runs in parallel.
    const certified = certificate.ensure(signals.changed, { forMembers: isMember(spec) });
    certified.catch(() => undefined);
    const fingerprint = await driver.fingerprint(paths.software, signals.urgent);
    if (!fingerprint.present) {
      const { engine, version } = spec;
      throw new Error(`This machine's image has no ${engine} ${version} that runs: ${fingerprint.reason}`);
    }
    await mkdir(paths.config, { recursive: true, mode: 0o750 });
    await restores.ensure(base, signals.urgent);
    if (roleOf(spec) === "replica" || spec.peers !== undefined) {
      // A member authenticates to the others with its certificate.
      await certified;
      await syncConfigFiles(paths.config, driver.render(base));
    }
    await members.ensure(driver, base, { isNew: applied.isNew }, signals.urgent);
    await deps.peerData.ensure(driver, base, signals.urgent);
    await dataVersion.ensure(driver, base, signals.urgent);
    await dataVersion.beforeClients(driver, base, signals.urgent);
    await driver.bootstrap(base, signals.urgent);
    const instance = await withRequiredParameters(driver, base, signals.urgent);
    await syncConfigFiles(paths.config, driver.render(instance));
    await certified;
    // Recorded before the start: if this agent is killed after it, the next one must not restart the running engine.
    await applied.recordStart(spec);
    const mark = await logs.end();
    const memoryMark = await memory.mark();
    signals.urgent.throwIfAborted();
    status.setState("starting", needsPrimaryLease(spec) ? "The engine waits for its primary lease." : cause);
    await process.stop(driver, instance);
    const untilMs = await lease.acquire(spec, signals.changed);
    status.setState("starting", cause);
    await process.start(driver, instance, untilMs);
    isReloadDue = false;
    await process.ensureCompanions(driver, instance);
    log.info("engine started", { service: spec.serviceId, engine: spec.engine, version: spec.version });
    try {
      await ready.awaitReady({ driver, instance }, { isNew, mark }, signals.changed);
    } catch (error) {
      if (!process.isEmpty || signals.urgent.aborted) throw error;
      // Replay reached log of a primary with larger values, so no parameter is at fault.
      const needed = await withRequiredParameters(driver, base, signals.urgent);
      if (exceedsParameters(needed, instance)) return await launch(driver, spec, signals);
      const output = await outputSince(mark);
      const failure: EngineFailure = (await memory.killedSince(memoryMark))
        ? { cause: "memory", message: "", parameter: undefined }
        : driver.explainFailure(output);
      await rollBackParameters(driver, spec, instance, { failure, output }, signals);
      return;
    }
    await admitMembers({ driver, instance }, signals.urgent);
    status.setCertificateGeneration(certificate.authorityGeneration);
    const missing = await readiness.becomeRunning({ driver, instance }, signals.changed);
    await applied.recordRunning(spec, instance.spec.parameters);
    killedStarts = 0;
    await archives.follow({ driver, instance });
    if (missing !== undefined) throw new Error(missing);
  }

  /** Admits other members before the settings are reported as applied: a new member then finds its replication slot. */
  async function admitMembers({ driver, instance }: DrivenInstance, signal: AbortSignal): Promise<void> {
    if (instance.spec.replication !== undefined) await driver.replication?.admit(instance, signal);
  }

  /** Handles an engine that ended before it was ready. */
  async function rollBackParameters(
    driver: EngineDriver,
    spec: InstanceSpec,
    tried: Instance,
    { failure, output }: { readonly failure: EngineFailure; readonly output: string },
    signals: ReconcileSignals,
  ): Promise<void> {
    const isKilled = failure.cause === "unknown" && wasKilled(process.status?.exit, output);
    killedStarts = isKilled ? killedStarts + 1 : 0;
    // One kill is no reason to run with other parameters, which may mean another retention of the data.
    if (killedStarts === 1) return launch(driver, spec, signals);
    const isUnrelated =
      failure.cause === "disk_full" || failure.cause === "port_busy" || failure.cause === "data_damaged";
    const rejected = isUnrelated ? undefined : await applied.reject(spec, tried.spec.parameters, failure);
    if (rejected === undefined) throw new Error(startFailureMessage(failure));
    log.warn("parameters rolled back", { service: spec.serviceId, parameters: rejected, output });
    await launch(driver, spec, signals);
  }

  /** The last lines that the engine printed. */
  async function outputSince(mark: string): Promise<string> {
    const printed = await logs.printedSince(mark);
    const { exit } = process.status ?? {};
    return (
      printed.join("\n") ||
      `It printed nothing and ended with ${exit?.signal ?? exit?.code ?? "an unknown exit status"}.`
    );
  }

  /**
   * Ensures that the engine listens on all its addresses. An engine binds addresses only when it starts, so one that
   * could bind more is restarted, at a limited rate. If that does not help, clients on the other addresses are not
   * interrupted.
   */
  async function ensureListening(driven: DrivenInstance, spec: InstanceSpec, signals: ReconcileSignals): Promise<void> {
    const missing = await missingListeners(driven, signals.changed);
    if (ready.current() === undefined) throw new WorkloadEnded("engine");
    if (missing.some(({ reason }) => reason === "free") && process.companionsRun(driven) && restartLimit.tryAcquire()) {
      log.warn("engine restarted to bind its addresses", { service: spec.serviceId, missing });
      status.setState("stopping", listenerMessage(missing));
      await launch(driven.driver, spec, signals);
      return;
    }
    if (status.state === "running") return;
    const message = await readiness.becomeRunning(driven, signals.changed);
    if (message !== undefined) throw new Error(message);
  }

  /** Updates a running engine: reloads changed files, and restarts nothing. */
  async function refresh(driver: EngineDriver, spec: InstanceSpec, signals: ReconcileSignals): Promise<void> {
    const instance = await withRequiredParameters(driver, instanceOf(driver, spec), signals.urgent);
    const renewed = await certificate.ensure(signals.changed, { forMembers: isMember(spec) });
    await dataVersion.beforeClients(driver, instance, signals.urgent);
    const changed = await syncConfigFiles(instance.paths.config, driver.render(instance));
    const current = ready.current();
    // A replica that becomes the primary is promoted without a restart.
    const isPromotion = current !== undefined && roleOf(spec) !== roleOf(current.instance.spec);
    const adopted = current === undefined || isPromotion;
    if (adopted) {
      status.setState("starting");
      const fields = { service: spec.serviceId, pid: process.status?.pid, term: String(spec.term) };
      log.info(isPromotion ? "engine promoted" : "engine adopted", fields);
      try {
        await lease.acquire(spec, AbortSignal.any([signals.changed, process.lifetime()]));
        const mark = isPromotion ? await logs.end() : await logs.beforeEnd(startLogBytes);
        await ready.awaitReady({ driver, instance }, { isNew: false, mark }, signals.changed);
        await readiness.becomeRunning({ driver, instance }, signals.changed);
      } catch (error) {
        if (!process.isEmpty || signals.urgent.aborted) throw error;
        // The engine ended while it became ready, perhaps because of its settings. Another start here reveals that, and
        // rolls the settings back.
        await launch(driver, spec, signals);
        return;
      }
    }
    ready.set({ driver, instance });
    await process.ensureCompanions(driver, instance);
    await archives.follow({ driver, instance });
    // An agent may have been killed between writing files and reloading them, so an adopted engine is reloaded. Some
    // engines block writes, or set parameters, by commands alone: no file of theirs changes with these.
    const blockChanged = current?.instance.writesBlocked !== instance.writesBlocked;
    const isOutdated = current === undefined || !isDeepStrictEqual(settingsOf(current.instance), settingsOf(instance));
    isReloadDue ||= changed.length > 0 || renewed || adopted || blockChanged || isOutdated;
    if (!isReloadDue) return admitMembers({ driver, instance }, signals.urgent);
    log.info("engine reloaded", { service: spec.serviceId, files: changed, certificate: renewed });
    try {
      await driver.reload(instance, signals.urgent);
    } catch (error) {
      if (!(error instanceof EngineRefused)) throw error;
      const refusal = { message: error.message, parameter: undefined };
      if ((await applied.reject(spec, instance.spec.parameters, refusal)) === undefined) throw error;
      return refresh(driver, spec, signals);
    }
    isReloadDue = false;
    await admitMembers({ driver, instance }, signals.urgent);
    status.setCertificateGeneration(certificate.authorityGeneration);
    await readiness.observe({ driver, instance }, signals.changed);
  }

  /** Throws if this member runs and the cluster would lose its majority without it. */
  async function requireSafeStop({ peers }: InstanceSpec, { changed }: ReconcileSignals): Promise<void> {
    const running = ready.current();
    // An engine that does not respond is no loss for the cluster.
    if (running === undefined || process.isEmpty || deps.isUnresponsive()) return;
    const { driver, instance } = running;
    await deps.peers.requireSafeStop({ driver, instance: { ...instance, spec: { ...instance.spec, peers } } }, changed);
  }

  return {
    async converge(spec, signals) {
      if (applied.isNew) await deps.diskGuard.load();
      await applied.load();
      const driver = await driverOf(spec.engine);
      if (driver === undefined) {
        applied.report(spec);
        throw new Error(`This machine's agent does not support the engine ${spec.engine}. Upgrade the agent.`);
      }
      if (!spec.running || roleOf(spec) === "none") {
        await requireSafeStop(spec, signals);
        if (!process.isEmpty) status.setState("stopping");
        applied.report(spec);
        return stopEngine(driver, instanceOf(driver, spec), signals);
      }
      const { paths } = instanceOf(driver, spec);
      status.setPoolerAvailable((await driver.offersPooler?.({ paths }, signals.urgent)) === true);
      const reason = process.isEmpty
        ? undefined
        : await stopReason(
            { driver, instance: instanceOf(driver, spec) },
            { process, members, restores, dataVersion, applied },
          );
      if (reason !== undefined) {
        await requireSafeStop(spec, signals);
        log.info(reason.logMessage, { service: spec.serviceId, term: String(spec.term) });
        if (reason.kind === "restart") await untilParametersSuffice(driver, instanceOf(driver, spec), signals.changed);
        ready.clear();
        status.setState("stopping", reason.message);
        if (reason.kind === "restart") applied.report(spec);
        await process.stop(driver, instanceOf(driver, spec));
      }
      if (ready.current() === undefined) {
        if (status.state === "running") status.setState("starting", restartReason("engine"));
        applied.report(spec);
      }
      if (process.isEmpty) {
        await launch(driver, spec, signals);
        return;
      }
      const wasReady = ready.current() !== undefined;
      try {
        await refresh(driver, spec, signals);
        const driven = ready.current();
        if (driven !== undefined) await ensureListening(driven, spec, signals);
      } catch (error) {
        // Newer settings ended the work on these, which the engine may lack.
        if (!signals.changed.aborted) applied.report(spec);
        // The end of the engine caused this error of a call to it.
        if (wasReady && status.reason === restartReason("engine")) throw new WorkloadEnded("engine");
        throw error;
      }
      applied.report(spec);
    },
    engine: ready.current,
  };
}

/** Values of all parameters that the engine is to run with. */
const settingsOf = (instance: Instance): Readonly<Record<string, string>> => ({
  ...instance.spec.parameters,
  ...Object.fromEntries(effectiveParameters(instance)),
});
