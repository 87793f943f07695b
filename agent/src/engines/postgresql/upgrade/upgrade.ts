import { maintenanceDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { inEachDatabase, listDatabases } from "../database-list.ts";
import { platform, program } from "../layout.ts";
import { identifier, withSession } from "../session.ts";
import { check } from "./check.ts";
import { discardRetained, retainedVersionOf, rollBack, versionOf } from "./directories.ts";
import { upgradeData } from "./run-upgrade.ts";
import type { UpgradeFacet } from "../../upgrade-facet.ts";

export function createUpgrade(deps: EngineDeps): UpgradeFacet {
  return {
    versionOf,
    retainedVersionOf,
    check: (instance, _version, signal) => check(deps, instance, signal),
    upgrade: (instance, from, signal) => upgradeData(deps, instance, from, signal),
    finish: (instance, signal) => finish(deps, instance, signal),
    async rollBack(instance, signal) {
      const retained = await retainedVersionOf(instance);
      if (retained === undefined) throw new Error("There are no retained data to roll back to.");
      await rollBack(deps, instance, retained, signal);
    },
    discardRetained: (instance, signal) => discardRetained(deps, instance, signal),
  };
}

const statementMs = 120_000;
/** Time limit of ANALYZE before clients are admitted. Autovacuum analyzes the remaining tables later. */
const analyzeMs = 60_000;
/** OID of the database that initdb creates (PostgresDbOid). */
const oidOfInitdb = 5;

/**
 * Drops the database `postgres` of initdb if the service has none, updates extensions to the versions of the image, and
 * collects the statistics that pg_upgrade does not copy. An extension that cannot be updated retains its version and
 * works as before.
 */
async function finish({ runAsEngine: run }: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  await withSession(
    instance,
    signal,
    async (session) => {
      // A database of the service has the OID that it had before.
      const [own] = await session.rows("SELECT FROM pg_database WHERE datname = $1 AND oid = $2", [
        maintenanceDatabase,
        oidOfInitdb,
      ]);
      if (own !== undefined) await session.rows(`DROP DATABASE ${maintenanceDatabase}`);
    },
    { statementMs },
  );
  await inEachDatabase(
    () => withSession(instance, signal, listDatabases),
    (database) => updateExtensions(instance, database, signal),
  );
  const { spec, paths } = instance;
  const session = [
    `--host=${paths.run}`,
    `--port=${spec.port}`,
    `--username=${platform}`,
    `--maintenance-db=${platform}`,
  ];
  const options = ["--all", "--analyze-in-stages", "--missing-stats-only", "--quiet"];
  const until = AbortSignal.any([signal, AbortSignal.timeout(analyzeMs)]);
  await run([program(instance, "vacuumdb"), ...session, ...options], { env: { LC_ALL: "C" }, signal: until }).catch(
    () => signal.throwIfAborted(),
  );
}

async function updateExtensions(instance: Instance, database: string, signal: AbortSignal): Promise<void> {
  await withSession(
    instance,
    signal,
    async (session) => {
      const outdated = await session.rows<{ name: string }>(
        `SELECT extname AS name FROM pg_extension JOIN pg_available_extensions ON name = extname
         WHERE default_version <> extversion`,
      );
      for (const { name } of outdated)
        await session.rows(`ALTER EXTENSION ${identifier(name)} UPDATE`).catch(() => signal.throwIfAborted());
    },
    { database, statementMs },
  );
}
