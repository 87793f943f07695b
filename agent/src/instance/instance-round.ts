import { mkdir } from "node:fs/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Archives } from "../backup/archives.ts";
import type { Restores } from "../backup/restores.ts";
import type { DrivenInstance, EngineDriver, EngineFailure, Instance } from "../engines/engine-driver.ts";
import { EngineRefused } from "../engines/engine-errors.ts";
import { needsRight, roleOf } from "../engines/members.ts";
import type { RightKeeper } from "../right/right-keeper.ts";
import { createAppliedSettings } from "./applied-settings.ts";
import { syncConfigFiles } from "./config-files.ts";
import type { DataVersion } from "./data-version.ts";
import type { DiskRoom } from "./disk-room.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { InstanceFiles } from "./instance-files.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { listenerWords, missingListeners } from "./listener-check.ts";
import type { LogReader } from "./log-reader.ts";
import type { MemberData } from "./member-data.ts";
import type { MemoryWatch } from "./memory-watch.ts";
import type { NewStarts } from "./new-starts.ts";
import { createReadiness } from "./readiness.ts";
import { createReadyEngine } from "./ready-engine.ts";
import { needsMore, untilNoneNeeded, withNeeds } from "./replica-needs.ts";
import type { ServerCertificate } from "./server-certificate.ts";
import { whyStop } from "./stop-reasons.ts";
import { failureWords } from "./verdict.ts";

/** What may end a round before its time. */
export interface RoundSignals {
  /** The agent ends, or the engine is not wanted any more: whatever goes on is given up. */
  readonly urgent: AbortSignal;
  /** Anything else is wanted: what only waits is given up. */
  readonly changed: AbortSignal;
}

export interface RoundDeps {
  readonly files: InstanceFiles;
  readonly process: EngineProcess;
  readonly certificate: ServerCertificate;
  readonly status: InstanceStatus;
  readonly logs: LogReader;
  readonly memory: MemoryWatch;
  readonly driverOf: (engine: string) => Promise<EngineDriver | undefined>;
  readonly restores: Pick<Restores, "isPending" | "ensure">;
  readonly members: MemberData;
  readonly dataVersion: DataVersion;
  readonly archives: Pick<Archives, "hold">;
  /** Starts that are for the engine to listen where it does not. */
  readonly newStarts: NewStarts;
  readonly room: Pick<DiskRoom, "load" | "look" | "blocked" | "level">;
  readonly right: Pick<RightKeeper, "held">;
  /** Has the engine answered nobody for some seconds? */
  readonly isSilent: () => boolean;
  readonly log: Log;
}

/** Brings the machine to what is wanted, one step at a time; each step finds out for itself what is left to do. */
export interface InstanceRound {
  /** Resolves when the machine is as wanted; rejects with words for users. */
  converge(spec: InstanceSpec, signals: RoundSignals): Promise<void>;
  /** The engine, while it runs and took a write since its start or its adoption. */
  engine(): DrivenInstance | undefined;
}

