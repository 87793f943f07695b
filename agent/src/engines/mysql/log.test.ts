import { expect, test } from "vitest";
import { explainFailure, parseLog } from "./log.ts";

test("a line has its time, level and message", () => {
  expect(
    parseLog("2026-11-28T15:54:24.894452Z 0 [System] [MY-010931] [Server] mysqld: ready for connections."),
  ).toEqual({
    time: new Date("2026-11-28T15:54:24.894Z"),
    level: "info",
    message: "mysqld: ready for connections.",
  });
  expect(parseLog("2026-11-28T15:54:58.478802Z 10 [Warning] [MY-013130] [Server] Aborted connection")?.level).toBe(
    "warning",
  );
  expect(parseLog("2026-11-28T16:10:40.403189Z 0 [ERROR] [MY-000067] [Server] x")?.level).toBe("error");
  expect(parseLog("  continued")).toBeUndefined();
});

const error = (message: string) => `2026-11-28T16:10:40.403189Z 0 [ERROR] [MY-000067] [Server] ${message}`;

// biome-ignore format: a table
test.each([
  ["configuration", "unknown variable 'innodb_x=1'.",                                        "innodb_x"],
  ["configuration", "Error while setting value 'NEVER' to 'sql_mode'.",                       "sql_mode"],
  ["disk_full",     "Error writing file './binlog.000002' (OS errno 28 - No space left on device)", undefined],
  ["memory",        "mmap(137363456 bytes) failed; errno: 12 Cannot allocate memory",         undefined],
  ["unknown",       "Aborting",                                                               undefined],
])("%s is the cause of: %s", (cause, message, parameter) => {
  const output = `${error(message)}\n${error("Aborting")}\n2026-11-28T16:10:41.883904Z 0 [System] [MY-015016] [Server] MySQL Server - end.`;
  expect(explainFailure(output)).toEqual({ cause, message, parameter });
});

/** The errors that MySQL 9.7 prints after any of InnoDB. */
const consequences = [
  "Plugin initialization aborted with error Generic error.",
  "Failed to initialize DD Storage Engine",
  "Data Dictionary initialization failed.",
  "Aborting",
].map(error);
const tooSmall =
  "Cannot continue operation. The innodb_redo_log_capacity=51M is too small for the innodb_thread_concurrency=1000. The capacity of redo should be >= 148M. To get mysqld running, set innodb_thread_concurrency to a smaller value or increase innodb_redo_log_capacity. Please refer to http://dev.mysql.com/doc/refman/9.7/en/innodb-parameters.html";

// biome-ignore format: a table
test.each([
  ["configuration", [tooSmall]],
  ["data_damaged",  ["Invalid redo log header checksum.", "Failed to read header of the redo log file ./#innodb_redo/#ib_redo6"]],
  ["data_damaged",  ["File ./ibdata1: 'open' returned OS error 71. Cannot continue operation", "Cannot continue operation."]],
  ["data_damaged",  ["Could not find any file associated with the tablespace ID: 4294967294"]],
  ["unknown",       ["A reason that is not in the table."]],
])("%s is the cause of a failed start of InnoDB that begins with: %s", (cause, messages) => {
  const output = [...messages.map(error), ...consequences].join("\n");
  expect(explainFailure(output)).toEqual({ cause, message: messages[0], parameter: undefined });
});

test("a start without a cause has the first error of the engine", () => {
  expect(explainFailure(consequences.join("\n"))).toMatchObject({
    cause: "unknown",
    message: "Plugin initialization aborted with error Generic error.",
  });
});
