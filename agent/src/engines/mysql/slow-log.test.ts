import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Instance } from "../engine-driver.ts";
import type { Session } from "./session.ts";
import { createSlowStatements, slowLog } from "./slow-log.ts";

const { signal } = new AbortController();
const fullSegment = 4 << 20;
let data: string;
let instance: Instance;

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "slow-log-"));
  mkdirSync(join(data, "mysql"));
  const paths = { config: "/c", data, log: "/l", run: "/r", software: "/usr", tls: "/t" };
  instance = { spec: create(InstanceSpecSchema, { engine: "mysql" }), paths };
});
afterEach(() => rmSync(data, { recursive: true }));

const segment = (number: number) => join(data, "mysql", `slow.log.${number}`);
const write = (number: number, size = 1) => writeFileSync(segment(number), Buffer.alloc(size));

/** The statements of an observation of an engine with this state. */
async function recorded(enabled: number, file: string, { isFull = false } = {}): Promise<string[]> {
  const statements: string[] = [];
  const session: Session = {
    async rows<R>(sql: string) {
      if (sql.startsWith("SELECT")) return [{ enabled: String(enabled), file }] as R[];
      if (isFull) throw new Error("No space left on device");
      statements.push(sql);
      return [];
    },
  };
  const remove = async ([, , ...paths]: readonly string[]) => {
    for (const path of paths) await rm(path);
    return "";
  };
  await createSlowStatements({ runAsEngine: remove }).record(instance, session, signal);
  return statements;
}

const opens = (number: number) => [
  "SET GLOBAL slow_query_log = OFF",
  `SET GLOBAL slow_query_log_file = '${segment(number)}'`,
  "SET GLOBAL slow_query_log = ON",
];

test("an entry begins with its time, and its other lines continue it", () => {
  const entry = [
    "# User@Host: app_user[app_user] @ localhost []  Id:    12",
    "# Query_time: 2.000123  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1",
    "SET timestamp=1795982837;",
    "SELECT COUNT(*) FROM large;",
  ];
  expect(slowLog.parse("# Time: 2026-11-29T20:11:00.123456Z")).toEqual({
    time: new Date("2026-11-29T20:11:00.123Z"),
    level: "info",
    message: "slow statement",
  });
  for (const line of entry) expect(slowLog.parse(line)).toBeUndefined();
});

test("the first segment is opened after the first start, and the newest one after a later start", async () => {
  expect(await recorded(0, "")).toEqual(opens(1));
  write(1);
  expect(await recorded(0, "files/host-slow.log")).toEqual(opens(1));
  expect(await recorded(1, segment(1))).toEqual([]);
});

test("a full segment is followed by another one, of which four remain", async () => {
  for (const number of [1, 2, 3, 4]) write(number, fullSegment);
  expect(await recorded(1, segment(4))).toEqual(opens(5));
  expect(readdirSync(join(data, "mysql"))).toEqual(["slow.log.2", "slow.log.3", "slow.log.4"]);
});

test("a segment that was removed is opened again", async () => {
  expect(await recorded(1, segment(1))).toEqual(opens(1));
});

test("a disk without space for a segment fails no observation", async () => {
  expect(await recorded(0, "", { isFull: true })).toEqual([]);
});
