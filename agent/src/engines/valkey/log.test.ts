import { expect, it } from "vitest";
import { explainFailure, parseLog } from "./log.ts";

it("parses valkey's lines only", () => {
  expect(parseLog("1:M 21 Nov 2026 09:05:37.160 * Server initialized")).toEqual({
    time: new Date("2026-11-21T09:05:37.160Z"),
    level: "info",
    message: "Server initialized",
  });
  expect(parseLog("1:M 21 Nov 2026 09:05:37.160 # WARNING words")).toMatchObject({ level: "warning" });
  expect(parseLog("[NOTICE] (1) : words")).toBeUndefined();
});

// biome-ignore format: a table, aligned so that it reads as one
it.each([
  ["*** FATAL CONFIG FILE ERROR (Version 8.1.1) ***\nReading the configuration file, at line 3\n>>> 'io-threads \"900\"'\nargument must be between 1 and 256 inclusive", "configuration", "io-threads"],
  ["1:M 21 Nov 2026 09:05:37.160 # Error writing: No space left on device",                       "disk_full",    undefined],
  ["[ALERT] (1) : [haproxy.main()] Cannot bind: cannot bind socket (Address already in use)",     "port_busy",    undefined],
  ["1:M 21 Nov 2026 09:05:37.160 # Bad file format reading the append only file",                 "data_damaged", undefined],
  ["",                                                                                            "unknown",      undefined],
])("explains %j as %s", (output, cause, parameter) => {
  expect(explainFailure(output)).toMatchObject({ cause, parameter });
});
