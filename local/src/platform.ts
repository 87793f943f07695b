import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import { writeAdminFile } from "./admin-file.ts";
import { openBoundedLog } from "./bounded-log.ts";
import type { Child, ChildSpec } from "./child.ts";
import { startChild } from "./child.ts";
import { etcdChild } from "./etcd.ts";
import { untilHealthy } from "./health.ts";
import { historyChild, initHistory, isHistoryMade } from "./history.ts";
import type { PlatformParts } from "./platform-children.ts";
import { controllerChild, dnsChild, dnsIdentity, localUrlOf } from "./platform-children.ts";
import type { ProgramUser } from "./program-user.ts";

export interface PlatformDeps {
  readonly parts: PlatformParts;
  readonly etcd: PlatformProgram;
  readonly postgresql: PlatformProgram;
  readonly user: ProgramUser;
  now(): number;
  /** Called with one line for the user. */
  say(line: string): void;
}

/** All processes of an installation. */
export interface Platform {
  /** Starts them, each as soon as what it needs is there; resolves when the API answers and admin.json is written. */
  start(signal: AbortSignal): Promise<void>;
  /** Only etcd and history, to be filled before anybody reads them. */
  startStores(signal: AbortSignal): Promise<void>;
  stopStores(): Promise<void>;
  /** Stops them so that nothing is lost: who asks before who answers. Works at any time after or during start. */
  stop(): Promise<void>;
}

/** A keeper gets this long to stop its engine in order. */
export const machineGraceMs = 20_000;

export function createPlatform(deps: PlatformDeps): Platform {
  const { parts, user, say } = deps;
  const { layout, installation, secrets, pki, machineHost } = parts;
  const children = new Map<string, Child>();

  function launch(spec: ChildSpec, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const log = openBoundedLog(join(layout.log, `${spec.name}.log`), { maxBytes: 16 << 20, keep: 3 });
    const child = startChild(spec, { log, say, now: deps.now });
    children.set(spec.name, child);
    return child.ready;
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

  return {
    async startStores(signal) {
      await Promise.all([startEtcd(signal), startHistory(signal)]);
    },
    async stopStores() {
      await Promise.all([stop("history"), stop("etcd")]);
    },

    async start(signal) {
      // The controller listens where machines find it, so that comes first.
      await startMachineHost(signal);
      // At the very first start the controller makes the identity that the DNS server shows; later it needs nobody.
      const dnsIsKnown = existsSync(join(dnsIdentity(layout), "cert.pem"));
      if (dnsIsKnown) await launch(dnsChild(parts), signal);
      const etcd = startEtcd(signal);
      const history = startHistory(signal);
      // Both are quicker than a controller, which waits for the rest; only to make a history takes long.
      if (!isHistoryMade(layout)) await history;
      await launch(controllerChild(parts), signal);
      await Promise.all([etcd, history]);
      await untilHealthy(localUrlOf(installation), layout.authority, signal);
      if (!dnsIsKnown) await launch(dnsChild(parts), signal);
      writeAdminFile(parts);
    },

    async stop() {
      rmSync(layout.admin, { force: true });
      await stop("controller");
      await stopMachines();
      if (machineHost.daemon !== undefined) await stop(machineHost.daemon.name);
      await stop("dns");
      await stop("history");
      await stop("etcd");
    },
  };
}
