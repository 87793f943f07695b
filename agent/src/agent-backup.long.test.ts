import { execFile, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { peekLog } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type BackupObservation, RestoreSourceSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { Lane, TaskClass, type TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, onTestFinished, test } from "vitest";
import { signalIfAlive } from "../keeper/signal-process.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/store.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const run = promisify(execFile);
const reader = join(import.meta.dirname, "../../docs/reference/backup-format/read_backup.py");
const python =
  spawnSync("python3", ["-c", "import cryptography"]).status === 0 && spawnSync("zstd", ["-V"]).status === 0;

async function listedByPython(directory: string, key: { id: string; secret: string }): Promise<string> {
  const out = await mkdtemp(join(tmpdir(), "holdfast-read-"));
  try {
    await writeFile(join(out, "key"), key.secret);
    await run("python3", [reader, directory, "s-1", "b-1", "1", key.id, join(out, "key"), out]);
    return (await run("tar", ["--list", "--file", join(out, "base.tar")], { maxBuffer: 16 << 20 })).stdout;
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}

const skipped = whyNoAgentMachine("postgresql", "17");
const password = "a-password-of-the-test";
const newPassword = "another-password";
/** A commit from now on is later than this moment. */
const clockPasses = (ms: number) => waitUntil("the clock is past that moment", () => Date.now() > ms, { everyMs: 1 });
const user = (secret: string) => ({ username: "app_user", role: "admin", verifier: scramVerifier(secret) });

describe.skipIf(skipped !== undefined)(
  `backups of an agent's machine${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let store: TestStore;
    let source: AgentMachine;
    let target: AgentMachine;
    const logKey = { id: "k-log", secret: randomBytes(32).toString("base64") };
    const otherLogKey = { id: "k-log-2", secret: randomBytes(32).toString("base64") };
    const key = { id: "k-1", secret: randomBytes(32).toString("base64") };

    beforeAll(async () => {
      store = await startTestStore();
      const machine = (spec: object) => startAgentMachine({ engine: "postgresql", version: "17", spec });
      const copy = { serviceId: "s-2" };
      source = await machine({ users: [user(password)], databases: ["defaultdb"] });
      target = await machine({ ...copy, users: [user(newPassword)], databases: ["defaultdb"] });
      for (const each of [source, target]) each.controller.signer = store.signer;
      expect((await source.converge()).failure).toBeUndefined();
    });
    afterAll(async () => {
      await Promise.all([source?.remove(), target?.remove()]);
      await store?.remove();
    });
    beforeEach(() => onTestFailed(() => console.log(source.log(), target.log())));

    function perform(
      machine: AgentMachine,
      input: Parameters<AgentMachine["controller"]["perform"]>[0]["input"],
    ): Promise<TaskResult> {
      return machine.controller.perform({
        ...machine.header,
        lane: Lane.CONTROL,
        class: TaskClass.QUICK,
        ...(input && { input }),
      });
    }

    async function sql(machine: AgentMachine, text: string, secret = password): Promise<Record<string, unknown>[]> {
      const client = await connectPostgresql(machine.endpoint, { user: "app_user", password: secret });
      try {
        return (await client.query(text)).rows as Record<string, unknown>[];
      } finally {
        await client.end();
      }
    }

    async function backup(id: string, attempt = 1): Promise<BackupObservation> {
      const value = { backupId: id, attempt, kind: "full", key };
      expect((await perform(source, { case: "startBackup", value })).failure).toBeUndefined();
      const newest = () => source.controller.observations.at(-1)?.backup;
      await waitUntil(
        `backup ${id} is over`,
        () => newest()?.backupId === id && newest()?.attempt === attempt && newest()?.state !== "running",
        {
          describe: () => source.log(),
        },
      );
      return newest() as BackupObservation;
    }

    /** The platform's own session. */
    async function openOwner(of = source, database = "holdfast"): Promise<Client> {
      const { port } = of.endpoint.instance.spec;
      const owner = new Client({ host: join(of.directory, "run/engine"), port, user: "holdfast", database });
      // The engine may be restarted under it.
      owner.on("error", () => undefined);
      await owner.connect();
      onTestFinished(() => owner.end());
      return owner;
    }

    /** Writes a heartbeat, as the agent does every few seconds: it dates durable log. */
    async function beat(): Promise<void> {
      await (await openOwner()).query("UPDATE holdfast.heartbeat SET at = clock_timestamp()");
    }

    /** Statements that change the contents of an engine. */
    async function connectionsOf(machine: AgentMachine) {
      const owner = await openOwner(machine, "defaultdb");
      const feeds = await owner.query("SELECT subname, subenabled, subslotname FROM pg_subscription");
      const mappings = await owner.query("SELECT usename, umoptions FROM pg_user_mappings ORDER BY usename");
      return { feeds: feeds.rows as unknown[], mappings: mappings.rows as unknown[] };
    }

    test("a full backup is stored, and restored on another machine with its data and other passwords", async () => {
      await sql(source, "CREATE TABLE rows AS SELECT i, md5(i::text) AS text FROM generate_series(1, 50000) AS i");
      await sql(source, "CREATE ROLE made_in_sql LOGIN PASSWORD 'secret of the source'");
      const owner = await openOwner(source, "defaultdb");
      const nowhere = "host=127.0.0.1 port=1 user=u password=p dbname=d";
      for (const statement of [
        `CREATE SUBSCRIPTION feed CONNECTION '${nowhere}' PUBLICATION p WITH (connect = false, slot_name = 'feed')`,
        "ALTER SUBSCRIPTION feed ENABLE",
        "CREATE EXTENSION postgres_fdw",
        "CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1')",
        "CREATE USER MAPPING FOR app_user SERVER elsewhere OPTIONS (user 'u', password 'p')",
        "CREATE USER MAPPING FOR PUBLIC SERVER elsewhere OPTIONS (password 'p', user 'u')",
      ])
        await owner.query(statement);
      const taken = await backup("b-1");
      expect(taken).toMatchObject({ state: "stored", error: "" });
      expect(Number(taken.sourceBytes)).toBeGreaterThan(10_000_000);
      // An independent reader opens it as well.
      if (python) expect(await listedByPython(store.directory, key)).toContain("global/pg_control");
      const restoreSource = create(RestoreSourceSchema, {
        restoreId: "r-1",
        serviceId: "s-1",
        backup: { backupId: "b-1", attempt: 1, key, manifestSha256: taken.manifestSha256 },
        target: { target: { case: "backupEnd", value: true } },
      });
      expect((await target.converge({ source: restoreSource })).failure).toBeUndefined();
      const [row] = await sql(
        target,
        "SELECT count(*)::int AS count, md5(string_agg(text, ',' ORDER BY i)) AS sum FROM rows",
        newPassword,
      );
      const [before] = await sql(
        source,
        "SELECT count(*)::int AS count, md5(string_agg(text, ',' ORDER BY i)) AS sum FROM rows",
      );
      expect(row).toEqual(before);
      await expect(sql(target, "SELECT 1", password)).rejects.toThrow("password authentication failed");
      const options = { umoptions: ["user=u"] };
      expect(await connectionsOf(target)).toEqual({
        feeds: [{ subname: "feed", subenabled: false, subslotname: null }],
        mappings: [
          { usename: "app_user", ...options },
          { usename: "public", ...options },
        ],
      });
      expect((await connectionsOf(source)).feeds).toEqual([{ subname: "feed", subenabled: true, subslotname: "feed" }]);
      for (const statement of ["DISABLE", "SET (slot_name = NONE)"])
        await owner.query(`ALTER SUBSCRIPTION feed ${statement}`);
      await owner.query("DROP SUBSCRIPTION feed");
      const seen = target.controller.observations.at(-1)?.restore;
      expect(seen).toMatchObject({ restoreId: "r-1", state: "finished", lockedUsers: ["made_in_sql"] });
      // The same source again changes nothing.
      await sql(target, "CREATE TABLE after (i int)", newPassword);
      expect((await target.converge({ source: restoreSource })).failure).toBeUndefined();
      const { observations } = target.controller;
      await target.restart();
      observations.splice(0);
      await waitUntil("it runs again", () => observations.at(-1)?.state === "running");
      await sql(target, "SELECT * FROM after", newPassword);
    });

    test("the last backup of a service has every acknowledged task, and none is acknowledged once it began", async () => {
      const acknowledged: string[] = [];
      let isFinished = false;
      const put = (username: string) =>
        perform(source, {
          case: "putEngineUser",
          value: { user: { username, role: "readonly", verifier: scramVerifier(password) } },
        });
      const making = (async () => {
        for (let n = 0; !isFinished; n += 1) {
          if ((await put(`late_${n}`)).failure === undefined) acknowledged.push(`late_${n}`);
          // Time: the rate of the calls, which continue while the last backup begins.
          await sleep(50);
        }
      })();
      try {
        await waitUntil("users are made", () => acknowledged.length > 2, { everyMs: 20 });
        expect((await source.converge({ closed: true, allowedCidrs: [] })).failure).toBeUndefined();
        const value = { backupId: "b-last", attempt: 1, kind: "full", key, isLast: true };
        const begins = async () => (await perform(source, { case: "startBackup", value })).failure === undefined;
        await waitUntil("it begins", begins);
        const seen = () => source.controller.observations.at(-1)?.backup;
        const isStored = () => seen()?.backupId === "b-last" && seen()?.state === "stored";
        await waitUntil("it is stored", isStored, { describe: () => source.log() });
      } finally {
        isFinished = true;
        await making;
      }
      const manifestSha256 = source.controller.observations.at(-1)?.backup?.manifestSha256 ?? "";
      const restoreSource = create(RestoreSourceSchema, {
        restoreId: "r-last",
        serviceId: "s-1",
        backup: { backupId: "b-last", attempt: 1, key, manifestSha256 },
        target: { target: { case: "backupEnd", value: true } },
      });
      expect((await target.converge({ source: restoreSource })).failure).toBeUndefined();
      const found = await sql(target, "SELECT rolname AS name FROM pg_roles", newPassword);
      const names = new Set(found.map(({ name }) => name));
      expect(acknowledged.filter((name) => !names.has(name))).toEqual([]);
      expect((await put("later")).failure).toMatchObject({ code: "not_ready" });
      expect((await source.converge({ closed: false, allowedCidrs: ["127.0.0.0/8"] })).failure).toBeUndefined();
    });

    test("a backup survives its agent, and reports a cancellation or a kill", async () => {
      await store.stop();
      const begin = (backupId: string) =>
        perform(source, { case: "startBackup", value: { backupId, attempt: 1, kind: "full", key, background: true } });
      const seen = () => source.controller.observations.at(-1)?.backup;
      expect((await begin("b-agent")).failure).toBeUndefined();
      // The same backup again changes nothing; another one waits until it ends.
      expect((await begin("b-agent")).failure).toBeUndefined();
      expect((await begin("b-other")).failure).toMatchObject({ code: "not_ready", retryable: true });
      // The component runs at a low priority.
      const priorities = () => source.pidsOfCode("backup").map((pid) => getPriority(pid));
      await waitUntil("it runs at a low priority", () => priorities().includes(19));
      const [agent = 0] = source.pidsOfCode("main");
      process.kill(agent, "SIGKILL");
      await waitUntil("another agent is there", () => source.controller.hellos.length > 1);
      source.controller.observations.splice(0);
      await store.start();
      await waitUntil("it is stored", () => seen()?.state === "stored", { describe: () => source.log() });
      expect(seen()).toMatchObject({ backupId: "b-agent", attempt: 1 });

      await store.stop();
      await begin("b-cancelled");
      const canceled = await perform(source, { case: "cancelBackup", value: { backupId: "b-cancelled" } });
      expect(canceled.output.value).toMatchObject({ backup: { backupId: "b-cancelled", state: "cancelled" } });
      await begin("b-killed");
      await waitUntil("it runs", () => source.pidsOf("pg_basebackup").length > 0);
      for (const pid of source.pidsOfCode("backup")) signalIfAlive(pid, "SIGKILL");
      await waitUntil("it is reported", () => seen()?.backupId === "b-killed" && seen()?.state === "failed");
      expect(seen()).toMatchObject({ errorCode: "interrupted" });
      expect(source.pidsOf("pg_basebackup")).toEqual([]);
      await store.start();
      expect(await backup("b-killed", 2)).toMatchObject({ state: "stored", attempt: 2 });
    });

    test("the log is archived across an outage of the store and a restart, and restores to any second", async () => {
      const archive = { archiveId: "a-1", key: logKey, idleMs: 500 };
      expect((await source.converge({ archive })).failure).toBeUndefined();
      const seen = () => source.controller.observations.at(-1)?.archive;
      const describe = () =>
        `${JSON.stringify(seen(), (_, v: unknown) => (typeof v === "bigint" ? String(v) : v))}\n${source.log()}`;
      await waitUntil("something is archived", () => (seen()?.lastSequence ?? 0n) > 0n, { describe });
      const taken = await backup("b-2");
      expect(taken).toMatchObject({ state: "stored", error: "" });
      await sql(source, "CREATE TABLE noted (i int, at timestamptz DEFAULT clock_timestamp())");
      const acknowledged: { i: number; atMs: number }[] = [];
      const note = async (count: number) => {
        for (let n = 0; n < count; n += 1) {
          const i = acknowledged.length + 1;
          await sql(source, `INSERT INTO noted VALUES (${i})`);
          const atMs = Date.now();
          acknowledged.push({ i, atMs });
          await clockPasses(atMs);
        }
      };
      await note(10);
      await store.stop();
      await note(10);
      await store.start();
      await note(5);
      // Replay under other settings than these would stop here.
      const parameters = { max_prepared_transactions: "10", max_locks_per_transaction: "128" };
      expect((await source.converge({ archive, restartCount: 1n, parameters })).failure).toBeUndefined();
      await sql(source, "INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(1, 200000) AS i");
      await note(10);
      const untilMs = Date.now();
      await clockPasses(untilMs);
      await sql(source, "DELETE FROM noted");
      const isFollowing = (archiveId: string) => seen()?.archiveId === archiveId && seen()?.state === "following";
      const durableMs = () => timestampMs(seen()?.durableTime ?? timestampFromMs(0));
      await beat();
      await waitUntil("all of it is archived", () => durableMs() > untilMs, { describe });
      expect(seen()).toMatchObject({ archiveId: "a-1", state: "following", branch: "1", firstSequence: 1n });
      const last = seen()?.lastSequence ?? 0n;
      const newest = await readFile(join(store.directory, logObject({ service: "s-1", term: 1 }, Number(last))));
      expect(peekLog(newest)?.settings?.map(({ values }) => values)).toMatchObject([
        { max_prepared_transactions: 0, max_locks_per_transaction: 64 },
        { max_prepared_transactions: 10, max_locks_per_transaction: 128 },
      ]);
      // After a gap another archive starts in the same term.
      const next = { archiveId: "a-2", key: otherLogKey, idleMs: 1_000 };
      expect((await source.converge({ archive: next })).failure).toBeUndefined();
      await sql(source, "CREATE TABLE after_the_gap ()");
      await waitUntil("the next archive has log", () => isFollowing("a-2") && durableMs() > 0, { describe });
      expect(seen()?.firstSequence).toBeGreaterThan(last);
      const logs = [{ term: 1n, firstSequence: 1n, lastSequence: last, keys: [logKey] }];
      const restoreTo = (id: string, targetMs: number) =>
        target.converge({
          source: create(RestoreSourceSchema, {
            restoreId: id,
            serviceId: "s-1",
            backup: { backupId: "b-2", attempt: 1, key, manifestSha256: taken.manifestSha256 },
            logs,
            target: { target: { case: "time", value: timestampFromMs(targetMs) } },
          }),
        });
      for (const [index, atMs] of [untilMs, acknowledged[11]?.atMs ?? 0].entries()) {
        expect((await restoreTo(`r-time-${index}`, atMs)).failure).toBeUndefined();
        const rows = await sql(target, "SELECT i FROM noted ORDER BY i", newPassword);
        // Times have millisecond resolution; the order within the target's millisecond is undefined.
        const before = acknowledged.filter((each) => each.atMs < atMs).map(({ i }) => ({ i }));
        const after = acknowledged.filter((each) => each.atMs > atMs).length;
        expect(rows.slice(0, before.length)).toEqual(before);
        // Writes in flight at that time may be included.
        expect(rows.length - before.length).toBeLessThanOrEqual(Math.min(1, after));
      }
      const late = await restoreTo("r-late", Date.now() + 3_600_000);
      expect(late.failure?.message).toContain("ends before the target");
      expect(target.controller.observations.at(-1)?.restore).toMatchObject({
        state: "failed",
        errorCode: "target_not_reached",
      });
      await expect(sql(target, "SELECT 1", newPassword)).rejects.toThrow("ECONNREFUSED");
      // The engine's own words are in its log.
      const { output } = await target.controller.perform({
        ...target.header,
        lane: Lane.QUERY,
        class: TaskClass.QUICK,
        input: { case: "readLogs", value: { limit: 1_000, newest: true, level: "error" } },
      });
      const lines = output.case === "readLogs" ? output.value.lines : [];
      expect(lines).toContainEqual(
        expect.objectContaining({
          component: "engine",
          level: "error",
          message: "recovery ended before configured recovery target was reached",
        }),
      );
    });

    test("the log is restored without a gap across archives, keys and terms", async () => {
      const seen = () => source.controller.observations.at(-1)?.archive;
      const describe = () =>
        `${JSON.stringify(seen(), (_, v: unknown) => (typeof v === "bigint" ? String(v) : v))}\n${source.log()}`;
      const before = seen()?.lastSequence ?? 0n;
      const archive = { archiveId: "a-3", key: logKey, idleMs: 500 };
      const durable = async (what: string) => {
        const untilMs = Date.now();
        await beat();
        const durableMs = () => timestampMs(seen()?.durableTime ?? timestampFromMs(0));
        await waitUntil(what, () => seen()?.archiveId === "a-3" && durableMs() > untilMs, { describe });
      };
      // The new archive's object numbers continue after the earlier archive's, so no object is overwritten.
      expect((await source.converge({ archive })).failure).toBeUndefined();
      await durable("another archive has started");
      const first = seen()?.firstSequence ?? 0n;
      expect(first).toBeGreaterThan(before);
      const taken = await backup("b-3");
      await sql(source, "CREATE TABLE steps AS SELECT 1 AS step");
      await durable("the first step is archived");
      const nextKey = { id: "k-next", secret: randomBytes(32).toString("base64") };
      const renewed = { ...archive, key: nextKey, earlierKeys: [logKey] };
      expect((await source.converge({ archive: renewed })).failure).toBeUndefined();
      await sql(source, "INSERT INTO steps VALUES (2)");
      await durable("the second step is archived under another key");
      const betweenMs = Date.now();
      await clockPasses(betweenMs);
      expect((await source.converge({ archive: renewed, term: 2n })).failure).toBeUndefined();
      await sql(source, "INSERT INTO steps VALUES (3)");
      await waitUntil("the term is another one", () => seen()?.term === 2n, { describe });
      await durable("the third step is archived under another term");
      const { earlier = [], lastSequence = 0n } = seen() ?? {};
      expect(earlier).toMatchObject([{ term: 1n, firstSequence: first }]);
      const keys = [logKey, nextKey];
      const end = earlier[0]?.lastSequence ?? 0n;
      const restored = async (id: string, lastOfFirst: bigint, targetMs?: number) =>
        target.converge({
          source: create(RestoreSourceSchema, {
            restoreId: id,
            serviceId: "s-1",
            backup: { backupId: "b-3", attempt: 1, key, manifestSha256: taken.manifestSha256 },
            logs: [
              { term: 1n, firstSequence: first, lastSequence: lastOfFirst, keys },
              { term: 2n, firstSequence: 1n, lastSequence, keys },
            ],
            target: {
              target:
                targetMs === undefined
                  ? { case: "logEnd", value: true }
                  : { case: "time", value: timestampFromMs(targetMs) },
            },
          }),
        });
      const steps = async () =>
        (await sql(target, "SELECT step FROM steps ORDER BY 1", newPassword)).map((r) => r.step);
      expect((await restored("r-all", end)).failure).toBeUndefined();
      expect(await steps()).toEqual([1, 2, 3]);
      expect((await restored("r-between", end, betweenMs)).failure).toBeUndefined();
      expect(await steps()).toEqual([1, 2]);
      const holed = await restored("r-hole", end - 1n);
      expect(holed.failure?.message).toMatch(/begins at|ends at/);
      expect(target.controller.observations.at(-1)?.restore).toMatchObject({
        state: "failed",
        errorCode: "damaged",
        damagedObject: expect.stringMatching(/^services\/s-1\/log\//),
      });
    });

    test("the archive includes the last writes before a stop, however few", async () => {
      const seen = () => source.controller.observations.at(-1)?.archive;
      const describe = () => source.log();
      const archive = { archiveId: "a-stop", key: logKey, idleMs: 60_000 };
      expect((await source.converge({ archive, term: 2n })).failure).toBeUndefined();
      await waitUntil("it has started", () => seen()?.archiveId === "a-stop" && seen()?.durableTime !== undefined, {
        describe,
        withinMs: 90_000,
      });
      await sql(source, "CREATE TABLE before_the_stop ()");
      const writtenMs = Date.now();
      expect((await source.converge({ archive, term: 2n, running: false })).failure).toBeUndefined();
      const durableMs = () => timestampMs(seen()?.durableTime ?? timestampFromMs(0));
      await waitUntil("the stop is reported with a later time", () => durableMs() >= writtenMs, { describe });
      expect((await source.converge({ term: 2n, running: true })).failure).toBeUndefined();
    });

    describe("while the store is unavailable", () => {
      const seen = () => source.controller.observations.at(-1)?.archive;
      const wait = {
        withinMs: 120_000,
        everyMs: 200,
        describe: () =>
          `${JSON.stringify(seen(), (_, v: unknown) => (typeof v === "bigint" ? String(v) : v))}\n${source.log()}`,
      };
      const follow = async (archiveId: string) => {
        const archive = { archiveId, key: logKey, idleMs: 1_000 };
        expect((await source.converge({ archive, term: 3n })).failure).toBeUndefined();
        const isFollowed = () => seen()?.archiveId === archiveId && seen()?.state === "following";
        await waitUntil(`${archiveId} is followed`, () => isFollowed() && (seen()?.lastSequence ?? 0n) > 0n, wait);
      };
      // A WAL switch completes a segment of 16 MiB with any content.
      const fill = async (owner: Client, segments: number) => {
        for (let n = 0; n < segments; n += 1) {
          await owner.query("SELECT pg_logical_emit_message(false, 'fill', 'something')");
          await owner.query("SELECT pg_switch_wal()");
        }
      };

      test("the archive reports the waiting bytes and their limit", async () => {
        await follow("a-half");
        await store.stop();
        const owner = await openOwner();
        const limit = 256n << 20n;
        await fill(owner, 9);
        const half = () => seen()?.waitingLimitBytes === limit && 2n * (seen()?.waitingBytes ?? 0n) >= limit;
        // The bytes are counted before the store has refused an upload.
        await waitUntil("half of the limit waits", () => half() && seen()?.state === "waiting", wait);
        await store.start();
        const isStored = () => seen()?.state === "following" && (seen()?.waitingBytes ?? limit) < limit / 8n;
        await waitUntil("it is stored once the store is back", isStored, wait);
      });

      test("the engine removes log beyond the limit, and the archive reports a gap", async () => {
        await follow("a-cut");
        await store.stop();
        const owner = await openOwner();
        await fill(owner, 18);
        await owner.query("CHECKPOINT");
        const slot = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'holdfast_archive'";
        const isLost = async () => (await owner.query<{ wal_status: string }>(slot)).rows[0]?.wal_status === "lost";
        await waitUntil("the slot is lost", isLost, wait);
        await store.start();
        await waitUntil("the archive has a gap", () => seen()?.state === "gap", wait);
        await follow("a-next");
      });
    });
  },
);
