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
