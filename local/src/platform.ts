import { rmSync } from "node:fs";
import { join } from "node:path";
import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import { writeAdminFile } from "./admin-file.ts";
import { openBoundedLog } from "./bounded-log.ts";
import type { Child, ChildSpec } from "./child.ts";
import { startChild } from "./child.ts";
import { dataPlaneChildren } from "./data-plane-children.ts";
import { etcdChild } from "./etcd.ts";
import { untilHealthy } from "./health.ts";
import { historyChild, initHistory, isHistoryMade } from "./history.ts";
import { controllerChild, localUrlOf } from "./platform-children.ts";
import type { PlatformParts } from "./platform-parts.ts";
import { busyPorts, portsAreBusy } from "./ports.ts";
import type { ProgramUser } from "./program-user.ts";

export interface PlatformDeps {
  readonly parts: PlatformParts;
  readonly etcd: PlatformProgram;
  readonly postgresql: PlatformProgram;
  readonly user: ProgramUser;
  monotonicMs(): number;
  /** Called with one line for the user. */
  say(line: string): void;
}

/** All processes of an installation. */
export interface Platform {
  /**
   * Starts them, each as soon as what it needs is there; resolves when the API answers and admin.json is written. Throws a
   * UserError when one of them cannot start because somebody took its port since the ports were looked at.
   */
  start(signal: AbortSignal): Promise<void>;
  /** Only etcd and history, to be filled before anybody reads them. */
  startStores(signal: AbortSignal): Promise<void>;
  stopStores(): Promise<void>;
  /** Stops them so that nothing is lost: who asks before who answers. Works at any time after or during start. */
  stop(): Promise<void>;
}

/** A keeper gets this long to stop its engine in order. */
export const machineGraceMs = 20_000;

/** So many ends of a child during the start, and whoever has its port has not only tried it for a moment. */
const endsInVain = 3;

export function createPlatform(deps: PlatformDeps): Platform {
  const { parts, user, say } = deps;
  const { layout, installation, secrets, pki, machineHost, reach } = parts;
  const children = new Map<string, Child>();
  const portTaken = Promise.withResolvers<never>();
  // After the start nobody waits for it: then the child is started until its port is free.
  portTaken.promise.catch(() => undefined);

  function launch(spec: ChildSpec, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const log = openBoundedLog(join(layout.log, `${spec.name}.log`), { maxBytes: 16 << 20, keep: 3 });
    let ends = 0;
    const ended = () => {
      ends += 1;
      if (ends >= endsInVain) lookForTaken(spec).catch((error: unknown) => portTaken.reject(error));
    };
    const child = startChild(spec, { log, say, ended, monotonicMs: deps.monotonicMs });
    children.set(spec.name, child);
    return child.ready;
  }

  async function lookForTaken({ listens = [] }: ChildSpec): Promise<void> {
    const busy = await busyPorts(installation.ports, reach?.listen, listens);
    if (busy.length > 0) throw portsAreBusy(installation.ports, busy);
  }

  /** What works begins, given up as soon as it is known that a child cannot start. */
  async function unlessTaken(signal: AbortSignal, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
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
  const stop = async (name: string) => children.get(name)?.stop();

  async function startMachineHost(signal: AbortSignal): Promise<void> {
    if (machineHost.daemon !== undefined) await launch(machineHost.daemon, signal);
    await machineHost.open(signal);
  }

  /** Without its daemon, machines were never reached. */
  async function stopMachines(): Promise<void> {
    const { daemon } = machineHost;
    if (daemon === undefined || children.has(daemon.name)) await machineHost.stopMachines(machineGraceMs);
  }

  async function startAll(signal: AbortSignal): Promise<void> {
    // The controller listens where machines find it, so that comes first.
    await startMachineHost(signal);
    // At the very first start they wait for the identities that the controller makes; later they need nobody.
    for (const child of dataPlaneChildren(parts)) await launch(child, signal);
    const etcd = startEtcd(signal);
    const history = startHistory(signal);
    // Both are quicker than a controller, which waits for the rest; only to make a history takes long.
    if (!isHistoryMade(layout)) await history;
    await launch(controllerChild(parts), signal);
    await Promise.all([etcd, history]);
    await untilHealthy(localUrlOf(installation), layout.authority, signal);
    writeAdminFile(parts);
  }

  return {
    startStores: (signal) => unlessTaken(signal, (stop) => Promise.all([startEtcd(stop), startHistory(stop)])),
    async stopStores() {
      await Promise.all([stop("history"), stop("etcd")]);
    },

    start: (signal) => unlessTaken(signal, startAll),

    async stop() {
      rmSync(layout.admin, { force: true });
      await stop("controller");
      await stopMachines();
      if (machineHost.daemon !== undefined) await stop(machineHost.daemon.name);
      await Promise.all(dataPlaneChildren(parts).map(({ name }) => stop(name)));
      await stop("history");
      await stop("etcd");
    },
  };
}
