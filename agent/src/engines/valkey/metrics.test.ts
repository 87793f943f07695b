import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectValkey, valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createEngineSource } from "../../workload/engine/engine-sources.ts";
import { openSnapshot } from "./backup/snapshot.ts";
import { createValkeyDriver } from "./driver.ts";
import { engineSocket } from "./layout.ts";
import { parseInfo, withSession } from "./session.ts";

const version = "8.1";
const password = "a password";
const stepMs = 10_000;
const requests = 20_000;

describe.skipIf(!hasEngine("valkey", version))("metrics of valkey under a known load", () => {
  let machine: EngineMachine;
  let nowMs = 0;
  const source = () => createEngineSource({ engine: () => machine, monotonicMs: () => nowMs });

  beforeAll(async () => {
    const verifier = valkeyVerifier(password);
    machine = await createEngineMachine(async (deps) => createValkeyDriver(deps), "valkey", version, {
      users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier })],
    });
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  /** Growth by the work for each of the ten seconds that the source's clock advances. */
  async function during(work: () => Promise<unknown>): Promise<Readonly<Record<string, number | undefined>>> {
    const figures = source();
    await figures.read(machine.signal);
    await work();
    nowMs += stepMs;
    return (await figures.read(machine.signal)).values;
  }

  function benchmark(...command: readonly string[]): Promise<string> {
    const where = ["-s", engineSocket(machine.instance), "--user", "app_user", "-a", password];
    const load = ["-n", String(requests), "-c", "10", "-q", ...command];
    return machine.run(["/usr/bin/valkey-benchmark", ...where, ...load], { signal: machine.signal });
  }

  async function info(name: string): Promise<number> {
    const text = await withSession(machine.instance, machine.signal, (session) => session.call("INFO"));
    return Number(parseInfo(String(text)).get(name));
  }

  const connect = () => connectValkey(machine, { user: "app_user", password });

  const untilNobodyIsThere = () =>
    waitUntil("sessions that ended are gone", async () => {
      return (await source().read(machine.signal)).values["connections"] === 0;
    });

  test("hits and misses equal those of valkey-benchmark and of the engine", async () => {
    const client = await connect();
    await client.call("SET", "there", "1");
    const [hitsBefore, missesBefore] = [await info("keyspace_hits"), await info("keyspace_misses")];
    const hits = await during(() => benchmark("GET", "there"));
    const misses = await during(() => benchmark("GET", "nowhere"));
    const perSecond = requests / (stepMs / 1_000);
    expect((hits["valkey_keyspace_hits"] ?? 0) / perSecond).toBeCloseTo(1, 1.7);
    expect(hits["valkey_keyspace_misses"]).toBe(0);
    expect((misses["valkey_keyspace_misses"] ?? 0) / perSecond).toBeCloseTo(1, 1.7);
    expect(misses["valkey_keyspace_hits"]).toBe(0);
    expect(await info("keyspace_hits")).toBe(hitsBefore + ((hits["valkey_keyspace_hits"] ?? 0) * stepMs) / 1_000);
    expect(await info("keyspace_misses")).toBe(
      missesBefore + ((misses["valkey_keyspace_misses"] ?? 0) * stepMs) / 1_000,
    );
    await client.close();
  });

  test("memory and sessions are the engine's, without the platform's own", async () => {
    await untilNobodyIsThere();
    const idle = (await source().read(machine.signal)).values;
    expect(idle).toMatchObject({ connections: 0, valkey_connected_clients: 0 });
    const clients = await Promise.all([connect(), connect(), connect()]);
    await clients[0]?.call("SET", "large", "x".repeat(8 << 20));
    const values = (await source().read(machine.signal)).values;
    expect(values).toMatchObject({ connections: 3, valkey_connected_clients: 3 });
    const memory = await info("used_memory");
    expect(memory).toBeGreaterThan(8 << 20);
    expect(Math.abs((values["valkey_used_memory"] ?? 0) / memory - 1)).toBeLessThan(0.02);
    await Promise.all(clients.map((client) => client.close()));
  });

  test("a snapshot in progress does not change the number of users' sessions", async () => {
    const client = await connect();
    // More than fits into buffers, so that the snapshot stays in progress while it is not read.
    await client.call("SET", "random", randomBytes(8 << 20).toString("hex"));
    await client.close();
    await untilNobodyIsThere();
    const snapshot = await openSnapshot(machine.instance, machine.signal);
    const [bytes] = await Array.fromAsync(snapshot.streams, async ({ bytes: parts }) => {
      for await (const part of parts) {
        const values = (await source().read(machine.signal)).values;
        expect(await info("connected_slaves")).toBe(1);
        expect(values).toMatchObject({ connections: 0, valkey_connected_clients: 0 });
        return part.length;
      }
      return 0;
    });
    expect(bytes).toBeGreaterThan(0);
    await snapshot.close();
  });

  test("an engine at its limit of clients, or that hangs, has a gap, never a zero", async () => {
    const figures = source();
    await figures.read(machine.signal);
    const limitClients = (count: number | string) =>
      withSession(machine.instance, machine.signal, (session) =>
        session.call("CONFIG", "SET", "maxclients", `${count}`),
      );
    const usual = await withSession(machine.instance, machine.signal, async (session) => {
      const [, found] = (await session.call("CONFIG", "GET", "maxclients")) as readonly string[];
      return found ?? "";
    });
    await limitClients(8);
    const clients: Awaited<ReturnType<typeof connect>>[] = [];
    await expect(
      (async () => {
        for (;;) {
          const client = await connect();
          clients.push(client);
          await client.call("PING");
        }
      })(),
    ).rejects.toThrow();
    await expect(figures.read(machine.signal)).rejects.toThrow();
    await Promise.all(clients.map((client) => client.close()));
    await untilNobodyIsThere();
    await limitClients(usual);

    const [pid] = execFileSync(
      "pgrep",
      ["--full", "--", `^\\S*valkey-server.* unixsocket:${engineSocket(machine.instance)}`],
      {
        encoding: "utf8",
      },
    ).split("\n");
    process.kill(Number(pid), "SIGSTOP");
    try {
      // The engine accepts connections and does not respond: the read ends at its own timeout.
      await expect(figures.read(machine.signal)).rejects.toThrow(/abort|timeout/i);
    } finally {
      process.kill(Number(pid), "SIGCONT");
    }
    expect((await figures.read(machine.signal)).values).toMatchObject({ connections: 0 });
  });

  test("a restart, or a stopped engine, is a gap, never a zero or a spike", async () => {
    const rates = ["valkey_keyspace_hits", "valkey_keyspace_misses", "valkey_evicted_keys"];
    const restarted = await during(async () => {
      await machine.stop("SIGKILL");
      await machine.start();
      await machine.driver.ready(machine.instance, machine.signal);
      // More than was counted before, so that the counters do not decrease.
      for (let n = 0; n < 3; n += 1) await benchmark("GET", "there");
    });
    expect(rates.map((name) => restarted[name])).toEqual([undefined, undefined, undefined]);
    await machine.stop();
    await expect(source().read(machine.signal)).rejects.toThrow();
  });
});
