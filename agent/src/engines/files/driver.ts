import { filesKeyPrefixes } from "@holdfast/common/engine-catalog/files.ts";
import { listenersOf } from "../addresses.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { ConfigFile, EngineDriver, Fingerprint, Instance } from "../engine-driver.ts";
import { frontCompanion, missingFront } from "../front/front.ts";
import { frontFiles } from "../front/front-config.ts";
import { bootstrap } from "./bootstrap.ts";
import { frontOf } from "./front.ts";
import { frontProgram, type Server, serverProgram, servers } from "./layout.ts";
import { explainFailure, parseLog } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { observe } from "./observe.ts";
import { ready } from "./ready.ts";
import { reload } from "./reload.ts";
import { serverCommand } from "./server.ts";

const stop = { signal: "SIGTERM", graceMs: 10_000 } as const;

/**
 * Driver of files services: versitygw, an S3 server, with one bucket on the data disk.
 *
 * Two servers work on the same bucket, one for keys that may write, one for keys that may only read. Both listen on
 * Unix sockets alone. The front (front.ts) terminates TLS, enforces the allow-list and passes requests on to them. Keys
 * are files of the settings (`keyFiles`) and not on the data disk, so a restored disk has the keys of its service.
 */
export function createFilesDriver({ run }: EngineDeps): EngineDriver {
  return {
    engine: "files",
    topology: "primary_replicas",
    acceptsDeletesWhenBlocked: true,
    software: () => "/usr",
    fingerprint: (software, signal) => fingerprint(run, software, signal),
    render: (instance) => [...keyFiles(instance), ...frontFiles(frontOf(instance))],
    listeners: listenersOf,
    bootstrap,
    command: (instance) => serverCommand(instance, "writers"),
    companions: (instance: Instance) => [
      { name: "readers", command: serverCommand(instance, "readers"), stop },
      frontCompanion(frontOf(instance)),
    ],
    ready,
    stop,
    reload,
    observe,
    parseLog,
    explainFailure,
    metrics: createMetrics(),
  };
}

/** Without HAProxy the allow-list cannot be enforced, so the engine counts as absent. */
async function fingerprint(run: EngineDeps["run"], software: string, signal: AbortSignal): Promise<Fingerprint> {
  const missing = await missingFront(run, frontProgram(software), signal);
  if (missing !== undefined) return { present: false, reason: missing };
  try {
    await run([serverProgram(software), "--help"], { signal });
    return { present: true, version: "1.8.0" };
  } catch (error) {
    return { present: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Access of the keys of each server. */
const accessOf = { writers: "readwrite", readers: "readonly" } as const satisfies Record<Server, string>;

/**
 * The keys of both servers. A key may use every bucket, of which there is one: the role `admin` of the server does
 * that. The other API of this role is on the socket that nothing connects to.
 */
export function keyFiles({ spec }: Pick<Instance, "spec">): ConfigFile[] {
  return servers.map((server) => {
    const access = accessOf[server];
    const keys = spec.users.filter(
      ({ username, role }) => role === access && username.startsWith(filesKeyPrefixes[access]),
    );
    const accounts = keys
      .toSorted((a, b) => (a.username < b.username ? -1 : 1))
      .map(({ username, verifier }) => [username, { access: username, secret: verifier, role: "admin" }]);
    const content = `${JSON.stringify({ accessAccounts: Object.fromEntries(accounts) }, undefined, 1)}\n`;
    return { name: `${server}/users.json`, content, mode: 0o640 };
  });
}
