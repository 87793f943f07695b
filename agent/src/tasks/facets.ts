import type { EngineDriver } from "../engines/engine-driver.ts";
import { TaskFailed } from "../task-failed.ts";

/** Each throws not_supported for an engine that lacks it. */
export const usersOf = (driver: EngineDriver) => present(driver, driver.users, "users");
export const databasesOf = (driver: EngineDriver) => present(driver, driver.databases, "databases");
export const queuesOf = (driver: EngineDriver) => present(driver, driver.queues, "queues");
export const identityOf = (driver: EngineDriver) => present(driver, driver.identity, "schema of end users");
export const queryStatsOf = (driver: EngineDriver) => present(driver, driver.queryStats, "statistics of queries");
export const sessionsOf = (driver: EngineDriver) => present(driver, driver.sessions, "list of running queries");
export const replicationOf = (driver: EngineDriver) => present(driver, driver.replication, "replication");
export const upgradeOf = (driver: EngineDriver) => present(driver, driver.upgrade, "upgrade of its data");
export const readOnlyQueryOf = (driver: EngineDriver) => present(driver, driver.readOnlyQuery, "query console");

function present<F>({ engine }: EngineDriver, facet: F | undefined, what: string): F {
  if (facet === undefined) throw new TaskFailed("not_supported", `${engine} has no ${what}`);
  return facet;
}
