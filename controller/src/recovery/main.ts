import { readFile } from "node:fs/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { createLog } from "@holdfast/common/log.ts";
import { readControllerConfig } from "../config.ts";
import { createHistory } from "../history/history.ts";
import { createDirectoryStore } from "../objects/directory-store.ts";
import { directoryOf } from "../objects/object-store.ts";
import { readKeyring } from "../secrets/keyring.ts";
import { readEtcdCredentials } from "../store/etcd-credentials.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import { restoreSnapshot } from "./restore.ts";
import { takeSnapshot } from "./snapshot.ts";
import { snapshots } from "./snapshot-reconciler.ts";

// Snapshots from the host, with a controller's environment and without a controller:
//   node recovery/main.ts list | backup | restore [id]
// It prints JSON. `restore` takes the newest snapshot when none is named; etcd must be empty and controllers stopped.

const usage = "usage: list | backup | restore [id]";
const [command = "", wanted] = process.argv.slice(2);
const config = readControllerConfig(process.env);
const log = createLog("recovery", config.logLevel);
const clock = systemClock;
const keyring = await readKeyring(config.masterKeyFile);
const credentials = await readEtcdCredentials(config);
const objects = createDirectoryStore(directoryOf(config.objects));

async function withControlPlane<T>(run: (deps: Parameters<typeof takeSnapshot>[0] & HistoryDeps) => Promise<T>) {
  const store = createEtcdStore({ hosts: config.etcd, ...(credentials && { credentials }), log, clock });
  const history = createHistory({
    url: config.historyUrl,
    passwordFile: config.historyPasswordFile,
    ...(config.historyCa === "" ? {} : { tls: { ca: await readFile(config.historyCa, "utf8") } }),
    log,
    now: clock.now,
  });
  try {
    return await run({ store, history, objects, keyring, installationId: config.installationId, clock, log });
  } finally {
    await Promise.all([store.close(), history.close()]);
  }
}

type HistoryDeps = Pick<Parameters<typeof restoreSnapshot>[0], "history">;

async function run(): Promise<unknown> {
  if (command === "list") return (await snapshots({ objects })).toReversed();
  if (command === "backup") return withControlPlane((deps) => takeSnapshot(deps));
  if (command !== "restore") throw new Error(usage);
  const id = wanted ?? (await snapshots({ objects })).at(-1)?.key;
  if (id === undefined) throw new Error("there is no snapshot");
  return withControlPlane((deps) => restoreSnapshot(deps, id));
}

try {
  process.stdout.write(`${JSON.stringify(await run(), null, 2)}\n`);
} catch (error) {
  log.error("failed", { command, error: String(error) });
  process.exitCode = 1;
}
