import { rmSync } from "node:fs";
import { join } from "node:path";
import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import { acmeChild } from "./acme/acme-child.ts";
import { openBoundedLog } from "./bounded-log.ts";
import { type Child, type ChildSpec, startChild } from "./child.ts";
import { dataPlaneChildren } from "./data-plane-children.ts";
import { etcdChild } from "./etcd.ts";
import { untilHealthy } from "./healthy-api.ts";
import { historyChild, initHistory, isHistoryCreated } from "./history.ts";
import { controllerChild, localUrlOf, writeAdminFile } from "./platform-children.ts";
import type { PlatformParts } from "./platform-parts.ts";
import { busyPorts, busyPortsError } from "./ports.ts";
import type { ProgramUser } from "./program-user.ts";

export interface PlatformDeps {
  readonly parts: PlatformParts;
  readonly etcd: PlatformProgram;
  readonly postgresql: PlatformProgram;
  readonly user: ProgramUser;
  monotonicMs(): number;
  /** Prints a line for the user. */
  print(line: string): void;
}

/**
 * All processes of an installation: etcd, history, data planes, controller, and the provider's daemon.
 *
 * `start` launches each as soon as its inputs exist: the machine host's daemon, data planes, etcd and history, then the
 * controller. `stop` exits callers before the servers that they call. child.ts restarts a process that exits.
 */
export interface Platform {
  /**
   * Starts all processes; resolves when the API responds and admin.json is written. Throws a UserError if a process
   * cannot start because its port was taken after the check.
   */
  start(signal: AbortSignal): Promise<void>;
  /** Starts etcd and history only, for a restore before any reader starts. */
  startStores(signal: AbortSignal): Promise<void>;
  stopStores(): Promise<void>;
  /**
   * Stops all processes in order, callers before servers, without losing data. Possible at any time after or during
   * start. With `keepsMachines` the machines continue, and the next start adopts them.
   */
  stop(options?: { readonly keepsMachines?: boolean }): Promise<void>;
}

/** Time for a keeper to stop its engine in order. */
export const machineGraceMs = 20_000;

/** Number of exits of a child during the start after which its port is checked. */
const exitsBeforePortCheck = 3;

export function createPlatform(deps: PlatformDeps): Platform {
  const { parts, user, print } = deps;
  const { layout, installation, secrets, pki, machineHost, advertised } = parts;
  const children = new Map<string, Child>();
  const portTaken = Promise.withResolvers<never>();
  // After the start no caller awaits it: the child is restarted until its port is free.
  portTaken.promise.catch(() => undefined);

  function launch(spec: ChildSpec, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const log = openBoundedLog(join(layout.log, `${spec.name}.log`), { maxBytes: 16 << 20, filesMax: 3 });
    let exits = 0;
    const ended = () => {
      exits += 1;
      if (exits >= exitsBeforePortCheck) checkPortsOf(spec).catch((error: unknown) => portTaken.reject(error));
    };
    const child = startChild(spec, { log, print, ended, monotonicMs: deps.monotonicMs });
    children.set(spec.name, child);
    return child.ready;
  }

  async function checkPortsOf({ listens = [] }: ChildSpec): Promise<void> {
    const busy = await busyPorts(installation.ports, advertised?.listen, listens);
    if (busy.length > 0) throw busyPortsError(installation.ports, busy);
  }

  /** Runs the work; aborts it as soon as a port turns out to be taken. */
  async function unlessPortTaken(signal: AbortSignal, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    const givenUp = new AbortController();
    try {
      await Promise.race([work(AbortSignal.any([signal, givenUp.signal])), portTaken.promise]);
    } catch (error) {
      givenUp.abort(error);
      throw error;
    }
  }

  async function startHistory(signal: AbortSignal): Promise<void> {
    await initHistory(deps.postgresql, user, { layout, password: secrets.historyPassword });
    await launch(historyChild(deps.postgresql, user, { layout, ports: installation.ports, pki }), signal);
  }

  const startEtcd = (signal: AbortSignal) =>
    launch(etcdChild(deps.etcd, user, { layout, ports: installation.ports, pki }), signal);
  const stop = async (name: string, signal?: NodeJS.Signals) => children.get(name)?.stop(signal);

  async function startMachineHost(signal: AbortSignal): Promise<void> {
    if (machineHost.daemon !== undefined) await launch(machineHost.daemon, signal);
    await machineHost.open(signal);
  }

  /** Stops the machines, unless the daemon never ran: then there is none. */
  async function stopMachines(): Promise<void> {
    const { daemon } = machineHost;
    if (daemon === undefined || children.has(daemon.name)) await machineHost.stopMachines(machineGraceMs);
  }

  async function startAll(signal: AbortSignal): Promise<void> {
    // The machine host is first, because it creates an address that the controller listens on.
    await startMachineHost(signal);
    // At the first start, data planes wait for the identities that the controller creates; later they do not wait.
    for (const child of dataPlaneChildren(parts)) await launch(child, signal);
    const etcd = startEtcd(signal);
    const history = startHistory(signal);
    // A controller waits for etcd and history itself, and starts slower than both; only creating the history takes
    // long.
    if (!isHistoryCreated(layout)) await history;
    await launch(controllerChild(parts), signal);
    const acme = acmeChild(parts);
    if (acme !== undefined) await launch(acme, signal);
    await Promise.all([etcd, history]);
    await untilHealthy(localUrlOf(installation), layout.authority, signal);
    writeAdminFile(parts);
  }

  return {
    startStores: (signal) => unlessPortTaken(signal, (stop) => Promise.all([startEtcd(stop), startHistory(stop)])),
    async stopStores() {
      await Promise.all([stop("history"), stop("etcd")]);
    },

    start: (signal) => unlessPortTaken(signal, startAll),

    async stop({ keepsMachines = false } = {}) {
      rmSync(layout.admin, { force: true });
      await stop("acme");
      await stop("controller");
      if (!keepsMachines) await stopMachines();
      // Its own stop signal would stop the machines.
      if (machineHost.daemon !== undefined) await stop(machineHost.daemon.name, keepsMachines ? "SIGKILL" : undefined);
      await Promise.all(dataPlaneChildren(parts).map(({ name }) => stop(name)));
      await stop("history");
      await stop("etcd");
    },
  };
}
