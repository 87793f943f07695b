import { mkdir } from "node:fs/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import {
  type DrivenInstance,
  type EngineDriver,
  type EngineFailure,
  EngineRefused,
  type Instance,
} from "../engines/engine-driver.ts";
import { checkCollations } from "./collation-check.ts";
import { syncConfigFiles } from "./config-files.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { Applied, InstanceFiles } from "./instance-files.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { listenerWords, missingListeners } from "./listener-check.ts";
import type { LogReader } from "./log-reader.ts";
import type { MemoryWatch } from "./memory-watch.ts";
import type { NewStarts } from "./new-starts.ts";
import { currentRejections, effectiveParameters, noHistory, rejectChanges } from "./parameter-history.ts";
import type { ServerCertificate } from "./server-certificate.ts";
import { createReadiness } from "./readiness.ts";
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
  /** Starts that are for the engine to listen where it does not. */
  readonly newStarts: NewStarts;
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
  const { files, process, certificate, status, logs, memory, newStarts, driverOf, log } = deps;
  const readiness = createReadiness({ process, status, log });
  let applied: Applied | undefined;
  let ready: { readonly lifetime: AbortSignal; readonly driven: DrivenInstance } | undefined;

  function drivenNow(): DrivenInstance | undefined {
    return ready === undefined || ready.lifetime.aborted ? undefined : ready.driven;
  }

  async function save(next: Applied): Promise<void> {
    applied = next;
    await files.saveApplied(next);
  }

  async function halt(driver: EngineDriver, instance: Instance): Promise<void> {
    ready = undefined;
    status.dropChecks("liveness", "listener", "storage", "memory", "certificate", "configuration", "collation");
    if (!process.isEmpty) status.become("stopping");
    await process.stop(driver, instance);
    status.become("stopped");
  }

  function instanceOf(driver: EngineDriver, spec: InstanceSpec, before: Applied): Instance {
    const parameters = effectiveParameters(spec.parameters, before);
    return { spec: { ...spec, parameters }, paths: files.pathsOf(driver.software(spec.version)) };
  }

  /** Starts the engine; settings that it does not start with are taken back and it is tried again without them. */
  async function launch(
    driver: EngineDriver,
    spec: InstanceSpec,
    before: Applied,
    signals: RoundSignals,
  ): Promise<void> {
    ready = undefined;
    const isNew = applied === undefined;
    status.become("preparing", status.state === "failed" ? "" : undefined);
    const instance = instanceOf(driver, spec, before);
    const { paths } = instance;
    // The way to the authority and back takes longest: all else is done meanwhile.
    const certified = certificate.ensure(signals.changed);
    certified.catch(() => undefined);
    const fingerprint = await driver.fingerprint(paths.software, signals.urgent);
    if (!fingerprint.present) {
      const { engine, version } = spec;
      throw new Error(`This machine's image has no ${engine} ${version} that runs: ${fingerprint.reason}`);
    }
    await mkdir(paths.config, { recursive: true, mode: 0o750 });
    await driver.bootstrap(instance, signals.urgent);
    await syncConfigFiles(paths.config, driver.render(instance));
    await certified;
    // Before the start: an agent that is killed in between must not restart what it finds running.
    await save({ ...before, restartCount: String(spec.restartCount) });
    const mark = await logs.end();
    const memoryMark = await memory.mark();
    signals.urgent.throwIfAborted();
    status.become("starting");
    await process.stop(driver, instance);
    await process.start(driver, instance);
    await process.accompany(driver, instance);
    log.info("engine started", { service: spec.serviceId, engine: spec.engine, version: spec.version });
    try {
      await becomeReady({ driver, instance }, { isNew }, signals.changed);
    } catch (error) {
      if (!process.isEmpty || signals.urgent.aborted) throw error;
      const words = await wordsSince(mark);
      const failure: EngineFailure = (await memory.endedSince(memoryMark))
        ? { cause: "memory", message: "", parameter: undefined }
        : driver.explainFailure(words);
      await takeBack(driver, spec, instance, failure, words, signals);
      return;
    }
    status.showsCertificate(certificate.authorityGeneration);
    const missing = await readiness.becomeRunning({ driver, instance }, signals.changed);
    await save({ ...(applied ?? before), lastGood: { ...instance.spec.parameters } });
    if (missing !== undefined) throw new Error(missing);
  }

  /** The engine ended before it was ready. */
  async function takeBack(
    driver: EngineDriver,
    spec: InstanceSpec,
    tried: Instance,
    failure: EngineFailure,
    words: string,
    signals: RoundSignals,
  ): Promise<void> {
    const before = applied ?? { restartCount: "0", ...noHistory };
    const elsewhere =
      failure.cause === "disk_full" || failure.cause === "port_busy" || failure.cause === "data_damaged";
    const history = elsewhere ? undefined : rejectChanges(tried.spec.parameters, before, failure);
    if (history === undefined) throw new Error(failureWords(failure));
    log.warn("parameters taken back", { service: spec.serviceId, parameters: Object.keys(history.rejected), words });
    await save({ ...before, ...history });
    tell(spec);
    await launch(driver, spec, { ...before, ...history }, signals);
  }

  /** The last that the engine printed. */
  async function wordsSince(mark: string): Promise<string> {
    const printed = await logs.printedSince(mark);
    const { exit } = process.status ?? {};
    return printed.join("\n") || `It said nothing and left with ${exit?.signal ?? exit?.code ?? "an unknown end"}.`;
  }

  /** Ready is who may be asked to work, also when not everybody can reach it. */
  async function becomeReady(
    driven: DrivenInstance,
    { isNew }: { readonly isNew: boolean },
    changed: AbortSignal,
  ): Promise<void> {
    const lifetime = process.lifetime();
    await readiness.untilReady(driven, AbortSignal.any([changed, lifetime]));
    ready = { lifetime, driven };
    await readiness.observe(driven, changed);
    // Before it is called running: whoever put another image under the data waits for this verdict.
    const collation = isNew ? undefined : await checkCollations(driven.driver, driven.instance, changed);
    if (collation !== undefined) status.ordersTexts(collation);
  }

  /**
   * For an engine that took its settings. It binds its addresses when it starts, and never later: one that could listen at
   * more of them is started again for that, now and then. Where that does not help, whoever is in by the others is left alone.
   */
  async function listen(driven: DrivenInstance, spec: InstanceSpec, signals: RoundSignals): Promise<void> {
    const missing = await missingListeners(driven, signals.changed);
    if (missing.some(({ why }) => why === "free") && process.isAccompanied(driven) && newStarts.begin()) {
      log.warn("engine restarts to listen", { service: spec.serviceId, missing });
      status.become("stopping", listenerWords(missing));
      await launch(driven.driver, spec, applied ?? { restartCount: String(spec.restartCount), ...noHistory }, signals);
      return;
    }
    if (status.state === "running") return;
    const words = await readiness.becomeRunning(driven, signals.changed);
    if (words !== undefined) throw new Error(words);
  }

  /** For an engine that runs already: files that changed are read again, nothing is restarted. */
  async function refresh(
    driver: EngineDriver,
    spec: InstanceSpec,
    before: Applied,
    signals: RoundSignals,
  ): Promise<void> {
    const instance = instanceOf(driver, spec, before);
    const renewed = await certificate.ensure(signals.changed);
    const changed = await syncConfigFiles(instance.paths.config, driver.render(instance));
    const adopted = ready === undefined || ready.lifetime.aborted;
    if (adopted) {
      status.become("starting");
      log.info("engine adopted", { service: spec.serviceId, pid: process.status?.pid });
      try {
        await becomeReady({ driver, instance }, { isNew: false }, signals.changed);
        await readiness.becomeRunning({ driver, instance }, signals.changed);
      } catch (error) {
        if (!process.isEmpty || signals.urgent.aborted) throw error;
        // It ended on its way up, perhaps for its settings: a start of our own finds out, and takes them back.
        await launch(driver, spec, before, signals);
        return;
      }
    }
    ready = { lifetime: process.lifetime(), driven: { driver, instance } };
    await process.accompany(driver, instance);
    // An agent that was killed between new files and their reload left them to the one that adopts the engine.
    if (changed.length === 0 && !renewed && !adopted) return;
    log.info("engine reloaded", { service: spec.serviceId, files: changed, certificate: renewed });
    try {
      await driver.reload(instance, signals.urgent);
    } catch (error) {
      const refused =
        error instanceof EngineRefused
          ? rejectChanges(instance.spec.parameters, before, { message: error.message, parameter: undefined })
          : undefined;
      if (refused === undefined) throw error;
      await save({ ...before, ...refused });
      tell(spec);
      await refresh(driver, spec, { ...before, ...refused }, signals);
      return;
    }
    status.showsCertificate(certificate.authorityGeneration);
    await readiness.observe({ driver, instance }, signals.changed);
  }

  /** Never ahead of what is: "running" under these settings says that the engine took them. */
  function tell(spec: InstanceSpec): void {
    const rejections = Object.entries(currentRejections(spec.parameters, applied ?? noHistory));
    status.heldTo(spec, Object.fromEntries(rejections.map(([name, { reason }]) => [name, reason])));
  }

  return {
    async converge(spec, signals) {
      applied ??= await files.loadApplied();
      const before: Applied = applied ?? { restartCount: String(spec.restartCount), ...noHistory };
      const driver = await driverOf(spec.engine);
      if (driver === undefined) {
        tell(spec);
        throw new Error(`This machine's agent does not know the engine ${spec.engine}.`);
      }
      if (!spec.running) {
        if (!process.isEmpty) status.become("stopping");
        tell(spec);
        return halt(driver, instanceOf(driver, spec, before));
      }
      if (
        !process.isEmpty &&
        (spec.restartCount > BigInt(before.restartCount) || process.status?.state === "stopping")
      ) {
        log.info("engine restarts", {
          service: spec.serviceId,
          from: before.restartCount,
          to: String(spec.restartCount),
        });
        ready = undefined;
        status.become("stopping", "A restart was asked for.");
        tell(spec);
        await process.stop(driver, instanceOf(driver, spec, before));
      }
      if (ready === undefined || ready.lifetime.aborted) {
        if (status.state === "running") status.become("starting");
        tell(spec);
      }
      if (process.isEmpty) {
        await launch(driver, spec, before, signals);
        return;
      }
      try {
        await refresh(driver, spec, before, signals);
        const driven = drivenNow();
        if (driven !== undefined) await listen(driven, spec, signals);
      } finally {
        tell(spec);
      }
    },
    engine: drivenNow,
  };
}
