import { readFile } from "node:fs/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { createLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { machineKind } from "#fleet/machine/machine.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { defaultCatalog, withVirtualMachines } from "#catalog/catalog.ts";
import { createAssembly } from "#kernel/assembly.ts";
import { createHistory } from "#kernel/history/history.ts";
import { migrationGroups } from "#kernel/history/migrate.ts";
import { openObjectStore } from "#kernel/objects/open-object-store.ts";
import { readKeyring } from "#kernel/secrets/sealer.ts";
import { readEtcdCredentials } from "#kernel/store/etcd-client.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import type { Store } from "#kernel/store/store.ts";
import { readControllerConfig } from "../../config.ts";
import { systems } from "../../systems.ts";
import { recoverServices } from "./service-recovery.ts";
import { restoreControlPlane } from "./restore.ts";
import { backUpControlPlane, snapshots } from "./snapshot.ts";

// Snapshots and recovery from the host, with a controller's environment but without a running controller:
//   node recovery/main.ts list | backup | restore [id] | recover
// It prints JSON. `restore` uses the newest snapshot by default; etcd must be empty, and controllers must be stopped.
// `recover` needs no snapshot: it writes the services that the object store describes; controllers must be stopped.

const usage = "usage: list | backup | restore [id] | recover";
const [command = "", requestedId] = process.argv.slice(2);
const config = readControllerConfig(process.env);
const log = createLog("recovery", config.logLevel);
const clock = systemClock;
// With the virtual machines of all plans, because the former installation may have offered them.
const catalog = withVirtualMachines(
  defaultCatalog,
  defaultCatalog.plans.map(({ planName }) => planName),
);
const keyring = await readKeyring(config.masterKeyFile);
const credentials = await readEtcdCredentials(config);
const { objects } = await openObjectStore(config, { trustBundle: () => "", now: clock.now });

async function withStore<T>(run: (store: Store) => Promise<T>): Promise<T> {
  const store = createEtcdStore({ hosts: config.etcd, ...(credentials && { credentials }), log, clock });
  try {
    return await run(store);
  } finally {
    await store.close();
  }
}

function withControlPlane<T>(run: (deps: Parameters<typeof backUpControlPlane>[0] & HistoryDeps) => Promise<T>) {
  return withStore(async (store) => {
    const history = createHistory({
      url: config.historyUrl,
      passwordFile: config.historyPasswordFile,
      ...(config.historyCa === "" ? {} : { tls: { ca: await readFile(config.historyCa, "utf8") } }),
      log,
      now: clock.now,
      migrations: createAssembly(systems).useFor("recovery")(migrationGroups),
    });
    try {
      return await run({ store, history, objects, keyring, installationId: config.installationId, clock, log });
    } finally {
      await history.close();
    }
  });
}

type HistoryDeps = Pick<Parameters<typeof restoreControlPlane>[0], "history">;

async function run(): Promise<unknown> {
  if (command === "list") return (await snapshots({ objects })).toReversed();
  if (command === "recover")
    return withStore((store) => recoverServices({ store, objects, keyring, clock, newId: uuidv7, log, catalog }));
  if (command === "backup") return withControlPlane((deps) => backUpControlPlane(deps));
  if (command !== "restore") throw new Error(usage);
  const id = requestedId ?? (await snapshots({ objects })).at(-1)?.key;
  if (id === undefined) throw new Error("the object store has no snapshot");
  return withControlPlane((deps) => restoreControlPlane({ ...deps, kinds: [managedServiceKind, machineKind] }, id));
}

try {
  process.stdout.write(`${JSON.stringify(await run(), null, 2)}\n`);
} catch (error) {
  log.error("recovery command failed", { command, error: String(error) });
  process.exitCode = 1;
}
