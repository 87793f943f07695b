import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { inEachDatabase, listDatabases } from "../database-list.ts";
import { platform, program } from "../layout.ts";
import { identifier, withSession } from "../session.ts";

const statementMs = 120_000;
/** Whatever is not analyzed by then, autovacuum analyzes while clients work. */
const analyzeMs = 60_000;

/**
 * Drops the database that initdb makes and no service has, updates extensions to the version that the image brings, and gathers the
 * statistics that pg_upgrade does not carry over. An extension that cannot be updated stays as it is: it works as before.
 */
export async function finish({ runAsEngine: run }: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  await withSession(
    instance,
    signal,
    async (session) => {
      // A database of this name that a user made has a higher oid, and stays.
      const [own] = await session.rows("SELECT FROM pg_database WHERE datname = 'postgres' AND oid < 16384");
      if (own !== undefined) await session.rows("DROP DATABASE postgres");
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
  const what = ["--all", "--analyze-in-stages", "--missing-stats-only", "--quiet"];
  const until = AbortSignal.any([signal, AbortSignal.timeout(analyzeMs)]);
  await run([program(instance, "vacuumdb"), ...session, ...what], { env: { LC_ALL: "C" }, signal: until }).catch(() =>
    signal.throwIfAborted(),
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
