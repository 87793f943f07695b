import type { Companion, DrivenInstance, EngineCommand, EngineDriver, Instance } from "../engines/engine-driver.ts";
import type { ComponentStatus, KeeperClient } from "../os/keeper-client.ts";

/** The engine as the keeper runs it. */
export interface EngineProcess {
  readonly status: ComponentStatus | undefined;
  readonly isEmpty: boolean;
  /** `untilMs`: by the host's clock, when the keeper ends it unless it is told otherwise before. */
  start(driver: EngineDriver, instance: Instance, untilMs?: number): Promise<void>;
  /** Starts those of its companions that do not run, and stops those that are not wanted. */
  accompany(driver: EngineDriver, instance: Instance): Promise<void>;
  /**
   * What the work comes to, which is given up when a needed companion ends meanwhile, and not begun when one does not
   * run.
   */
  accompanied<T>(driven: DrivenInstance, signal: AbortSignal, work: (until: AbortSignal) => Promise<T>): Promise<T>;
  /** Do all of its companions run that it needs? */
  isAccompanied(driven: DrivenInstance): boolean;
  /** In order, companions first, by the driver's signal and grace, or by force; resolves when nothing of it is left. */
  stop(driver: EngineDriver, instance: Instance, options?: { readonly atOnce: boolean }): Promise<void>;
  /** Aborts when the run that is on now is over; aborted already when there is none. */
  lifetime(): AbortSignal;
}

export const engineComponent = "engine";

const segmentBytes = 8 << 20;
const keptSegments = 4;
const endCommandsMs = 5_000;

export interface EngineProcessDeps {
  readonly keeper: KeeperClient;
  readonly logPath: string;
  /** Before the engine stops: what holds it up ends first. */
  readonly beforeStop: () => Promise<void>;
}

export function createEngineProcess({ keeper, logPath, beforeStop }: EngineProcessDeps): EngineProcess {
  let run = { starts: -1, over: new AbortController() };

  keeper.subscribe((component) => {
    if (component.name === engineComponent && component.state === "empty")
      run.over.abort(new Error("the engine ended"));
  });

  async function start(
    name: string,
    command: EngineCommand,
    stop: EngineDriver["stop"],
    untilMs?: number,
  ): Promise<void> {
    const { argv, env, cwd } = command;
    const log = {
      path: name === engineComponent ? logPath : `${logPath}-${name}`,
      maxBytes: segmentBytes,
      keep: keptSegments,
    };
    // A service of one member needs no right from anybody.
    const component = { name, argv, env, cwd, log, stop, deadlineMs: null, ...(untilMs !== undefined && { untilMs }) };
    await keeper.order({ op: "start", component });
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
    start: (driver, instance, untilMs) => start(engineComponent, driver.command(instance), driver.stop, untilMs),
    async accompany(driver, instance) {
      for (const { name, command, stop, isWanted = true } of driver.companions?.(instance) ?? []) {
        if (isWanted && isEmpty(name)) await start(name, command, stop);
        else if (!isWanted && !isEmpty(name)) await keeper.order({ op: "stop", name, ...stop });
      }
    },
    async accompanied({ driver, instance }, signal, work) {
      const names = neededBy(driver, instance).map(({ name }) => name);
      const alone = new AbortController();
      const look = () => {
        const gone = names.find(isEmpty);
        if (gone !== undefined) alone.abort(new Error(`The engine's ${gone} ended while it was started.`));
      };
      const subscription = keeper.subscribe(look);
      try {
        look();
        alone.signal.throwIfAborted();
        return await work(AbortSignal.any([signal, alone.signal]));
      } catch (error) {
        throw alone.signal.aborted ? alone.signal.reason : error;
      } finally {
        subscription.close();
      }
    },
    isAccompanied: ({ driver, instance }) => neededBy(driver, instance).every(({ name }) => !isEmpty(name)),
    async stop(driver, instance, { atOnce } = { atOnce: false }) {
      driver.queues?.letGo();
      if (atOnce && !isEmpty(engineComponent)) {
        await keeper.order({ op: "stop", name: engineComponent, ...driver.stop, graceMs: 0 });
      }
      await beforeStop();
      for (const { name, stop } of driver.companions?.(instance) ?? []) {
        if (!isEmpty(name)) await keeper.order({ op: "stop", name, ...stop });
      }
      if (isEmpty(engineComponent)) return;
      // With the companions, clients that could send more are gone.
      await driver.endCommands?.(instance, AbortSignal.timeout(endCommandsMs));
      await keeper.order({ op: "stop", name: engineComponent, ...driver.stop });
    },
    lifetime() {
      const { starts = 0 } = keeper.component(engineComponent) ?? {};
      if (run.starts !== starts) run = { starts, over: new AbortController() };
      if (isEmpty(engineComponent)) run.over.abort(new Error("the engine ended"));
      return run.over.signal;
    },
  };
}

function neededBy(driver: EngineDriver, instance: Instance): Companion[] {
  return (driver.companions?.(instance) ?? []).filter(({ isOptional }) => isOptional !== true);
}