export function createInstanceRound(deps: RoundDeps): InstanceRound {
  const {
    files,
    process,
    certificate,
    status,
    logs,
    memory,
    newStarts,
    restores,
    members,
    dataVersion,
    archives,
    driverOf,
    right,
    log,
  } = deps;
  const readiness = createReadiness({ process, status, log });
  const applied = createAppliedSettings({ files, status });
  const ready = createReadyEngine({ process, readiness, dataVersion, status });
  /** The engine lacks files that are on the disk: it could not read them, as while a script keeps it busy. */
  let isReloadDue = false;

  async function halt(driver: EngineDriver, instance: Instance, { urgent }: RoundSignals): Promise<void> {
    const givesWay = roleOf(instance.spec) === "none" && !process.isEmpty;
    // The member that takes its place waits for its end, and an engine that answers nobody does not end in order. The
    // state is "stopping" by now: an engine that never became ready, whose "failed" counts as silence for its right, is
    // stopped in order.
    const atOnce = givesWay && deps.isSilent();
    ready.drop();
    status.dropChecks();
    const facet = instance.spec.replication === undefined ? undefined : driver.replication;
    if (givesWay && !atOnce) await facet?.prepareStop(instance, urgent);
    await process.stop(driver, instance, { atOnce });
    // By the data, once nothing runs on them: whoever was named the primary may have become it, or not.
    const data = facet === undefined ? "absent" : await facet.dataOf(instance);
    if (data === "primary")
      status.follows({ role: data, dataRole: data, stoppedAt: await facet?.stoppedAt(instance, urgent) });
    else if (data === "follower") status.follows({ role: "replica", dataRole: "replica" });
    status.become("stopped");
  }

  function instanceOf(driver: EngineDriver, spec: InstanceSpec): Instance {
    const parameters = applied.parameters(spec);
    const { writes: writesBlocked, clients } = deps.room.blocked;
    const allowedCidrs = clients ? [] : spec.allowedCidrs;
    const platformAccess = clients ? [] : spec.platformAccess;
    return {
      spec: { ...spec, parameters, allowedCidrs, platformAccess },
      paths: files.pathsOf(driver.software(spec.version)),
      writesBlocked,
    };
  }

  /** An engine that ended on a full disk finds room to recover, and nobody takes that from it meanwhile. */
  async function makeRoom(driver: EngineDriver, spec: InstanceSpec, signal: AbortSignal): Promise<void> {
    const { data } = files.pathsOf(driver.software(spec.version));
    try {
      const { space } = await deps.room.look(
        data,
        spec,
        { starts: true, frees: driver.freesWhenBlocked ?? false },
        signal,
      );
      // Before the start: the disk can be enlarged only if it is known to be full, also when no engine starts on it.
      status.fills(deps.room.level, deps.room.blocked.writes);
      status.measured({ ...space, totalBytes: space.diskBytes });
    } catch (error) {
      signal.throwIfAborted();
      log.warn("disk not measured", { service: spec.serviceId, reason: (error as Error).message });
    }
  }

  /** Starts the engine; parameters that it does not start with are rolled back, and it is tried again without them. */
  async function launch(driver: EngineDriver, spec: InstanceSpec, signals: RoundSignals): Promise<void> {
    ready.drop();
    const isNew = applied.isNew && spec.source === undefined;
    status.become("preparing", status.state === "failed" ? "" : undefined);
    await makeRoom(driver, spec, signals.urgent);
    const bare = instanceOf(driver, spec);
    const { paths } = bare;
    // The way to the authority and back takes longest: all else is done meanwhile.
    const certified = certificate.ensure(signals.changed, { forMembers: spec.replication !== undefined });
    certified.catch(() => undefined);
    const fingerprint = await driver.fingerprint(paths.software, signals.urgent);
    if (!fingerprint.present) {
      const { engine, version } = spec;
      throw new Error(`This machine's image has no ${engine} ${version} that runs: ${fingerprint.reason}`);
    }
    await mkdir(paths.config, { recursive: true, mode: 0o750 });
    await restores.ensure(bare, signals.urgent);
    if (roleOf(spec) === "replica") {
      // It shows its certificate to the primary whose data it gets.
      await certified;
      await syncConfigFiles(paths.config, driver.render(bare));
    }
    await members.ensure(driver, bare, { isNew: applied.isNew }, signals.urgent);
    await dataVersion.ensure(driver, bare, signals.urgent);
    await dataVersion.beforeClients(driver, bare, signals.urgent);
    await driver.bootstrap(bare, signals.urgent);
    const instance = await withNeeds(driver, bare, signals.urgent);
    await syncConfigFiles(paths.config, driver.render(instance));
    await certified;
    // Before the start: an agent that is killed in between must not restart what it finds running.
    await applied.starts(spec);
    const mark = await logs.end();
    const memoryMark = await memory.mark();
    signals.urgent.throwIfAborted();
    status.become("starting", needsRight(spec) ? "It waits for the right to be the primary." : "");
    await process.stop(driver, instance);
    const untilMs = await right.held(spec, signals.changed);
    status.become("starting");
    await process.start(driver, instance, untilMs);
    isReloadDue = false;
    await process.accompany(driver, instance);
    log.info("engine started", { service: spec.serviceId, engine: spec.engine, version: spec.version });
    try {
      await ready.become({ driver, instance }, { isNew }, signals.changed);
    } catch (error) {
      if (!process.isEmpty || signals.urgent.aborted) throw error;
      // Replay came to log of a primary with more of them: no parameter is to blame.
      const needed = await withNeeds(driver, bare, signals.urgent);
      if (needsMore(needed, instance)) return await launch(driver, spec, signals);
      const words = await wordsSince(mark);
      const failure: EngineFailure = (await memory.endedSince(memoryMark))
        ? { cause: "memory", message: "", parameter: undefined }
        : driver.explainFailure(words);
      await rollBackParameters(driver, spec, instance, { failure, words }, signals);
      return;
    }
    await admitMembers({ driver, instance }, signals.urgent);
    status.showsCertificate(certificate.authorityGeneration);
    const missing = await readiness.becomeRunning({ driver, instance }, signals.changed);
    await applied.runsWith(spec, instance.spec.parameters);
    await archives.hold({ driver, instance });
    if (missing !== undefined) throw new Error(missing);
  }

  /** Before it is told that the settings are taken: a new member finds its slot then. */
  async function admitMembers({ driver, instance }: DrivenInstance, signal: AbortSignal): Promise<void> {
    if (instance.spec.replication !== undefined) await driver.replication?.admit(instance, signal);
  }

  /** The engine ended before it was ready. */
  async function rollBackParameters(
    driver: EngineDriver,
    spec: InstanceSpec,
    tried: Instance,
    { failure, words }: { readonly failure: EngineFailure; readonly words: string },
    signals: RoundSignals,
  ): Promise<void> {
    const elsewhere =
      failure.cause === "disk_full" || failure.cause === "port_busy" || failure.cause === "data_damaged";
    const rejected = elsewhere ? undefined : await applied.reject(spec, tried.spec.parameters, failure);
    if (rejected === undefined) throw new Error(failureWords(failure));
    log.warn("parameters rolled back", { service: spec.serviceId, parameters: rejected, words });
    await launch(driver, spec, signals);
  }

  /** The last that the engine printed. */
  async function wordsSince(mark: string): Promise<string> {
    const printed = await logs.printedSince(mark);
    const { exit } = process.status ?? {};
    return printed.join("\n") || `It said nothing and left with ${exit?.signal ?? exit?.code ?? "an unknown end"}.`;
  }

  /**
   * For an engine that took its settings. It binds its addresses when it starts, and never later: one that could listen
   * at more of them is started again for that, now and then. Where that does not help, whoever is in by the others is
   * left alone.
   */
  async function listen(driven: DrivenInstance, spec: InstanceSpec, signals: RoundSignals): Promise<void> {
    const missing = await missingListeners(driven, signals.changed);
    if (missing.some(({ why }) => why === "free") && process.isAccompanied(driven) && newStarts.begin()) {
      log.warn("engine restarts to listen", { service: spec.serviceId, missing });
      status.become("stopping", listenerWords(missing));
      await launch(driven.driver, spec, signals);
      return;
    }
    if (status.state === "running") return;
    const words = await readiness.becomeRunning(driven, signals.changed);
    if (words !== undefined) throw new Error(words);
  }

  /** For an engine that runs already: files that changed are read again, nothing is restarted. */
  async function refresh(driver: EngineDriver, spec: InstanceSpec, signals: RoundSignals): Promise<void> {
    const instance = await withNeeds(driver, instanceOf(driver, spec), signals.urgent);
    const renewed = await certificate.ensure(signals.changed, { forMembers: spec.replication !== undefined });
    await dataVersion.beforeClients(driver, instance, signals.urgent);
    const changed = await syncConfigFiles(instance.paths.config, driver.render(instance));
    const ours = ready.now();
    // A replica that is named the primary is promoted as it runs.
    const isNamed = ours !== undefined && roleOf(spec) !== roleOf(ours.instance.spec);
    const adopted = ours === undefined || isNamed;
    if (adopted) {
      status.become("starting");
      const fields = { service: spec.serviceId, pid: process.status?.pid, term: String(spec.term) };
      log.info(isNamed ? "engine promoted" : "engine adopted", fields);
      try {
        await right.held(spec, AbortSignal.any([signals.changed, process.lifetime()]));
        await ready.become({ driver, instance }, { isNew: false }, signals.changed);
        await readiness.becomeRunning({ driver, instance }, signals.changed);
      } catch (error) {
        if (!process.isEmpty || signals.urgent.aborted) throw error;
        // It ended on its way up, perhaps for its settings: a start of our own finds out, and rolls them back.
        await launch(driver, spec, signals);
        return;
      }
    }
    ready.hold({ driver, instance });
    await process.accompany(driver, instance);
    await archives.hold({ driver, instance });
    // An agent that was killed between new files and their reload left them to the one that adopts the engine.
    isReloadDue ||= changed.length > 0 || renewed || adopted;
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
    status.showsCertificate(certificate.authorityGeneration);
    await readiness.observe({ driver, instance }, signals.changed);
  }

  return {
    async converge(spec, signals) {
      if (applied.isNew) await deps.room.load();
      await applied.load();
      const driver = await driverOf(spec.engine);
      if (driver === undefined) {
        applied.tell(spec);
        throw new Error(`This machine's agent does not know the engine ${spec.engine}.`);
      }
      if (!spec.running || roleOf(spec) === "none") {
        if (!process.isEmpty) status.become("stopping");
        applied.tell(spec);
        return halt(driver, instanceOf(driver, spec), signals);
      }
      const { paths } = instanceOf(driver, spec);
      status.offersPooler((await driver.offersPooler?.({ paths }, signals.urgent)) === true);
      const reason = process.isEmpty
        ? undefined
        : await whyStop(
            { driver, instance: instanceOf(driver, spec) },
            { process, members, restores, dataVersion, applied },
          );
      if (reason !== undefined) {
        log.info(reason.logged, { service: spec.serviceId, term: String(spec.term) });
        if (reason.kind === "restart") await untilNoneNeeded(driver, instanceOf(driver, spec), signals.changed);
        ready.drop();
        status.become("stopping", reason.words);
        if (reason.kind === "restart") applied.tell(spec);
        await process.stop(driver, instanceOf(driver, spec));
      }
      if (ready.now() === undefined) {
        if (status.state === "running") status.become("starting");
        applied.tell(spec);
      }
      if (process.isEmpty) {
        await launch(driver, spec, signals);
        return;
      }
      try {
        await refresh(driver, spec, signals);
        const driven = ready.now();
        if (driven !== undefined) await listen(driven, spec, signals);
      } finally {
        applied.tell(spec);
      }
    },
    engine: ready.now,
  };
}
