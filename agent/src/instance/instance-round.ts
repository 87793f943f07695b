import { mkdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type EngineDriver, type EngineFailure, EngineRefused, type Instance } from "../engines/engine-driver.ts";
import { checkCollations } from "./collation-check.ts";
import { syncConfigFiles } from "./config-files.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { Applied, InstanceFiles } from "./instance-files.ts";
import type { InstanceStatus } from "./instance-status.ts";
import type { LogReader } from "./log-reader.ts";
import type { MemoryWatch } from "./memory-watch.ts";
import { currentRejections, effectiveParameters, noHistory, rejectChanges } from "./parameter-history.ts";
import type { ServerCertificate } from "./server-certificate.ts";
import { failureWords, verdictOf } from "./verdict.ts";

/** An engine with the driver that speaks to it. */
export interface DrivenInstance {
  readonly driver: EngineDriver;
  readonly instance: Instance;
}

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
  readonly log: Log;
}

/** Brings the machine to what is wanted, one step at a time; each step finds out for itself what is left to do. */
export interface InstanceRound {
  /** Resolves when the machine is as wanted; rejects with words for users. */
  converge(spec: InstanceSpec, signals: RoundSignals): Promise<void>;
  /** The engine, while it runs and took a write since its start or its adoption. */
  engine(): DrivenInstance | undefined;
}

const readyRetryMs = 500;
const observeTimeoutMs = 3_000;
const observeRetryMs = 100;

export function createInstanceRound(deps: RoundDeps): InstanceRound {
  const { files, process, certificate, status, logs, memory, driverOf, log } = deps;
  let applied: Applied | undefined;
  let ready: { readonly lifetime: AbortSignal; readonly driven: DrivenInstance } | undefined;

  async function save(next: Applied): Promise<void> {
    applied = next;
    await files.saveApplied(next);
  }

  async function halt(driver: EngineDriver, instance: Instance): Promise<void> {
    ready = undefined;
    status.dropChecks("liveness", "storage", "memory", "certificate", "configuration", "collation");
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
    await save({ ...(applied ?? before), lastGood: { ...instance.spec.parameters } });
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

  /** Waits as long as the engine lives: one that recovers is never hurried. */
  async function becomeReady(
    driven: DrivenInstance,
    { isNew }: { readonly isNew: boolean },
    changed: AbortSignal,
  ): Promise<void> {
    const lifetime = process.lifetime();
    const limit = AbortSignal.any([changed, lifetime]);
    for (;;) {
      try {
        limit.throwIfAborted();
        await driven.driver.ready(driven.instance, limit);
        break;
      } catch (error) {
        limit.throwIfAborted();
        status.become("starting", verdictOf((error as Error).message).reason);
        await sleep(readyRetryMs, undefined, { signal: limit });
      }
    }
    ready = { lifetime, driven };
    await observe(driven, changed);
    // Before it is called running: whoever put another image under the data waits for this verdict.
    const collation = isNew ? undefined : await checkCollations(driven.driver, driven.instance, changed);
    if (collation !== undefined) status.ordersTexts(collation);
    status.become("running");
    status.checked({ name: "liveness", status: "healthy", reason: "" });
  }

  /**
   * What is told with new settings is what the engine says after it took them. A look that fails is the probe's to tell,
   * after a few more that may only have come in a bad moment.
   */
  async function observe({ driver, instance }: DrivenInstance, changed: AbortSignal): Promise<void> {
    const limit = AbortSignal.any([changed, AbortSignal.timeout(observeTimeoutMs)]);
    try {
      for (;;) {
        const look = status.looks();
        const observation = await driver.observe(instance, limit);
        status.observed(observation, look);
        if (observation.version !== "") return;
        await sleep(observeRetryMs, undefined, { signal: limit });
      }
    } catch (error) {
      log.info("engine not observed", { service: instance.spec.serviceId, reason: (error as Error).message });
    }
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
    await observe({ driver, instance }, signals.changed);
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
      } finally {
        tell(spec);
      }
    },
    engine() {
      return ready === undefined || ready.lifetime.aborted ? undefined : ready.driven;
    },
  };
}
