import { execFile, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { type BackupObservation, RestoreSourceSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { Lane, TaskClass, type TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/store.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const run = promisify(execFile);
const reader = join(import.meta.dirname, "../../docs/reference/backup-format/read_increment.py");
const python =
  spawnSync("python3", ["-c", "import cryptography"]).status === 0 && spawnSync("zstd", ["-V"]).status === 0;

/** True for `npm run faults -- --backups`. */
const isFull = process.env["HOLDFAST_TEST_BACKUPS"] === "all";
const password = "a-password-of-the-test";
const newPassword = "another-password";
const user = (secret: string) => ({ username: "app_user", role: "admin", verifier: scramVerifier(secret) });

interface Taken {
  readonly backupId: string;
  readonly attempt: number;
  readonly key: { readonly id: string; readonly secret: string };
  readonly manifestSha256: string;
  readonly observation: BackupObservation;
}

for (const version of isFull ? ["17", "18"] : ["17"]) {
  const skipped = whyNoAgentMachine("postgresql", version);
  describe.skipIf(skipped !== undefined)(
    `increments of an agent's machine with PostgreSQL ${version}${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
    () => {
      const programs = `/usr/lib/postgresql/${version}/bin`;
      let store: TestStore;
      let source: AgentMachine;
      let target: AgentMachine;

      beforeAll(async () => {
        store = await startTestStore();
        const machine = (spec: object) => startAgentMachine({ engine: "postgresql", version, spec });
        source = await machine({ users: [user(password)], databases: ["defaultdb"] });
        target = await machine({ serviceId: "s-2", users: [user(newPassword)], databases: ["defaultdb"] });
        for (const each of [source, target]) each.controller.signer = store.signer;
        expect((await source.converge()).failure).toBeUndefined();
      });
      afterAll(async () => {
        await Promise.all([source?.remove(), target?.remove()]);
        await store?.remove();
      });
      beforeEach(() => onTestFailed(() => console.log(source.log(), target.log())));

      async function sql(text: string, database = "defaultdb"): Promise<Record<string, unknown>[]> {
        const client = await connectPostgresql(source.endpoint, { user: "app_user", password, database });
        try {
          return (await client.query(text)).rows as Record<string, unknown>[];
        } finally {
          await client.end();
        }
      }

      async function restored(text: string): Promise<Record<string, unknown>[]> {
        const client = await connectPostgresql(target.endpoint, { user: "app_user", password: newPassword });
        try {
          return (await client.query(text)).rows as Record<string, unknown>[];
        } finally {
          await client.end();
        }
      }

      /** Runs a program of the engine within the namespaces of its machine. */
      async function within(machine: AgentMachine, ...argv: string[]): Promise<string> {
        const enter = ["--target", String(machine.keeperPid()), "--mount", "--pid", "--"];
        const { stdout, stderr } = await run("nsenter", [...enter, ...argv], { maxBuffer: 16 << 20 });
        return stdout + stderr;
      }

      function pgbench(...options: string[]): Promise<string> {
        const { port } = source.endpoint.instance.spec;
        const environment = ["/usr/bin/env", `PGPASSWORD=${password}`, "PGSSLMODE=require"];
        const where = ["-h", "127.0.0.1", "-p", String(port), "-U", "app_user"];
        return within(source, ...environment, `${programs}/pgbench`, ...where, ...options, "defaultdb");
      }

      function start(backupId: string, base?: Taken, attempt = 1, key = keyOf(backupId)): Promise<TaskResult> {
        const kind = base === undefined ? "full" : "incremental";
        const value = { backupId, attempt, kind, key, pageMap: true, ...(base && { base: sourceOf(base) }) };
        const input = { case: "startBackup" as const, value };
        return source.controller.perform({ ...source.header, lane: Lane.CONTROL, class: TaskClass.QUICK, input });
      }

      const keyOf = (id: string) => ({ id: `key-of-${id}`, secret: randomBytes(32).toString("base64") });
      const seen = () => source.controller.observations.at(-1)?.backup;

      async function backup(backupId: string, base?: Taken, attempt = 1): Promise<Taken> {
        const key = keyOf(backupId);
        expect((await start(backupId, base, attempt, key)).failure).toBeUndefined();
        const isFinished = () =>
          seen()?.backupId === backupId && seen()?.attempt === attempt && seen()?.state !== "running";
        await waitUntil(`backup ${backupId} is over`, isFinished, { describe: source.log });
        const observation = seen() as BackupObservation;
        expect(observation).toMatchObject({ state: "stored", error: "", hasPageMap: true });
        return { backupId, attempt, key, manifestSha256: observation.manifestSha256, observation };
      }

      function sourceOf({ backupId, attempt, key, manifestSha256 }: Taken) {
        return { backupId, attempt, key, manifestSha256 };
      }

      function restoreOf(restoreId: string, chain: readonly Taken[]) {
        const [newest, ...earlier] = chain.toReversed().map(sourceOf);
        if (newest === undefined) throw new Error("a restore is of a backup");
        return create(RestoreSourceSchema, {
          restoreId,
          serviceId: "s-1",
          backup: newest,
          earlier: earlier.toReversed(),
          target: { target: { case: "backupEnd", value: true } },
          examine: true,
        });
      }

      /** Invariant of pgbench's load at any time: the sums are equal. */
      const balance = `SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)
      AND (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history) AS balanced`;
      const digest = "SELECT count(*)::int AS count, md5(string_agg(t::text, ',' ORDER BY id)) AS sum FROM";
      let chain: Taken[];

      test("a full backup and two increments under load restore the state of the last one", async () => {
        await pgbench("-i", "-q", "-s", "2");
        await sql("CREATE TABLE grows AS SELECT id, md5(id::text) AS v FROM generate_series(1, 20000) AS id");
        await sql("CREATE TABLE shrinks AS SELECT id, md5(id::text) AS v FROM generate_series(1, 20000) AS id");
        await sql("CREATE TABLE emptied AS SELECT id FROM generate_series(1, 20000) AS id");
        await sql("CREATE TABLE dropped AS SELECT id FROM generate_series(1, 20000) AS id");
        await sql("CREATE TABLE turned AS SELECT id FROM generate_series(1, 20000) AS id");
        await sql("CREATE UNLOGGED TABLE lost AS SELECT id FROM generate_series(1, 20000) AS id");
        await sql("CREATE DATABASE gone");
        await sql("CREATE TABLE here AS SELECT generate_series(1, 100) AS id", "gone");
        const full = await backup("b-full");

        await pgbench("-n", "-c", "2", "-t", "300");
        await sql("INSERT INTO grows SELECT id, md5(id::text) FROM generate_series(20001, 60000) AS id");
        await sql("DELETE FROM shrinks WHERE id > 5000");
        await sql("VACUUM (TRUNCATE) shrinks");
        await sql("TRUNCATE emptied");
        await sql("DROP TABLE dropped");
        await sql("ALTER TABLE turned SET UNLOGGED");
        await sql("DROP DATABASE gone");
        const first = await backup("b-first", full);
        expect(first.observation.storedBytes).toBeLessThan(full.observation.storedBytes);

        await sql("CREATE TABLE made AS SELECT id, md5(id::text) AS v FROM generate_series(1, 30000) AS id");
        await sql("CREATE DATABASE another");
        await sql("CREATE TABLE there AS SELECT generate_series(1, 100) AS id", "another");
        const load = pgbench("-n", "-c", "2", "-t", "1000");
        const second = await backup("b-second", first);
        await load;
        chain = [full, first, second];

        const source = restoreOf("r-1", chain);
        expect((await target.converge({ source })).failure).toBeUndefined();
        for (const table of ["grows", "shrinks", "made"])
          expect(await restored(`${digest} ${table} t`), table).toEqual(await sql(`${digest} ${table} t`));
        expect(await restored(balance)).toEqual([{ balanced: true }]);
        expect(await restored("SELECT count(*)::int AS count FROM pgbench_history")).not.toEqual([{ count: 0 }]);
        for (const table of ["emptied", "turned", "lost"])
          expect(await restored(`SELECT count(*)::int AS count FROM ${table}`), table).toEqual([{ count: 0 }]);
        expect(await restored("SELECT to_regclass('dropped') AS dropped")).toEqual([{ dropped: null }]);
        const databases = "SELECT datname FROM pg_database WHERE datname IN ('gone', 'another')";
        expect(await restored(databases)).toEqual([{ datname: "another" }]);
        const findings = target.controller.observations.at(-1)?.restore?.findings ?? [];
        expect(findings).toMatchObject([{ name: "structure", passed: true }]);
        expect((await target.converge({ source, running: false })).failure).toBeUndefined();
        const checksums = [`${programs}/pg_checksums`, "--check", "-D"];
        const judged = await within(target, ...checksums, join(target.directory, "data/postgresql"));
        expect(judged).toMatch(/Bad checksums:\s+0\n/);
        expect(Number(/Blocks scanned:\s+(\d+)/.exec(judged)?.[1])).toBeGreaterThan(5_000);
      });

      test("a restore killed between increments starts again", async () => {
        const restoring = restoreOf("r-killed", chain);
        // The backup's task gets no result once the machine is killed.
        void target.converge({ source: restoring }).catch(() => undefined);
        const observation = () => target.controller.observations.at(-1)?.restore;
        await waitUntil("it is at the increments", () => {
          const now = observation();
          return now?.restoreId === "r-killed" && now.restoredBytes >= (chain[0]?.observation.sourceBytes ?? 0n);
        });
        const { observations } = target.controller;
        await target.restart();
        observations.splice(0);
        const isBack = () => observations.at(-1)?.state === "running" && observation()?.restoreId === "r-killed";
        await waitUntil("it runs over the data", isBack, { withinMs: 120_000, describe: target.log });
        expect(await restored(`${digest} grows t`)).toEqual(await sql(`${digest} grows t`));
        expect(await restored(balance)).toEqual([{ balanced: true }]);
      });

      test("a chain with a missing, reordered or different backup is refused", async () => {
        const [full, first, second] = chain as [Taken, Taken, Taken];
        const unrelated = { ...first, manifestSha256: "0".repeat(64) };
        for (const [id, wrong] of Object.entries({
          first: [full, second],
          full: [first, second],
          alone: [second],
          order: [first, full, second],
          unrelated: [full, unrelated, second],
        })) {
          const { failure } = await target.converge({ source: restoreOf(`r-${id}`, wrong) });
          expect(failure?.message, id).toMatch(/is (not )?based on|differs from the one that was written/);
          expect(target.controller.observations.at(-1)?.restore?.errorCode, id).toBe("damaged");
        }
      });

      test("a killed increment leaves nothing on disk, and a second attempt succeeds", async () => {
        const [, , second] = chain;
        await store.stop();
        expect((await start("b-third", second)).failure).toBeUndefined();
        await waitUntil("it waits for the store", () => source.pidsOf("/node").length > 1);
        await source.restart();
        source.controller.observations.splice(0);
        await store.start();
        await waitUntil("it was interrupted", () => seen()?.errorCode === "interrupted", { describe: source.log });
        await waitUntil("the engine runs", () => source.controller.observations.at(-1)?.state === "running");
        await backup("b-third", second, 2);
        expect(await source.asEngine(["ls", join(source.directory, "data")])).not.toContain("backup.pages");
      });

      test.runIf(isFull)("a fifth of the pages at random is at most 0.35 of the bytes", async () => {
        await sql("CREATE TABLE pages (id int, v int, filler text) WITH (fillfactor = 85, autovacuum_enabled = off)");
        const filler = "(SELECT string_agg(md5(random()::text || i || id), '') FROM generate_series(1, 30) AS i)";
        await sql(`INSERT INTO pages SELECT id, 0, ${filler} FROM generate_series(1, 45000) AS id`);
        await sql("VACUUM FREEZE pages");
        const full = await backup("b-pages");
        const block = "(ctid::text::point)[0]::int";
        await sql(`UPDATE pages SET v = 1 WHERE ctid IN (
        SELECT min(ctid) FROM pages WHERE ${block} IN (
          SELECT b FROM generate_series(0, pg_relation_size('pages') / 8192 - 1) AS b WHERE random() < 0.2
        ) GROUP BY ${block})`);
        await sql("CHECKPOINT").catch(() => undefined);
        const increment = await backup("b-fifth", full);
        const ratio = Number(increment.observation.storedBytes) / Number(full.observation.storedBytes);
        console.log(
          `20% of the pages: ${increment.observation.storedBytes} of ${full.observation.storedBytes} bytes, ${ratio.toFixed(3)}`,
        );
        expect(ratio).toBeLessThanOrEqual(0.35);
      });

      test.skipIf(!python)("an independent reader opens the chain", async () => {
        const out = await mkdtemp(join(tmpdir(), "holdfast-read-"));
        try {
          const links: string[] = [];
          for (const { backupId, attempt, key } of chain) {
            await writeFile(join(out, key.id), key.secret);
            links.push(backupId, String(attempt), key.id, join(out, key.id));
          }
          await run("python3", [reader, store.directory, "s-1", ...links, join(out, "data")]);
          const judged = await within(target, `${programs}/pg_controldata`, join(out, "data"));
          expect(judged).toContain("in production");
          const files = await run("ls", [join(out, "data")]);
          expect(files.stdout.split("\n")).toEqual(
            expect.arrayContaining(["PG_VERSION", "backup_label", "base", "pg_wal"]),
          );
        } finally {
          await rm(out, { recursive: true, force: true });
        }
      });
    },
  );
}
