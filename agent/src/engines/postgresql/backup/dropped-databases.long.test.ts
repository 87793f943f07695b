import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { BackupFacet, Finding, LogPiece, ArchivedLogReader, RecoveryPlan } from "../../backup-facet.ts";
import { listDatabases } from "../database-list.ts";
import { createPostgresqlDriver } from "../driver.ts";
import { platform } from "../layout.ts";
import { type OpenSession, openSession, withSession } from "../session.ts";

/** Small objects, so that the search has many steps. */
const objectBytes = 16 << 10;
const beat = `UPDATE ${platform}.heartbeat SET at = clock_timestamp()`;
const newest = `SELECT at AS time, pg_current_wal_insert_lsn()::text AS position FROM ${platform}.heartbeat`;
const limitOf = 'SELECT datconnlimit AS "limit" FROM pg_database WHERE datname = $1';

describe.each(["17", "18"])("point-in-time restores of PostgreSQL %s around DROP DATABASE", (version) => {
  describe.skipIf(!hasEngine("postgresql", version))("by the target's time", () => {
    let source: EngineMachine;
    let copy: EngineMachine;
    let base: Buffer;
    let log: ArchivedLogReader;
    /** Recorded times by name. */
    const moments = new Map<string, number>();
    /** Session that remains open: the lock that pauses a drop would block the start of a new session too. */
    let session: OpenSession;
    const pieces: LogPiece[] = [];
    const commits: { readonly time: Date; readonly position: string }[] = [];
    const following = new AbortController();

    const machine = () =>
      createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
        users: [
          {
            $typeName: "holdfast.agent.v1.EngineUser",
            username: defaultUser,
            role: "admin",
            verifier: scramVerifier("p"),
          },
        ],
        parameters: { max_prepared_transactions: "4" },
      });
    const facetOf = ({ driver }: EngineMachine): BackupFacet => {
      if (driver.backup === undefined) throw new Error("the driver has no backups");
      return driver.backup;
    };
    const logOf = (of: EngineMachine) => {
      const facet = facetOf(of).log;
      if (facet === undefined) throw new Error("the driver has no log");
      return facet;
    };
    const sql = (of: EngineMachine, statement: string, database: string = platform) =>
      withSession(of.instance, of.signal, (opened) => opened.rows(statement), { database });

    /** Records the current time, in a millisecond without other events. */
    async function note(name: string): Promise<void> {
      moments.set(name, await reserveMillisecond());
    }

    async function commit(): Promise<void> {
      await session.rows(beat);
      const [row] = await session.rows<{ time: Date; position: string }>(newest);
      if (row !== undefined) commits.push(row);
    }

    /** A drop that is paused after it marked the database invalid and before it removes files. */
    async function pausedDrop(name: string, during: () => Promise<void>, isCanceled = false): Promise<void> {
      const [holder, dropper] = await Promise.all(
        [1, 2].map(() => openSession(source.instance, { statementMs: 60_000, lockMs: 60_000 }, source.signal)),
      );
      if (holder === undefined || dropper === undefined) throw new Error("there are two sessions");
      try {
        const [own] = await dropper.rows<{ pid: number }>("SELECT pg_backend_pid() AS pid");
        await holder.rows("BEGIN; LOCK TABLE pg_tablespace IN ACCESS EXCLUSIVE MODE");
        const dropping = dropper.rows(`DROP DATABASE ${name}`).then(
          () => undefined,
          (error: unknown) => error,
        );
        await waitUntil(
          `the drop of ${name} has begun`,
          async () => (await session.rows<{ limit: number }>(limitOf, [name]))[0]?.limit === -2,
        );
        await during();
        if (isCanceled) {
          await session.rows("SELECT pg_cancel_backend($1)", [own?.pid]);
          expect(await dropping).toMatchObject({ code: "57014" });
        }
        await holder.rows("ROLLBACK");
        if (!isCanceled) expect(await dropping).toBeUndefined();
      } finally {
        for (const each of [holder, dropper]) each.close();
      }
    }

    beforeAll(async () => {
      source = await machine();
      copy = await machine();
      await source.bringUp();
      await copy.writeConfig();
      session = await openSession(source.instance, {}, AbortSignal.timeout(300_000));
      await commit();
      await session.rows(limitOf, [platform]);
      const stream = logOf(source).follow(source.instance, undefined, following.signal);
      const taking = (async () => {
        for await (const piece of stream.pieces) pieces.push(piece);
      })().catch(() => undefined);
      for (const name of ["halfway", "closed", "whole", "paused", "beaten"]) {
        await sql(source, `CREATE DATABASE ${name} OWNER ${defaultUser}`);
        await sql(source, "CREATE TABLE public.rows AS SELECT * FROM generate_series(1, 1000) AS i", name);
      }
      const nowhere = "host=127.0.0.1 port=1 user=u password=p dbname=d";
      await sql(
        source,
        `CREATE SUBSCRIPTION feed CONNECTION '${nowhere}' PUBLICATION p WITH (connect = false, slot_name = 'feed')`,
        "closed",
      );
      await sql(source, "ALTER DATABASE closed ALLOW_CONNECTIONS false");
      await pausedDrop("halfway", async () => undefined, true);
      const opened = await facetOf(source).open(source.instance, source.signal);
      const [tar] = await Promise.all(opened.streams.map(({ bytes }) => buffer(bytes)));
      await opened.end();
      await opened.close();
      base = tar ?? Buffer.alloc(0);
      await note("right behind the base");
      await commit();
      // No transaction commits between the insert and the end of the drop.
      await sql(source, "INSERT INTO public.rows VALUES (1001)", "whole");
      await sql(source, "BEGIN; CREATE TABLE public.prepared (); PREPARE TRANSACTION 'before'");
      await note("just before a drop");
      await sql(source, "BEGIN; CREATE TABLE public.other (); PREPARE TRANSACTION 'after'");
      await sql(source, "DROP DATABASE whole");
      await note("just behind a drop");
      await commit();
      await sql(source, "INSERT INTO public.rows VALUES (1001)", "paused");
      await pausedDrop("paused", () => note("in a drop"));
      await commit();
      await pausedDrop("beaten", async () => {
        await commit();
        await note("in a drop, behind another commit");
      });
      await note("at the end");
      await commit();
      const until = commits.at(-1)?.position ?? "";
      await waitUntil("the log was received", () => logOf(source).distance(until, pieces.at(-1)?.to ?? "0/0") >= 0);
      following.abort();
      await taking;
      log = readerOf(pieces);
    }, 120_000);
    afterAll(async () => {
      following.abort();
      session?.close();
      await Promise.all([source?.remove(), copy?.remove()]);
    });

    /** Objects of an archive: cut anywhere, each with the time of the last heartbeat before its end. */
    function readerOf(of: readonly LogPiece[]): ArchivedLogReader {
      const bytes = Buffer.concat(of.map((piece) => piece.bytes));
      const { from = "0/0", branch = "1" } = of[0] ?? {};
      const at = (offset: number) => {
        const [high = "0", low = "0"] = from.split("/");
        const position = (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`) + BigInt(offset);
        return `${(position >> 32n).toString(16)}/${(position & 0xffff_ffffn).toString(16)}`.toUpperCase();
      };
      const count = Math.ceil(bytes.length / objectBytes);
      return {
        count,
        settings: async () => ({}),
        async at(index) {
          const object = bytes.subarray(index * objectBytes, (index + 1) * objectBytes);
          const to = at(index * objectBytes + object.length);
          const last = commits.findLast(({ position }) => logOf(source).distance(position, to) >= 0);
          const time = last?.time.toISOString() ?? "";
          const header = {
            service: "s",
            term: 1,
            sequence: index + 1,
            branch,
            from: at(index * objectBytes),
            to,
            time,
          };
          return { header, log: object };
        },
      };
    }

    /** Restores to the recorded time and starts the copy. */
    async function restored(moment: string): Promise<{ readonly findings: readonly Finding[] }> {
      const { data } = copy.instance.paths;
      await copy.stop();
      for (const entry of await readdir(data)) await rm(join(data, entry), { recursive: true });
      const time = new Date(moments.get(moment) ?? Number.NaN);
      const plan: RecoveryPlan = {
        target: { kind: "time", time },
        isSameService: false,
        log,
        scratch: join(data, "scratch"),
        report: () => undefined,
      };
      const { instance, signal } = copy;
      // The engine's user writes into segments that this process owns.
      const mask = process.umask(0);
      const work = copy.asComponent(async () => {
        await facetOf(copy).restore.unpack(instance, "base.tar", chunks(base), signal);
        const end = await facetOf(copy).restore.finish(instance, plan, signal);
        // The time is absent if no transaction ended since the start of the base backup.
        expect(end.reachedTime?.getTime() ?? 0).toBeLessThanOrEqual(time.getTime());
        expect(end.warnings).toEqual([expect.stringMatching(/^Databases? .*\bhalfway\b.* invalid/)]);
        return facetOf(copy).examine(instance, { target: plan.target, scratch: plan.scratch }, signal);
      });
      const findings = await work.finally(() => process.umask(mask));
      await copy.bootstrap();
      await copy.start();
      await copy.driver.ready(instance, signal);
      return { findings };
    }

    const listed = () => withSession(copy.instance, copy.signal, listDatabases);
    const count = async (database: string) => (await sql(copy, "SELECT count(*)::int FROM public.rows", database))[0];
    const prepared = async () =>
      (await sql(copy, "SELECT gid FROM pg_prepared_xacts ORDER BY gid")).map(({ gid }) => gid);

    it("restore a database from just before its drop, with prepared transactions", async () => {
      const { findings } = await restored("just before a drop");
      expect(await listed()).toMatchObject({ closed: ["closed"], invalid: ["halfway"] });
      expect(await count("whole")).toEqual({ count: 1_001 });
      expect(await prepared()).toEqual(["before"]);
      expect(findings.filter(({ name, passed }) => name !== "heartbeat" && !passed)).toEqual([]);
      expect(findings.find(({ name }) => name === "databases")?.detail).toContain("Database halfway is invalid");
      expect(findings.find(({ name }) => name === "structure")?.detail).toContain("Database closed was not read");
      const checks = (await copy.driver.observe(copy.instance, copy.signal)).checks;
      expect(checks.find(({ name }) => name === "databases")).toMatchObject({
        status: "degraded",
        reason: expect.stringContaining("Database halfway is invalid") as string,
      });
      // A database that accepts connections again must not connect to other servers.
      await sql(copy, "ALTER DATABASE closed ALLOW_CONNECTIONS true");
      expect(await sql(copy, "SELECT subenabled, subslotname FROM pg_subscription", "closed")).toEqual([
        { subenabled: false, subslotname: null },
      ]);
      await copy.driver.databases?.drop(copy.instance, "halfway", copy.signal);
      expect(await listed()).toMatchObject({ invalid: [] });
    }, 60_000);

    it("reach a target right after the base backup, without any later transaction", async () => {
      await restored("right behind the base");
      expect(await count("whole")).toEqual({ count: 1_000 });
    }, 60_000);

    it("do not restore a database that was dropped just before the target", async () => {
      await restored("just behind a drop");
      expect((await listed()).ready).not.toContain("whole");
      expect(await count("paused")).toEqual({ count: 1_000 });
      expect(await prepared()).toEqual(["after", "before"]);
    }, 60_000);

    it("restore a database whose drop was not committed by the target", async () => {
      await restored("in a drop");
      expect(await count("paused")).toEqual({ count: 1_001 });
    }, 60_000);

    it("restore everything else if a drop began before the last commit", async () => {
      await restored("in a drop, behind another commit");
      expect(await listed()).toMatchObject({ closed: ["closed"], invalid: ["beaten", "halfway"] });
      await restored("at the end");
      expect(await listed()).toMatchObject({ closed: ["closed"], invalid: ["halfway"] });
    }, 60_000);
  });
});

async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 1 << 20) yield bytes.subarray(at, at + (1 << 20));
}
