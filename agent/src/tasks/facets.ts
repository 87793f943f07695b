import type { DatabasesFacet, EngineDriver, UsersFacet } from "../engines/engine-driver.ts";
import { TaskFailed } from "./task-failed.ts";

export function usersOf(driver: EngineDriver): UsersFacet {
  if (driver.users === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no users`);
  return driver.users;
}

export function databasesOf(driver: EngineDriver): DatabasesFacet {
  if (driver.databases === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no databases`);
  return driver.databases;
}
