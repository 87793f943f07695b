import { describe, expect, it } from "vitest";
import {
  type ServiceContents,
  type DatabaseContents,
  faultsOf,
  type LedgerObject,
  presenceIn,
  type WalkLedger,
} from "./walk-ledger.ts";

const action = (startedAt: number, acknowledgedAt?: number) => ({
  startedAt,
  ...(acknowledgedAt !== undefined && { acknowledgedAt }),
});
const at = (moment: number) => ({ from: moment, to: moment });

describe("objects in data of a point in time", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  it.each([
    // created        dropped          moment             presence
    [action(10, 20),    undefined,       at(30),            "present"],
    [action(10, 20),    undefined,       at(5),             "absent"],
    [action(10, 20),    undefined,       at(15),            "either"],
    [action(10, 20),    undefined,       at(20),            "either"],
    [action(10),        undefined,       at(30),            "either"],
    [action(10),        undefined,       at(5),             "absent"],
    [action(10, 20),    action(40, 50),    at(30),            "present"],
    [action(10, 20),    action(40, 50),    at(45),            "either"],
    [action(10, 20),    action(40, 50),    at(60),            "absent"],
    [action(10, 20),    action(40),        at(60),            "either"],
    [action(10, 20),    undefined,       { from: 15, to: 30 }, "either"],
    [action(10, 20),    undefined,       { from: 25, to: 30 }, "present"],
    [action(10, 20),    action(28, 29),    { from: 25, to: 30 }, "either"],
  ] as const)("created %o, dropped %o, at %o: %s", (created, dropped, moment, presence) => {
    expect(presenceIn({ created, dropped }, moment)).toBe(presence);
  });

  it("removed rows are missing before their removal, and surplus after it", () => {
    const rows = [{ id: 1, created: action(10, 20), dropped: action(40, 50) }];
    const contents = (...there: number[]): ServiceContents => ({
      rows: new Set(there),
      damaged: [],
      roles: new Set(),
      prepared: new Set(),
      databases: new Map(),
    });
    const faults = (moment: number, ...there: number[]) =>
      faultsOf({ rows, objects: [] }, at(moment), contents(...there));
    expect([faults(30, 1), faults(30).length, faults(60), faults(60, 1).length]).toEqual([[], 1, [], 1]);
  });
});

describe("the comparison with a ledger", () => {
  const object = (kind: LedgerObject["kind"], name: string, more: Partial<LedgerObject> = {}): LedgerObject => ({
    kind,
    name,
    created: action(10, 20),
    values: [],
    ...(["extension", "table", "sequence", "large object", "setting"].includes(kind) && { database: "defaultdb" }),
    ...more,
  });
  const ledger: WalkLedger = {
    rows: [
      { id: 1, created: action(10, 20) },
      { id: 2, created: action(30, 40) },
      { id: 3, created: action(90, 95) },
    ],
    objects: [
      object("database", "base_1"),
      object("role", "role_1"),
      object("prepared transaction", "prepared_1"),
      object("extension", "citext"),
      object("setting", "work_mem"),
      object("table", "table_1", { size: 10 }),
      object("table", "table_2", { size: 10, unlogged: true }),
      object("sequence", "sequence_1", {
        values: [
          { value: 5, action: action(20, 30) },
          { value: 9, action: action(70, 80) },
        ],
      }),
      object("large object", "1000001", { size: 4 }),
      object("table", "table_3", { size: 0, database: "base_1", dropped: action(30, 40) }),
    ],
  };
  const base = {
    extensions: new Set<string>(),
    settings: new Set<string>(),
    sequences: new Map(),
    largeObjects: new Map(),
    tables: new Map(),
  };
  const complete = {
    rows: new Set([1, 2]),
    damaged: [],
    roles: new Set(["role_1"]),
    prepared: new Set(["prepared_1"]),
    databases: new Map([
      [
        "defaultdb",
        {
          extensions: new Set(["citext"]),
          settings: new Set(["work_mem"]),
          tables: new Map([
            ["table_1", 10],
            ["table_2", 0],
          ]),
          sequences: new Map([["sequence_1", 5]]),
          largeObjects: new Map([["1000001", 4]]),
        },
      ],
      ["base_1", base],
    ]),
  } satisfies ServiceContents;
  const faults = (contents: Partial<ServiceContents>) => faultsOf(ledger, at(60), { ...complete, ...contents });
  const defaultdb = complete.databases.get("defaultdb") ?? base;
  const changedIn = (changed: Partial<typeof defaultdb>): Partial<ServiceContents> => ({
    databases: new Map(complete.databases).set("defaultdb", { ...defaultdb, ...changed }),
  });

  it("finds no difference in equal data", () => {
    expect(faults({})).toEqual([]);
  });

  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, Partial<ServiceContents>, RegExp]>([
    ["a row that is missing",        { rows: new Set([1]) },                   /1 rows acknowledged before .* missing: 2/],
    ["a row that was begun later",   { rows: new Set([1, 2, 3]) },             /1 rows begun after .* there: 3/],
    ["a row without a write",        { rows: new Set([1, 2, 4]) },             /without a write are there: 4/],
    ["a row that is damaged",        { damaged: [2] },                         /another text: 2/],
    ["a role that is missing",       { roles: new Set() },                     /^role role_1 is missing/],
    ["a lost transaction",           { prepared: new Set() },                  /^prepared transaction prepared_1 is missing/],
    ["a database that is missing",   { databases: new Map([["defaultdb", defaultdb]]) }, /^database base_1 is missing/],
    ["a database that is invalid",   { databases: new Map<string, DatabaseContents | "invalid">([["defaultdb", defaultdb], ["base_1", "invalid"]]) }, /^database base_1 is missing/],
    ["an extension that is missing", changedIn({ extensions: new Set() }),        /^extension citext of defaultdb is missing/],
    ["a setting that is missing",    changedIn({ settings: new Set() }),          /^setting work_mem of defaultdb is missing/],
    ["a table without rows",         changedIn({ tables: new Map([["table_1", 0], ["table_2", 0]]) }), /table_1 .* has 0 rows instead of 10/],
    ["a sequence that went back",    changedIn({ sequences: new Map([["sequence_1", 4]]) }), /sequence_1 .* is at 4, before 5/],
    ["a large object that is cut",   changedIn({ largeObjects: new Map([["1000001", 3]]) }), /has 3 bytes instead of 4/],
    ["a table that was dropped",     { databases: new Map(complete.databases).set("base_1", { ...base, tables: new Map([["table_3", 0]]) }) }, /^table table_3 of base_1 is there/],
  ])("finds %s", (_what, contents, fault) => {
    expect(faults(contents)).toEqual([expect.stringMatching(fault)]);
  });
});
