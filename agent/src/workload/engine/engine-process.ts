import type { Companion, DrivenInstance, EngineCommand, EngineDriver, Instance } from "../../engines/engine-driver.ts";
import type { ComponentStatus, KeeperClient } from "../../os/keeper-client.ts";

/** The engine and its companions (such as a pooler) as components of the keeper. */
export interface EngineProcess {
  readonly status: ComponentStatus | undefined;
  readonly isEmpty: boolean;
  /**
   * Starts the engine with its companions. `untilMs` is the end of the primary lease in milliseconds since the start of
   * the host, at which the keeper kills the engine.
   */
  start(driver: EngineDriver, instance: Instance, untilMs?: number): Promise<void>;
  /** Starts enabled companions that do not run, and stops disabled ones. */
  ensureCompanions(driver: EngineDriver, instance: Instance): Promise<void>;
  /** Runs the work and aborts it if a required companion ends; throws if a required companion does not run. */
  whileCompanionsRun<T>(
    driven: DrivenInstance,
    signal: AbortSignal,
    work: (until: AbortSignal) => Promise<T>,
  ): Promise<T>;
  /** True if all required companions run. */
  companionsRun(driven: DrivenInstance): boolean;
  /**
   * Stops companions first, then the engine, with the driver's signal and grace period, or by SIGKILL with `force`.
   * Resolves once none of its processes remains.
   */
  stop(driver: EngineDriver, instance: Instance, options?: { readonly force: boolean }): Promise<void>;
  /** Aborts when the current run of the engine ends; already aborted without one. */
  lifetime(): AbortSignal;
}

export const engineComponent = "engine";

const segmentBytes = 8 << 20;
const retainedSegments = 4;

/** Settings of a log of the engine at this path. */
export function engineLogAt(path: string) {
  return { path, maxBytes: segmentBytes, keep: retainedSegments };
}
const endCommandsTimeoutMs = 5_000;

export interface EngineProcessDeps {
  readonly keeper: KeeperClient;
  readonly logPath: string;
  /** Called before the engine stops, to end work that would delay it. */
  readonly beforeStop: () => Promise<void>;
}

export function createEngineProcess({ keeper, logPath, beforeStop }: EngineProcessDeps): EngineProcess {
  let run = { starts: -1, ended: new AbortController() };

  keeper.subscribe((component) => {
    if (component.name === engineComponent && component.state === "empty")
      run.ended.abort(new Error("the engine ended"));
  });

  async function start(
    name: string,
    command: EngineCommand,
    stop: EngineDriver["stop"],
    { untilMs, role }: { readonly untilMs?: number | undefined; readonly role?: "front" | undefined } = {},
  ): Promise<void> {
    const { argv, env, cwd } = command;
    const log = engineLogAt(name === engineComponent ? logPath : `${logPath}-${name}`);
    // Without `untilMs` there is no deadline: a service of one member needs no primary lease.
    const component = { name, argv, env, cwd, log, stop, deadlineMs: null, ...(untilMs !== undefined && { untilMs }) };
    await keeper.order({ op: "start", component: role === undefined ? component : { ...component, role } });
  }

  function isEmpty(name: string): boolean {
    return (keeper.component(name)?.state ?? "empty") === "empty";
  }

  return {
    get status() {
      return keeper.component(engineComponent);
    },
    get isEmpty() {
      return isEmpty(engineComponent);
    },
    start: (driver, instance, untilMs) => start(engineComponent, driver.command(instance), driver.stop, { untilMs }),
    async ensureCompanions(driver, instance) {
      for (const { name, command, stop, role, isEnabled = true } of driver.companions?.(instance) ?? []) {
        if (isEnabled && isEmpty(name)) await start(name, command, stop, { role });
        else if (!isEnabled && !isEmpty(name)) await keeper.order({ op: "stop", name, ...stop });
      }
    },
    async whileCompanionsRun({ driver, instance }, signal, work) {
      const names = neededBy(driver, instance).map(({ name }) => name);
      const companionLost = new AbortController();
      const check = () => {
        const ended = names.find(isEmpty);
        if (ended !== undefined) companionLost.abort(new Error(`The engine's ${ended} ended while it was started.`));
      };
      const subscription = keeper.subscribe(check);
      try {
        check();
        companionLost.signal.throwIfAborted();
        return await work(AbortSignal.any([signal, companionLost.signal]));
      } catch (error) {
        throw companionLost.signal.aborted ? companionLost.signal.reason : error;
      } finally {
        subscription.close();
      }
    },
    companionsRun: ({ driver, instance }) => neededBy(driver, instance).every(({ name }) => !isEmpty(name)),
    async stop(driver, instance, { force } = { force: false }) {
      driver.queues?.closeSessions();
      if (force && !isEmpty(engineComponent)) {
        await keeper.order({ op: "stop", name: engineComponent, ...driver.stop, graceMs: 0 });
      }
      await beforeStop();
      for (const { name, stop } of driver.companions?.(instance) ?? []) {
        if (!isEmpty(name)) await keeper.order({ op: "stop", name, ...stop });
      }
      if (isEmpty(engineComponent)) return;
      // With the companions stopped, no client can send more commands.
      await driver.endCommands?.(instance, AbortSignal.timeout(endCommandsTimeoutMs));
      await keeper.order({ op: "stop", name: engineComponent, ...driver.stop });
    },
    lifetime() {
      const { starts = 0 } = keeper.component(engineComponent) ?? {};
      if (run.starts !== starts) run = { starts, ended: new AbortController() };
      if (isEmpty(engineComponent)) run.ended.abort(new Error("the engine ended"));
      return run.ended.signal;
    },
  };
}

function neededBy(driver: EngineDriver, instance: Instance): Companion[] {
  return (driver.companions?.(instance) ?? []).filter(
    ({ isOptional = false, isEnabled = true }) => isEnabled && !isOptional,
  );
}
