import { existsSync } from "node:fs";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { readEngineFile } from "../../../os/engine-file.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { leaderOf } from "../../members.ts";
import type { ShutdownPosition } from "../../replication-facet.ts";
import { initialize, prepareDirectory } from "../bootstrap.ts";
import {
  authorityFile,
  certificateFile,
  type DataPath,
  dataDirectory,
  engineDirectory,
  keyFile,
  optionFile,
  platform,
  replicaUser,
} from "../layout.ts";
import { literal } from "../session.ts";
import { openPeerSession, peerPassword, peerPort, pluginList } from "./peer-port.ts";
import { openPeerRelay, type PeerRelay } from "./peer-relay.ts";
import { runOfflineStatements } from "./offline-statements.ts";

/** Marker: exists while the data follow a primary. It is removed durably before the first write of a promotion. */
const followsFile = (data: DataPath): string => join(engineDirectory(data), "follows");
/** End of the log of a primary that was shut down cleanly: a position. */
const stopPositionFile = (data: DataPath): string => join(engineDirectory(data), "yielded");

export async function dataRole(instance: Instance): Promise<"follower" | "primary" | "absent"> {
  if (!existsSync(dataDirectory(instance))) return "absent";
  return existsSync(followsFile(instance)) ? "follower" : "primary";
}

/** Records durably that the data follow a primary. */
async function markFollowing({ runAsEngine: run }: EngineDeps, data: DataPath, signal: AbortSignal): Promise<void> {
  await run(["touch", followsFile(data)], { signal });
  await run(["rm", "-f", stopPositionFile(data)], { signal });
  await syncPath(engineDirectory(data));
}

/** Makes the data independent of any primary. For a primary, before its first write. */
export async function stopFollowing(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  const files = [followsFile(instance), stopPositionFile(instance)];
  if (!files.some((file) => existsSync(file))) return;
  await run(["rm", "-f", ...files], { signal });
  await syncPath(engineDirectory(instance));
}

export async function saveStopPosition(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  position: string,
  signal: AbortSignal,
): Promise<void> {
  const file = stopPositionFile(instance);
  await run(["tee", `${file}.new`], { input: position, signal });
  await run(["sync", `${file}.new`], { signal });
  await run(["mv", `${file}.new`, file], { signal });
  await syncPath(engineDirectory(instance));
}

/** The file exists only if the engine refused every write after that position. */
export async function shutdownPosition(instance: Instance): Promise<ShutdownPosition | undefined> {
  if (!existsSync(stopPositionFile(instance))) return undefined;
  return { position: await readEngineFile(stopPositionFile(instance)) };
}

/**
 * Replaces the data by a copy of the primary's (MySQL manual, "Cloning Remote Data"). A server on scratch data copies
 * into a new directory, then a server on the copy makes it this member's own. The copy appears complete or not at all.
 */
export async function copy(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { runAsEngine: run, randomBytes } = deps;
  const { paths } = instance;
  const leader = leaderOf(instance);
  if (leader === undefined) throw new Error("a primary cannot copy a member's data");
  const base = `${paths.data}/mysql.partial`;
  const scratch: DataPath = { paths: { data: join(base, "scratch") } };
  const draft: DataPath = { paths: { data: join(base, "copy") } };
  await run(["rm", "-rf", base, engineDirectory(instance)], { signal });
  await run(["mkdir", "-m", "0750", base, scratch.paths.data, draft.paths.data], { signal });
  const secret = randomBytes(32).toString("hex");
  for (const data of [scratch, draft]) await prepareDirectory(deps, data, secret, signal);
  await initialize(deps, instance, scratch, { sql: "", hasTimeZones: false }, signal);
  const relay = await openPeerRelay(instance.spec.address, { address: leader.address, port: peerPort(instance) });
  try {
    await clone(deps, instance, { scratch, draft, relay }, signal);
  } finally {
    relay.close();
  }
  if (!existsSync(join(dataDirectory(draft), "mysql.ibd")))
    throw new Error("The copy of the primary's data is incomplete.");
  await runOfflineStatements(
    deps,
    instance,
    {
      data: draft,
      statements: [
        "SET SESSION sql_log_bin = 0",
        `ALTER USER ${literal(platform)}@'localhost' IDENTIFIED WITH caching_sha2_password BY ${literal(secret)}`,
        "RESET REPLICA ALL",
      ],
      optionFile: optionFile(instance),
      options: ["--super-read-only=OFF", "--read-only=OFF"],
      failure: "The copy of the primary's data did not become this member's",
    },
    signal,
  );
  await markFollowing(deps, draft, signal);
  await run(["sync", "--file-system", base], { signal });
  await run(["mv", engineDirectory(draft), engineDirectory(instance)], { signal });
  await run(["rm", "-rf", base], { signal });
  await syncPath(paths.data);
}

/** Runs a server on scratch data that copies the primary's data into a new directory. */
async function clone(
  deps: EngineDeps,
  instance: Instance,
  { scratch, draft, relay }: { readonly scratch: DataPath; readonly draft: DataPath; readonly relay: PeerRelay },
  signal: AbortSignal,
): Promise<void> {
  const { address, port } = relay;
  const donor = `${address}:${port}`;
  await runOfflineStatements(
    deps,
    instance,
    {
      data: scratch,
      statements: [
        `CLONE INSTANCE FROM ${literal(replicaUser)}@${literal(address)}:${port} IDENTIFIED BY ${literal(
          peerPassword(instance),
        )} DATA DIRECTORY = ${literal(dataDirectory(draft))} REQUIRE SSL`,
      ],
      options: [
        "--skip-log-bin",
        "--innodb-buffer-pool-size=32M",
        `--plugin-load=${pluginList}`,
        `--clone-valid-donor-list=${donor}`,
        `--clone-ssl-ca=${authorityFile(instance)}`,
        `--clone-ssl-cert=${certificateFile(instance)}`,
        `--clone-ssl-key=${keyFile(instance)}`,
      ],
      failure: "The primary's data were not copied",
    },
    signal,
  );
}

/** Makes a former primary's data follow the current primary. Throws if they have transactions that it lacks. */
export async function rewind(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const leader = leaderOf(instance);
  if (leader === undefined) throw new Error("a primary cannot follow another member");
  const executed = await executedOf(deps, instance, signal);
  const source = await openPeerSession(instance, leader, signal);
  try {
    const [row] = await source.rows<{ surplus: string }>("SELECT GTID_SUBTRACT(?, @@GLOBAL.gtid_executed) AS surplus", [
      executed,
    ]);
    if (row?.surplus !== "")
      throw new Error(`The primary lacks transactions of the data: ${row?.surplus.slice(0, 200)}`);
  } finally {
    source.close();
  }
  await markFollowing(deps, instance, signal);
}

/** Transactions in the data of a stopped engine, which recovers first if it was killed. */
async function executedOf(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<string> {
  const output = join(engineDirectory(instance), "private.out");
  await deps.runAsEngine(["rm", "-f", output], { signal });
  await runOfflineStatements(
    deps,
    instance,
    {
      data: instance,
      statements: [`SELECT @@GLOBAL.gtid_executed INTO DUMPFILE ${literal(output)}`],
      optionFile: optionFile(instance),
      options: [`--secure-file-priv=${engineDirectory(instance)}`],
      failure: "The transactions in the data were not read",
    },
    signal,
  );
  return (await deps.runAsEngine(["cat", output], { signal })).trim();
}
