import { describe, expect, it } from "vitest";
import { checkParameter } from "./check-parameter.ts";
import { computedDefaults, engineCatalog, parametersOf } from "./engine-catalog.ts";

// biome-ignore format: a table, aligned so that it reads as one
const valid: [engine: string, name: string, text: string, value: string][] = [
  ["postgresql", "work_mem",                     "65536",        "64MB"],
  ["postgresql", "work_mem",                     "64MB",         "64MB"],
  ["postgresql", "work_mem",                     "1.5GB",        "1536MB"],
  ["postgresql", "work_mem",                     "100kB",        "100kB"],
  ["postgresql", "shared_buffers",               "1024",         "8MB"],
  ["postgresql", "max_wal_size",                 "2048",         "2GB"],
  ["postgresql", "statement_timeout",            "90000",        "90s"],
  ["postgresql", "statement_timeout",            "1 h",          "1h"],
  ["postgresql", "statement_timeout",            "0",            "0"],
  ["postgresql", "checkpoint_timeout",           "300",          "5min"],
  ["postgresql", "autovacuum_vacuum_cost_delay", "0.5",          "0.5"],
  ["postgresql", "temp_file_limit",              "-1",           "-1"],
  ["postgresql", "jit",                          "TRUE",         "on"],
  ["postgresql", "random_page_cost",             "1.10",         "1.1"],
  ["postgresql", "default_transaction_isolation", "Serializable", "serializable"],
  ["postgresql", "TimeZone",                     "Europe/Berlin", "Europe/Berlin"],
  ["valkey",     "maxmemory-policy",             "allkeys-lru",  "allkeys-lru"],
  ["valkey",     "proto-max-bulk-len",           "1MB",          "1048576"],
  ["valkey",     "lazyfree-lazy-user-flush",     "on",           "yes"],
  ["valkey",     "notify-keyspace-events",       "",             ""],
];

// biome-ignore format: a table, aligned so that it reads as one
const invalid: [engine: string, name: string, text: string, code: string, message: RegExp][] = [
  ["postgresql", "work_mem",             "1kB",        "out_of_range",      /from 64kB to/],
  ["postgresql", "work_mem",             "64mb",       "wrong_type",        /kB, MB, GB/],
  ["postgresql", "work_mem",             "64constructor", "wrong_type",     /kB, MB, GB/],
  ["postgresql", "work_mem",             "much",       "wrong_type",        /number/],
  ["postgresql", "max_connections",      "10.5",       "wrong_type",        /integer/],
  ["postgresql", "max_connections",      "",           "wrong_type",        /number/],
  ["postgresql", "jit",                  "maybe",      "wrong_type",        /on or off/],
  ["postgresql", "wal_level",            "minimal",    "not_allowed",       /one of replica, logical/],
  ["postgresql", "synchronous_commit",   "sometimes",  "not_allowed",       /one of on, off/],
  ["postgresql", "TimeZone",             "UTC'\nssl=off", "not_allowed",    /time zone/],
  ["postgresql", "wokr_mem",             "1MB",        "unknown_parameter", /did you mean work_mem\?/],
  ["postgresql", "frobnicate",           "1",          "unknown_parameter", /GET \/catalog/],
  ["postgresql", "ssl",                  "off",        "managed_parameter", /set by the platform/],
  ["postgresql", "shared_preload_libraries", "x",      "managed_parameter", /set by the platform/],
  ["postgresql", "log_statement",        "all",        "managed_parameter", /set by the platform/],
  ["valkey",     "port",                 "1",          "managed_parameter", /set by the platform/],
  ["valkey",     "notify-keyspace-events", "KEA\"",    "not_allowed",       /letters/],
  ["valkey",     "busy-reply-threshold", "1001",       "out_of_range",      /from 1 to 1000/],
  ["mysql",      "x",                    "1",          "unknown_parameter", /mysql/],
];

describe("checkParameter", () => {
  it.each(valid)("%s %s = %j is %j", (engine, name, text, value) => {
    const version = engine === "valkey" ? "8.1" : "17";
    expect(checkParameter(engine, version, name, text)).toMatchObject({ ok: true, value });
    expect(checkParameter(engine, version, name, value)).toMatchObject({ ok: true, value });
  });

  it.each(invalid)("%s %s = %j is %s", (engine, name, text, code, message) => {
    const version = engine === "valkey" ? "8.1" : "17";
    const checked = checkParameter(engine, version, name, text);
    expect(checked).toMatchObject({ ok: false, code, detail: expect.stringMatching(message) });
  });
});

describe("the catalog", () => {
  it.each(engineCatalog.flatMap(({ engine, versions }) => versions.map((version) => [engine, version] as const)))(
    "of %s %s has a canonical default, or one by size, for each parameter, and none that is the platform's",
    (engine, version) => {
      const sizes = [1, 2, 4, 64].flatMap((memory) => [1, 3, 5].map((nodes) => [memory, nodes] as const));
      for (const [memory, nodes] of sizes) {
        const plan = { vcpu: memory / 2, memoryBytes: memory * 1024 ** 3, storageBytes: 1024 ** 3 };
        const computed = computedDefaults(engine, plan, nodes);
        for (const [name, parameter] of parametersOf(engine, version)) {
          const value = parameter.default ?? computed[name];
          expect(parameter.default !== null && Object.hasOwn(computed, name), `${name} has two defaults`).toBe(false);
          expect(value, name).toBeDefined();
          expect(checkParameter(engine, version, name, value ?? ""), name).toMatchObject({ ok: true, value });
        }
      }
      const managed = engineCatalog.find((facts) => facts.engine === engine)?.managedParameters ?? [];
      for (const name of parametersOf(engine, version).keys())
        expect(
          managed.some((pattern) => pattern.test(name)),
          name,
        ).toBe(false);
    },
  );
});
