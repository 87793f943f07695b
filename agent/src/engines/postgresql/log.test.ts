import { expect, it } from "vitest";
import { explainFailure, parseLog } from "./log.ts";

// biome-ignore format: a table, aligned so that it reads as one
it.each([
  ["1795251877.160 [1] LOG:  database system is ready to accept connections", "info",    "database system is ready to accept connections"],
  ["1795251877.160 [12] ERROR:  relation \"x\" does not exist at character 15", "error", "relation \"x\" does not exist at character 15"],
  ["1795251877.160 [12] FATAL:  the database system is starting up",          "error",   "the database system is starting up"],
  ["1795251877.160 [12] WARNING:  there is no transaction in progress",       "warning", "there is no transaction in progress"],
  ["1795251877.160 [12] HINT:  Try again.",                                   "info",    "HINT: Try again."],
  ["1795251877.160 [12] DEBUG1:  words",                                      "debug",   "words"],
])("reads %s", (line, level, message) => {
  expect(parseLog(line)).toEqual({ time: new Date(1_795_251_877_160), level, message });
});

it("treats every other line as a continuation", () => {
  for (const line of ["", "\tmore words", "LOG:  no prefix"]) expect(parseLog(line)).toBeUndefined();
});

const at = "1795251877.160 [1] ";
// biome-ignore format: a table, aligned so that it reads as one
it.each([
  [`${at}LOG:  1 kB is outside the valid range for parameter "work_mem" (64 kB .. 2147483647 kB)\n${at}FATAL:  configuration file "/c" contains errors`, "configuration", "work_mem"],
  [`${at}FATAL:  could not map anonymous shared memory: Cannot allocate memory\n${at}HINT:  less`,              "memory",       undefined],
  [`${at}LOG:  could not bind IPv4 address "127.0.0.1": Address already in use`,                                "port_busy",    undefined],
  [`${at}PANIC:  could not write to file "pg_wal/xlogtemp.1": No space left on device`,                         "disk_full",    undefined],
  [`${at}PANIC:  could not locate a valid checkpoint record at 0/1`,                                            "data_damaged", undefined],
  [`${at}FATAL:  something new`,                                                                                "unknown",      undefined],
  ["",                                                                                                          "unknown",      undefined],
])("explains %j as %s", (output, cause, parameter) => {
  expect(explainFailure(output)).toMatchObject({ cause, parameter });
});
