import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import type { LogHeader } from "@holdfast/common/backup/log-object.ts";
import {
  type BackupFacet,
  type LogFacet,
  type LogPiece,
  type LogPosition,
  LogRemoved,
  type RecoveryEnd,
  type RecoveryTarget,
  type SourceEnd,
  TargetNotReached,
} from "@holdfast/agent/engines/backup-facet.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMysqlDriver } from "../driver.ts";
import { withSession } from "../session.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

interface Stored {
  readonly header: LogHeader;
  readonly log: Buffer;
}

describe.skipIf(skip !== undefined)("the log of MySQL", () => {
  let source: EngineMachine;
  const objects: Stored[] = [];
  let dump: ReadonlyMap<string, Buffer>;
  let end: SourceEnd;
  const times = new Map<string, Date>();

  beforeAll(async () => {
    source = await machineOf("of the source");
    await source.bringUp();
    await archive();
    await query(source, "CREATE TABLE entries (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(100))");
    await query(source, "CREATE TABLE loose (a INT)");
    await query(source, "CREATE TABLE volatile_rows (a INT) ENGINE = MEMORY");
    await query(source, "INSERT INTO volatile_rows VALUES (1)");
    await query(source, "INSERT INTO entries (text) VALUES ('before')");
    await query(source, "CREATE EVENT early ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01' DO DELETE FROM loose");
    ({ dump, end } = await take(source));
    await query(source, "INSERT INTO entries (text) VALUES ('after')");
    await query(source, "INSERT INTO loose VALUES (1), (1), (2)");
    await query(source, "UPDATE volatile_rows SET a = 2");
    await query(source, "CREATE USER late@'%' IDENTIFIED BY 'of the source' REQUIRE SSL");
    await query(source, "GRANT SELECT ON defaultdb.* TO late@'%'");
    await query(source, "CREATE VIEW v AS SELECT COUNT(*) AS n FROM entries");
    await query(source, "CREATE EVENT later ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01' DO DELETE FROM loose");
    await archive();
    await mark("rows");
    await query(source, "DELETE FROM entries");
    await query(source, "ALTER TABLE loose ADD COLUMN b INT DEFAULT 5");
    await mark("deleted");
    await withSession(source.instance, source.signal, (session) => session.rows("FLUSH BINARY LOGS"));
    await query(source, "INSERT INTO entries (text) VALUES ('rotated')");
    await mark("rotated");
    await source.stop("SIGKILL");
    await source.start();
    await source.driver.ready(source.instance, source.signal);
    await query(source, "INSERT INTO entries (text) VALUES ('killed')");
    await mark("killed");
    await query(source, "INSERT INTO entries (text) VALUES ('last')");
    await archive();
  });
  afterAll(() => source?.remove());

  function machineOf(password: string): Promise<EngineMachine> {
    const user = create(EngineUserSchema, { username: "app_user", role: "admin", verifier: mysqlVerifier(password) });
    return createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", { users: [user], term: 1n });
  }

  function facetOf({ driver }: EngineMachine): BackupFacet & { readonly log: LogFacet } {
    const { backup } = driver;
    if (backup?.log === undefined) throw new Error("the driver archives no log");
    return { ...backup, log: backup.log };
  }

  async function query<Row extends object>(
    machine: EngineMachine,
    sql: string,
    password = "of the source",
    user = "app_user",
  ): Promise<Row[]> {
    const client = await connectMysql(machine, { user, password });
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }

  /** Records the current time: commits have microseconds, targets milliseconds. */
  async function mark(name: string): Promise<void> {
    times.set(name, new Date(await reserveMillisecond()));
  }

  const positionOf = (): LogPosition | undefined => {
    const last = objects.at(-1)?.header;
    return last && { branch: last.branch, position: last.to };
  };

  /** Stores the log up to a heartbeat, in objects of a branch each, and the state as the archive does. */
  async function archive(): Promise<void> {
    const { log } = facetOf(source);
    const halt = new AbortController();
    const stream = log.follow(source.instance, positionOf(), halt.signal);
    const { time, position } = await log.commit(source.instance, source.signal);
    const pieces: LogPiece[] = [];
    for await (const piece of stream.pieces) {
      pieces.push(piece);
      if (log.distance(position, piece.to) >= 0) break;
    }
    halt.abort();
    for (const { branch, to, bytes } of pieces) {
      const from = objects.at(-1)?.header.to ?? pieces[0]?.from ?? "";
      const isBehind = log.distance(position, to) >= 0;
      const header = { service: "service", term: 1, sequence: objects.length + 1, branch, from, to };
      // Objects end anywhere, also within a transaction.
      objects.push({ header: { ...header, time: isBehind ? time.toISOString() : "" }, log: bytes });
    }
    await log.saveArchiveState(source.instance, position, JSON.stringify({ n: objects.length }), source.signal);
  }

  async function take(machine: EngineMachine) {
    const opened = await facetOf(machine).open(machine.instance, machine.signal);
    try {
      const read = opened.streams.map(async ({ name, bytes }) => [name, await buffer(bytes)] as const);
      return { dump: new Map(await Promise.all(read)), end: await opened.end() };
    } finally {
      await opened.close();
    }
  }

  async function restore(
    target: RecoveryTarget,
    { stored = objects, isSameService = false }: { stored?: readonly Stored[]; isSameService?: boolean } = {},
  ): Promise<{ copy: EngineMachine; end: RecoveryEnd; findings: readonly string[] }> {
    const copy = await machineOf("of the copy");
    try {
      await copy.writeConfig();
      const facet = facetOf(copy);
      const scratch = join(copy.instance.paths.data, "scratch");
      const log = {
        count: stored.length,
        at: async (index: number) => stored[index] as Stored,
        settings: async () => ({}),
      };
      const result = await copy.asComponent(async () => {
        for (const [stream, bytes] of dump)
          await facet.restore.unpack(copy.instance, stream, chunks(bytes), copy.signal);
        const plan = { target, isSameService, log, scratch, report: () => undefined } as const;
        const reached = await facet.restore.finish(copy.instance, plan, copy.signal);
        const findings = await facet.examine(copy.instance, { target, scratch }, copy.signal);
        return { end: reached, findings: findings.map(({ name, passed }) => `${name} ${passed}`) };
      });
      await copy.start();
      await copy.driver.ready(copy.instance, copy.signal).catch((error: unknown) => {
        throw new Error(copy.output(), { cause: error });
      });
      return { copy, ...result };
    } catch (error) {
      await copy.remove();
      throw error;
    }
  }

  const at = (name: string): RecoveryTarget => ({ kind: "time", time: times.get(name) ?? new Date(0) });
  const textsIn = async (copy: EngineMachine) =>
    (await query<{ text: string }>(copy, "SELECT text FROM entries ORDER BY id", "of the copy")).map(
      ({ text }) => text,
    );

  it("restores the second before rows were deleted, with later users, views and events", async () => {
    const { copy, end: reached, findings } = await restore(at("rows"));
    try {
      expect(await textsIn(copy)).toEqual(["before", "after"]);
      expect(await query(copy, "SELECT a FROM loose ORDER BY a", "of the copy")).toEqual([
        { a: 1 },
        { a: 1 },
        { a: 2 },
      ]);
      expect(await query(copy, "SELECT n FROM v", "of the copy")).toEqual([{ n: 2 }]);
      expect(reached.lockedUsers).toEqual(["late"]);
      expect(reached.warnings?.join()).toMatch(/defaultdb\.early.*defaultdb\.later/);
      const events = "SELECT event_name AS name, status FROM information_schema.events ORDER BY 1";
      expect(await query(copy, events, "of the copy")).toMatchObject([
        { name: "early", STATUS: "DISABLED" },
        { name: "later", STATUS: "DISABLED" },
      ]);
      expect(findings).toEqual(["structure true", "heartbeat true"]);
      await expect(query(copy, "SELECT 1", "of the source", "late")).rejects.toThrow();
    } finally {
      await copy.remove();
    }
  });

  it.each([
    ["deleted", []],
    ["rotated", ["rotated"]],
    ["killed", ["rotated", "killed"]],
  ])("restores the moment at which the rows were %s", async (name, texts) => {
    const { copy } = await restore(at(name));
    try {
      expect(await textsIn(copy)).toEqual(texts);
      expect((await query(copy, "SELECT * FROM loose", "of the copy"))[0]).toHaveProperty("b");
      // Neither the table nor the dictionary assigns an id again.
      await query(copy, "INSERT INTO entries (text) VALUES ('of the copy')", "of the copy");
      expect(await textsIn(copy)).toEqual([...texts, "of the copy"]);
      await query(copy, "CREATE VIEW of_the_copy AS SELECT text FROM entries", "of the copy");
    } finally {
      await copy.remove();
    }
  });

  it("restores the end of the log for the same service, whose events run", async () => {
    const { copy, end: reached } = await restore({ kind: "log_end" }, { isSameService: true });
    try {
      expect(await textsIn(copy)).toEqual(["rotated", "killed", "last"]);
      expect(reached.lockedUsers).toEqual([]);
      expect(
        await query(copy, "SELECT event_name AS name, status, definer FROM information_schema.events", "of the copy"),
      ).toEqual(["early", "later"].map((name) => ({ name, STATUS: "ENABLED", DEFINER: "app_user@%" })));
      expect(await query(copy, "SELECT @@GLOBAL.gtid_executed AS gtids", "of the copy")).not.toContain(",");
      expect(await query(copy, "SELECT 1 AS one", "of the source", "late")).toEqual([{ one: 1 }]);
    } finally {
      await copy.remove();
    }
  });

  it("refuses a target after the log, and log that does not begin with the backup", async () => {
    const target = { kind: "time", time: new Date(Date.now() + 60_000) } as const;
    await expect(restore(target)).rejects.toThrow(TargetNotReached);
    const positions = end.positions ?? { from: "", consistent: "" };
    const { distance } = facetOf(source).log;
    const later = objects.filter(({ header }) => distance(positions.consistent, header.from) > 0);
    expect(later.length).toBeGreaterThan(0);
    await expect(restore(at("killed"), { stored: later })).rejects.toThrow(TargetNotReached);
  });

  it("retains files that are not archived on a full disk, and reports a removed one as a gap", async () => {
    const session = <T extends object>(sql: string) =>
      withSession(source.instance, source.signal, (opened) => opened.rows<T>(sql));
    const names = async () =>
      (await session<{ Log_name: string }>("SHOW BINARY LOGS")).map(({ Log_name: name }) => name);
    const space = { totalBytes: 100, writableBytes: 1 };
    for (let rotated = 0; rotated < 2; rotated += 1) await session("FLUSH BINARY LOGS");
    const before = await names();
    const reclaim = (machine: EngineMachine) => {
      // Each driver pauses between two attempts.
      const driver = createMysqlDriver({
        run: machine.run,
        runAsEngine: machine.run,
        pipe: unused,
        randomBytes: unused,
      });
      return driver.reclaimSpace?.(machine.instance, space, machine.signal);
    };
    await reclaim(source);
    const archived = positionOf()?.branch.split(":")[1] ?? "";
    expect((await names())[0]).toBe(`binlog.${archived.padStart(6, "0")}`);
    expect((await names()).length).toBeGreaterThan(2);
    const [behind] = objects;
    const position = behind && { branch: behind.header.branch, position: behind.header.to };
    const stream = facetOf(source).log.follow(source.instance, position, source.signal);
    await expect(Array.fromAsync(stream.pieces)).rejects.toThrow(LogRemoved);
    await archive();
    await waitUntil("the archived files are removed", async () => {
      await reclaim(source);
      return (await names()).length < before.length;
    });
    expect(await names()).toEqual(before.slice(-1));
  });
});

const unused = (): never => {
  throw new Error("not used");
};

async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  const size = 64 << 10;
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
