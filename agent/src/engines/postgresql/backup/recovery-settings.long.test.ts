import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import type { OpenedLog } from "@holdfast/common/backup/log-object.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { BackupFacet, LogFacet, LogPiece, ArchivedLogReader, RecoveryPlan } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { createPostgresqlDriver } from "../driver.ts";
import { dataDirectory } from "../layout.ts";
import { withSession } from "../session.ts";

const password = "a-password-of-the-test";
const users = [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier(password) })];
const hasImage = hasEngine("postgresql", "17");

describe.skipIf(!hasImage)(
  `recovery across changed settings${hasImage ? "" : " (skipped: there is no node image)"}`,
  () => {
    let source: EngineMachine;
    let copy: EngineMachine;
    let log: LogFacet;
    const pieces: LogPiece[] = [];
    /** Number of engines that recoveries of the copy started. */
    let starts = 0;
    let base: Awaited<ReturnType<typeof take>>;
    let mask: number | undefined;

    beforeAll(async () => {
      // This process writes segments that the engine's user changes.
      mask = process.umask(0);
      const counted =
        ({ pipe }: EngineDeps): EngineDeps["pipe"] =>
        (argv, options) => {
          if (argv[0]?.endsWith("/postgres")) starts += 1;
          return pipe(argv, options);
        };
      const createMachine = () =>
        createEngineMachine(
          async (deps) => createPostgresqlDriver({ ...deps, pipe: counted(deps) }),
          "postgresql",
          "17",
          { users, allowedCidrs: ["127.0.0.0/8"] },
        );
      [source, copy] = await Promise.all([createMachine(), createMachine()]);
      log = facetOf(source).log as LogFacet;
      await source.bringUp();
      await copy.writeConfig();
    });
    afterAll(async () => {
      if (mask !== undefined) process.umask(mask);
      await Promise.all([source?.remove(), copy?.remove()]);
    });
    beforeEach(() => onTestFailed(() => console.log(source.output(), copy.output())));

    function facetOf({ driver }: EngineMachine): BackupFacet {
      if (driver.backup === undefined) throw new Error("the driver has no backups");
      return driver.backup;
    }

    async function sql(machine: EngineMachine, text: string): Promise<Record<string, unknown>[]> {
      const client = await connectPostgresql(machine, { user: "app_user", password });
      try {
        return (await client.query<Record<string, unknown>>(text)).rows;
      } finally {
        await client.end();
      }
    }

    /** Log of the source up to now. */
    async function follow(): Promise<void> {
      const last = pieces.at(-1);
      const { end } = await log.retention(source.instance, source.signal);
      const over = new AbortController();
      const from = last && { branch: last.branch, position: last.to };
      for await (const piece of log.follow(source.instance, from, over.signal).pieces) {
        pieces.push(piece);
        if (log.distance(end, piece.to) >= 0) break;
      }
      over.abort();
    }

    /** Restarts the engine with other parameters. */
    async function restart(parameters: Record<string, string>): Promise<void> {
      await source.stop();
      source.change({ parameters });
      await source.writeConfig();
      await source.start();
      await source.driver.ready(source.instance, source.signal);
    }

    function reader(settings: ArchivedLogReader["settings"] = async () => ({})): ArchivedLogReader {
      const opened = pieces.map(({ bytes, ...range }, index): OpenedLog => {
        return { header: { service: "s", term: 1, sequence: index + 1, ...range, time: "" }, log: bytes };
      });
      return { count: opened.length, at: async (index) => opened[index] as OpenedLog, settings };
    }

    async function take() {
      const opened = await facetOf(source).open(source.instance, source.signal);
      try {
        const [stream] = opened.streams;
        if (stream === undefined) throw new Error("there is no stream");
        return { name: stream.name, bytes: await buffer(stream.bytes), end: await opened.end() };
      } finally {
        await opened.close();
      }
    }

    async function restore(
      { name, bytes }: { name: string; bytes: Buffer },
      change: Pick<RecoveryPlan, "log" | "target">,
    ): Promise<void> {
      await copy.stop();
      const { data } = copy.instance.paths;
      for (const entry of await readdir(data)) await rm(join(data, entry), { recursive: true });
      async function* once() {
        yield bytes;
      }
      const plan = { isSameService: false, scratch: join(data, "scratch"), report: () => undefined, ...change };
      await copy.asComponent(() => facetOf(copy).restore.unpack(copy.instance, name, once(), copy.signal));
      await copy.asComponent(() => facetOf(copy).restore.finish(copy.instance, plan, copy.signal));
    }

    async function startEngine(parameters: Record<string, string> = {}): Promise<void> {
      copy.change({ parameters });
      await copy.writeConfig();
      await copy.bootstrap();
      await copy.start();
      await copy.driver.ready(copy.instance, copy.signal);
    }

    const raised: Record<string, string>[] = [
      { max_prepared_transactions: "10" },
      { max_locks_per_transaction: "128", max_prepared_transactions: "20" },
      { max_connections: "500" },
      { max_worker_processes: "80", track_commit_timestamp: "on" },
      { track_commit_timestamp: "on" },
    ];
    const all = raised.map((_, i) => ({ i }));
    const greatest = {
      max_connections: 500,
      max_locks_per_transaction: 128,
      max_prepared_transactions: 20,
      max_worker_processes: 80,
    };
    let afterAllRows: RecoveryPlan["target"];

    test("log without recorded settings is replayed to a time and to its end under raised settings", async () => {
      await sql(source, "CREATE TABLE noted (i int)");
      await follow();
      base = await take();
      for (const [i, parameters] of raised.entries()) {
        await restart(parameters);
        await sql(source, `INSERT INTO noted VALUES (${i})`);
        await follow();
      }
      const [row] = (await sql(source, "SELECT clock_timestamp() AS now")) as { now: Date }[];
      afterAllRows = { kind: "time", time: row?.now ?? new Date() };
      await sql(source, "DELETE FROM noted");
      await follow();
      starts = 0;
      await restore(base, { log: reader(), target: afterAllRows });
      expect(starts).toBeGreaterThan(1);
      await startEngine();
      expect(await sql(copy, "SELECT i FROM noted ORDER BY i")).toEqual(all);
      // The service's own settings apply again.
      expect(await sql(copy, "SHOW max_prepared_transactions")).toEqual([{ max_prepared_transactions: "0" }]);
      await restore(base, { log: reader(), target: { kind: "log_end" } });
      await startEngine();
      expect(await sql(copy, "SELECT i FROM noted")).toEqual([]);
    });

    test("log with recorded settings is replayed by one start, with its commit timestamps", async () => {
      starts = 0;
      await restore(base, { log: reader(async () => greatest), target: afterAllRows });
      expect(starts).toBe(1);
      await startEngine({ track_commit_timestamp: "on" });
      const timed = "SELECT i FROM noted WHERE pg_xact_commit_timestamp(xmin) IS NOT NULL";
      expect(await sql(copy, timed)).toContainEqual({ i: 3 });
    });

    test("replay that needs more memory than the plan has is refused before an engine is started", async () => {
      const settings = async () => ({ ...greatest, max_connections: 10_000, max_locks_per_transaction: 100_000 });
      starts = 0;
      const restored = restore(base, { log: reader(settings), target: afterAllRows });
      await expect(restored).rejects.toThrow(/max_connections = 10000, .*more memory than this plan has/);
      expect(starts).toBe(0);
    });

    test("an engine reports the settings that its log is written under", async () => {
      expect(await log.settings(source.instance, source.signal)).toMatchObject({
        max_connections: 50,
        max_locks_per_transaction: 64,
        max_prepared_transactions: 0,
        max_wal_senders: 10,
      });
    });

    test("a prepared transaction is restored under settings that allow none", async () => {
      await restart({ max_prepared_transactions: "3" });
      await sql(source, "BEGIN; INSERT INTO noted VALUES (100); PREPARE TRANSACTION 'one'");
      await follow();
      await restore(base, { log: reader(), target: { kind: "log_end" } });
      const { max_prepared_transactions: needed } =
        (await copy.driver.replication?.requiredParameters?.(copy.instance, copy.signal)) ?? {};
      expect(needed).toBe(1);
      await startEngine({ max_prepared_transactions: String(needed) });
      await sql(copy, "COMMIT PREPARED 'one'");
      expect(await sql(copy, "SELECT i FROM noted")).toEqual([{ i: 100 }]);
      await sql(source, "ROLLBACK PREPARED 'one'");
    });

    test("a transaction prepared in the segment in which the next timeline begins is there again", async () => {
      await restart({ max_prepared_transactions: "3" });
      await sql(source, "CREATE TABLE IF NOT EXISTS noted (i int); TRUNCATE noted");
      await follow();
      base = await take();
      await sql(source, "BEGIN; INSERT INTO noted VALUES (200); PREPARE TRANSACTION 'two'");
      // The same segment has the checkpoint of a shutdown, whose replay reads the prepared transactions.
      await source.stop();
      await writeFile(join(dataDirectory(source.instance), "standby.signal"), "");
      await source.start();
      const promote = () =>
        withSession(source.instance, source.signal, (session) => session.rows("SELECT pg_promote()")).catch(
          () => undefined,
        );
      await waitUntil("the engine is promoted", promote);
      await sql(source, "INSERT INTO noted VALUES (201)");
      await follow();
      expect(new Set(pieces.slice(-2).map(({ branch }) => branch)).size).toBe(2);
      await restore(base, { log: reader(), target: { kind: "log_end" } });
      await startEngine({ max_prepared_transactions: "3" });
      await sql(copy, "COMMIT PREPARED 'two'");
      expect(await sql(copy, "SELECT i FROM noted ORDER BY i")).toEqual([{ i: 200 }, { i: 201 }]);
    });
  },
);
