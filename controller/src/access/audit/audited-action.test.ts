import { expect, test } from "vitest";
import { actionOf } from "./audited-action.ts";

// biome-ignore format: a table, aligned so that it reads as one
const cases: [method: string, action: string][] = [
  ["CreateQueue",          "queue.create"],
  ["EnableAuth",           "app-auth.enable"],
  ["ExecuteQuery",         "query-console.execute"],
  ["DeleteTopic",          "topic.delete"],
  ["CreateApiKey",         "api-key.create"],
  ["CreateDatabaseUser",   "database-user.create"],
  ["StartManagedService",  "managed-service.start"],
  ["CreateFilesService",   "managed-service.create"],
  ["UpdateBackupSettings", "backup-settings.update"],
  ["CreateSession",        "session.create"],
];
test.each(cases)("a refused %s has the action %s, as a successful one", (name, action) =>
  expect(actionOf({ name })).toBe(action),
);
