import { execFileSync } from "node:child_process";
import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createEngineSource } from "../../workload/engine/engine-sources.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { dataDirectory, program } from "./layout.ts";
import { withSession } from "./session.ts";

const version = "17";
const password = "a password";
const stepMs = 10_000;

describe.skipIf(!hasEngine("postgresql", version))("metrics of postgresql under a known load", () => {
  let machine: EngineMachine;
  let nowMs = 0;
  const source = () => createEngineSource({ engine: () => machine, monotonicMs: () => nowMs });

  beforeAll(async () => {
    const verifier = scramVerifier(password);
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
      users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier })],
      parameters: { max_connections: "25", deadlock_timeout: "100ms" },
    });
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  const connect = () => connectPostgresql(machine, { user: "app_user", password });

  /** Change of the metrics by the work, over ten seconds of the source's clock. */
  async function during(work: () => Promise<unknown>): Promise<Readonly<Record<string, number | undefined>>> {
    const figures = source();
    await figures.read(machine.signal);
    await work();
    nowMs += stepMs;
    return (await figures.read(machine.signal)).values;
  }

  /** The engine's own counters of users' databases. */
  async function counted(): Promise<Record<"ended" | "hit" | "read" | "deadlocks", number>> {
    const sql = `SELECT sum(xact_commit + xact_rollback)::float8 AS ended, sum(blks_hit)::float8 AS hit,
      sum(blks_read)::float8 AS read, sum(deadlocks)::float8 AS deadlocks
      FROM pg_stat_database WHERE datname IN ('defaultdb', 'template1')`;
    const [row] = await withSession(machine.instance, machine.signal, (session) =>
      session.rows<Record<"ended" | "hit" | "read" | "deadlocks", number>>(sql),
    );
    if (row === undefined) throw new Error("a SELECT of sums gave no row");
    return row;
  }

  /** Metrics read between two equal readings of the engine's counters; undefined if these changed. */
  async function whileIdle<T>(read: () => Promise<T>) {
    const counters = await waitUntil("the engine has counted all", async () => {
      const [before, after] = [await counted(), await counted()];
      return isDeepStrictEqual(before, after) ? after : undefined;
    });
    const sample = await read();
    return isDeepStrictEqual(await counted(), counters) ? { sample, counters } : undefined;
  }

  function pgbench(...options: readonly string[]): Promise<string> {
    const { spec, paths } = machine.instance;
    const where = ["-h", spec.address, "-p", String(spec.port), "-U", "app_user", ...options, "defaultdb"];
    const argv = [
      "/usr/bin/env",
      `PGPASSWORD=${password}`,
      "PGSSLMODE=require",
      `${paths.software}/bin/pgbench`,
      ...where,
    ];
    return machine.run(argv, { signal: machine.signal });
  }

  /** Process id of the postmaster on this host. */
  function postmaster(): number {
    const command = `^${program(machine.instance, "postgres")} -D ${dataDirectory(machine.instance)}`;
    return Number(execFileSync("pgrep", ["--full", "--oldest", "--", command], { encoding: "utf8" }));
  }

  test("transactions and the hit rate equal those of pgbench and of the engine", async () => {
    await pgbench("-i", "-q", "-s", "1");
    // Accept a reading only if the engine did no work by itself during it, such as a vacuum.
    const { before, values, after } = await waitUntil("both readings are while the engine is idle", async () => {
      const figures = source();
      const first = await whileIdle(() => figures.read(machine.signal));
      await pgbench("-n", "-c", "4", "-t", "500");
      nowMs += stepMs;
      const second = await whileIdle(() => figures.read(machine.signal));
      if (first === undefined || second === undefined) return undefined;
      return { before: first.counters, values: second.sample.values, after: second.counters };
    });
    const transactions = ((values["pg_transactions_per_second"] ?? 0) * stepMs) / 1_000;
    expect(transactions / 2_000).toBeGreaterThan(0.98);
    expect(transactions / 2_000).toBeLessThan(1.02);
    const hit = after.hit - before.hit;
    const rate = (hit / (hit + after.read - before.read)) * 100;
    expect(Math.abs((values["pg_cache_hit_rate"] ?? 0) - rate)).toBeLessThan(0.1);
  });

  test("sessions, locks, slow queries and the oldest transaction count users only", async () => {
    const idle = await waitUntil("sessions that ended are gone", async () => {
      const { values } = await source().read(machine.signal);
      return values["connections"] === 0 && values;
    });
    expect(idle).toMatchObject({ connections: 0, pg_connections: 0, pg_slow_queries: 0, pg_locks: 0 });
    expect(idle).toMatchObject({ pg_oldest_transaction_seconds: 0 });
    const clients = await Promise.all([connect(), connect(), connect()]);
    const [first, second] = clients;
    await first?.query("BEGIN; LOCK TABLE pgbench_accounts; SELECT 1");
    const waiting = second?.query("SELECT count(*) FROM pgbench_accounts");
    const values = await waitUntil("the query is slow", async () => {
      const sample = await source().read(machine.signal);
      return sample.values["pg_slow_queries"] === 1 ? sample.values : undefined;
    });
    expect(values).toMatchObject({ connections: 3, pg_connections: 3, pg_slow_queries: 1 });
    const [own] =
      (await clients[2]?.query<{ count: number }>("SELECT count(*)::int FROM pg_locks WHERE pid <> pg_backend_pid()"))
        ?.rows ?? [];
    expect(values["pg_locks"]).toBe(own?.count);
    expect(values["pg_oldest_transaction_seconds"]).toBeGreaterThan(1);
    expect(values["pg_xid_age_percent"]).toBeGreaterThan(0);
    expect(values["pg_xid_age_percent"]).toBeLessThan(1);
    await first?.query("ROLLBACK");
    await waiting;
    await Promise.all(clients.map((client) => client.end()));
  });

  test("a deadlock counts once", async () => {
    const values = await during(async () => {
      const [before, two] = await Promise.all([connect(), connect()]);
      await before.query("BEGIN; UPDATE pgbench_branches SET filler = 'x'");
      await two.query("BEGIN; UPDATE pgbench_tellers SET filler = 'x'");
      const crossed = [
        before.query("UPDATE pgbench_tellers SET filler = 'y'; ROLLBACK"),
        two.query("UPDATE pgbench_branches SET filler = 'y'; ROLLBACK"),
      ];
      await Promise.allSettled(crossed);
      await Promise.all([before.end(), two.end()]);
      await waitUntil("the engine counts it", async () => (await counted()).deadlocks > 0);
    });
    expect(values["pg_deadlocks"]).toBeCloseTo(60 / (stepMs / 1_000));
  });

  test("no reads yield no hit rate; a reset, a new database and a crash yield no rates", async () => {
    const rates = ["pg_transactions_per_second", "pg_cache_hit_rate", "pg_deadlocks"];
    const ratesIn = (values: Readonly<Record<string, number | undefined>>) => rates.map((name) => values[name]);
    await waitUntil("the engine is at rest", async () => {
      const values = await during(async () => undefined);
      return ratesIn(values).join() === "0,,0";
    });
    const gap = [undefined, undefined, undefined];
    const superuser = (sql: string, database = "defaultdb") =>
      withSession(machine.instance, machine.signal, (session) => session.rows(sql), { database });
    expect(ratesIn(await during(() => superuser("SELECT pg_stat_reset()")))).toEqual(gap);
    expect(ratesIn(await during(() => superuser("CREATE DATABASE another", "holdfast")))).toEqual(gap);
    const crash = async () => {
      await machine.stop("SIGKILL");
      await machine.start();
      await machine.driver.ready(machine.instance, machine.signal);
      // More than was counted before, so that the counters do not decrease.
      await pgbench("-n", "-S", "-c", "4", "-t", "2000");
    };
    expect(ratesIn(await during(crash))).toEqual(gap);
  });

  test("are read when users have all connections, and fail when the engine hangs", async () => {
    const clients: Awaited<ReturnType<typeof connect>>[] = [];
    try {
      for (;;) clients.push(await connect());
    } catch (error) {
      expect(String(error)).toMatch(/remaining connection slots/);
    }
    expect((await source().read(machine.signal)).values["connections"]).toBe(clients.length);
    const observed = await machine.driver.observe(machine.instance, machine.signal);
    expect(observed.checks.find(({ name }) => name === "connections")).toMatchObject({ status: "degraded" });
    await Promise.all(clients.map((client) => client.end()));
    // The stopped postmaster accepts connections and does not respond: the read ends at its own timeout.
    const pid = postmaster();
    process.kill(pid, "SIGSTOP");
    await expect(source().read(machine.signal)).rejects.toThrow(/abort|timeout/i);
    process.kill(pid, "SIGCONT");
    await machine.stop();
    await expect(source().read(machine.signal)).rejects.toThrow();
  });
});
