import type { DatabasesFacet, EngineDriver, UsersFacet } from "../engines/engine-driver.ts";
import { TaskFailed } from "../task-failed.ts";

/** Throws not_supported for an engine without users. */
export function usersOf(driver: EngineDriver): UsersFacet {
  if (driver.users === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no users`);
  return driver.users;
}

/** Throws not_supported for an engine without databases. */
export function databasesOf(driver: EngineDriver): DatabasesFacet {
  if (driver.databases === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no databases`);
  return driver.databases;
}
