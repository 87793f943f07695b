import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { Lane, TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { signalIfAlive } from "../keeper/signal-process.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { occupyPort } from "@holdfast/testing/platform/occupied-port.ts";

const password = "a-password-of-the-test";
const skipped = whyNoAgentMachine("postgresql", "17");

describe.skipIf(skipped !== undefined)(
  `an agent with PostgreSQL${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let machine: AgentMachine;

    beforeAll(async () => {
      machine = await startAgentMachine({
        engine: "postgresql",
        version: "17",
        memoryBytes: 600 << 20,
        spec: {
          users: [{ username: "app_user", role: "admin", verifier: scramVerifier(password) }],
          databases: ["defaultdb"],
        },
      });
    });
    afterAll(() => machine?.remove());
    beforeEach(() => onTestFailed(() => console.log(machine.log())));

    async function query(sql: string): Promise<unknown[]> {
      const client = await connectPostgresql(machine.endpoint, { user: "app_user", password });
      try {
        return (await client.query({ text: sql, rowMode: "array" })).rows.flat();
      } finally {
        await client.end();
      }
    }

    /** Postmasters of this machine. */
    function postmasters(): number[] {
      // A backend just forked still has the postmaster's command line, but is not the first process of its namespace.
      return machine.pidsOf("bin/postgres").filter((pid) => {
        try {
          return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
        } catch {
          // The process has ended.
          return false;
        }
      });
    }

    const isUp = () =>
      query("SELECT 1").then(
        () => true,
        () => false,
      );

    const check = (name: string) => machine.controller.observations.at(-1)?.checks.find((each) => each.name === name);

    /** Fingerprint of the certificate that new sessions see. */
    async function certificate(): Promise<string> {
      const client = await connectPostgresql(machine.endpoint, { user: "app_user", password });
      const { fingerprint256 } = (client.connection.stream as TLSSocket).getPeerCertificate();
      await client.end();
      return fingerprint256;
    }

    test("starts on an empty machine and answers a query over TLS", async () => {
      const result = await machine.converge();
      expect(result.failure).toBeUndefined();
      expect(await query("SELECT 1")).toEqual([1]);
      await query("CREATE TABLE kept (n int)");
      await query("INSERT INTO kept VALUES (7)");
      await expect
        .poll(() => machine.controller.observations.at(-1)?.checks.map(({ name, status }) => `${name} ${status}`))
        .toEqual(expect.arrayContaining(["liveness healthy", "storage healthy", "certificate healthy"]));
    });

    test("hides the agent's files from its engine", async () => {
      const state = join(machine.directory, "state");
      const secrets = [
        "identity.json",
        "enrollment.json",
        "journal",
        "instance/spec.bin",
        "instance/applied.json",
        "log/agent.log.1",
      ];
      const { port } = machine.endpoint.instance.spec;
      const host = join(machine.directory, "run/engine");
      const superuser = new Client({ host, port, user: "holdfast", database: "holdfast" });
      await superuser.connect();
      const inEngine = async (command: string) => {
        await superuser.query("CREATE TEMP TABLE IF NOT EXISTS said (line text); TRUNCATE said");
        await superuser.query(`COPY said FROM PROGRAM '(${command}) 2>&1 || :' (DELIMITER E'\\x01')`);
        return (await superuser.query<{ line: string }>("SELECT line FROM said")).rows
          .map(({ line }) => line)
          .join(" ");
      };
      // The engine's user can read the files that it needs.
      expect(await inEngine(`cat ${state}/instance/config/pg_hba.conf`)).toContain("hostssl");
      for (const name of secrets) {
        expect(existsSync(join(state, name)), name).toBe(true);
        expect(await inEngine(`cat ${state}/${name}`), name).toMatch(/Permission denied/);
        expect(await machine.asEngine(["cat", join(state, name)]), name).toMatch(/Permission denied/);
      }
      expect(await inEngine(`ls ${state} ${state}/instance`)).toMatch(
        /^ls: .*Permission denied ls: .*Permission denied$/,
      );
      expect(await inEngine(`echo x >${state}/instance/config/pg_hba.conf`)).toMatch(/Permission denied/);
      const socket = join(machine.directory, "run/keeper.sock");
      expect(await machine.asEngine(["sh", "-c", `test -S ${socket} && ! test -w ${socket} && echo denied`])).toBe(
        "denied\n",
      );
      // Neither is visible in its namespace, and it may signal neither from outside of it.
      expect(await inEngine("ls -d /proc/[0-9]*/root; cat /proc/[0-9]*/comm")).not.toMatch(/node/);
      const [agent] = machine.pidsOf("node");
      for (const pid of [agent, machine.keeperPid()]) {
        expect(await machine.asEngine(["sh", "-c", `kill -0 ${pid}`])).toMatch(/not permitted/);
      }
      await superuser.end();
    });

    test("keeps the engine running across a kill of the agent, and restarts a killed engine", async () => {
      // For the next agent, two thirds of the lifetime have passed.
      const facts = join(machine.directory, "state/instance/tls/facts.json");
      const times = { issuedAt: Date.now() - 3_600_000, notAfter: Date.now() + 600_000 };
      writeFileSync(facts, JSON.stringify({ ...JSON.parse(readFileSync(facts, "utf8")), ...times }));
      const fingerprint = await certificate();
      const [before] = postmasters();
      const { sessionId } = machine.controller.hellos.at(-1) ?? {};
      signalIfAlive(machine.pidsOf("node")[0] ?? 0, "SIGKILL");
      await expect.poll(() => machine.controller.hellos.at(-1)?.sessionId !== sessionId).toBe(true);
      expect((await machine.converge()).failure).toBeUndefined();
      expect(postmasters()).toEqual([before]);
      await expect.poll(certificate).not.toBe(fingerprint);
      process.kill(before as number, "SIGKILL");
      await expect.poll(() => postmasters().filter((pid) => pid !== before).length).toBeGreaterThan(0);
      await expect.poll(isUp).toBe(true);
      expect(await query("SELECT n FROM kept")).toEqual([7]);
    });

    test("rolls back a parameter that prevents a start, and reports the engine's message", async () => {
      const result = await machine.converge({ parameters: { shared_buffers: "900GB" }, restartCount: 1n });
      expect(result.failure).toBeUndefined();
      await expect
        .poll(() => "shared_buffers" in (machine.controller.observations.at(-1)?.rejectedParameters ?? {}))
        .toBe(true);
      expect(await query("SELECT n FROM kept")).toEqual([7]);
    });

    test("recovers from sessions that exceed the memory, and reports it", async (context) => {
      if (machine.unlimited !== undefined) context.skip(machine.unlimited);
      const before = postmasters();
      const greedy =
        "SELECT count(*) FROM (SELECT DISTINCT repeat(i::text, 50) FROM generate_series(1, 20000000) AS i) AS many";
      const each = () => query(`SET work_mem = '2GB'; SET hash_mem_multiplier = 4; ${greedy}`);
      // One process may use half of the memory, and only that process fails.
      await expect(each()).rejects.toThrow(/^out of memory$/);
      expect(check("memory")?.status).toBe("healthy");
      const ends = await Promise.allSettled([1, 2, 3, 4].map(each));
      expect(ends.map((end) => String(end.status === "rejected" && end.reason))).toContainEqual(
        expect.stringMatching(/terminated|closed/),
      );
      await expect.poll(isUp).toBe(true);
      await expect.poll(() => check("memory")?.reason).toMatch(/^Out of memory: /);
      expect(check("memory")?.status).toBe("degraded");
      expect(postmasters()).toEqual(before);
      expect(await query("SELECT n FROM kept")).toEqual([7]);
    });

    test("excludes addresses that are no longer allowed immediately", async () => {
      await machine.converge({ allowedCidrs: ["10.0.0.0/8"], restartCount: 1n });
      expect(await isUp()).toBe(false);
      await machine.converge({ restartCount: 1n });
      expect(await isUp()).toBe(true);
    });

    test("returns the log of PostgreSQL", async () => {
      const input = { case: "readLogs" as const, value: { limit: 1_000 } };
      const result = await machine.controller.perform({
        ...machine.header,
        lane: Lane.QUERY,
        class: TaskClass.QUICK,
        input,
      });
      if (result.output.case !== "readLogs") throw new Error(JSON.stringify(result.failure));
      const { lines } = result.output.value;
      expect(lines.some(({ message }) => message.includes("database system is ready to accept connections"))).toBe(
        true,
      );
      expect(lines.every(({ time }) => Number(time?.seconds) > 1_600_000_000)).toBe(true);
    });

    test("reports why it does not start in an actionable message, and starts once that is solved", async () => {
      const control = join(machine.directory, "data/postgresql/global/pg_control");
      const stopped = () => machine.converge({ running: false, restartCount: 1n });
      const failed = async (change = {}) => (await machine.converge({ restartCount: 1n, ...change })).failure?.message;
      await stopped();
      expect(await failed({ version: "99" })).toMatch(/^This machine's image has no postgresql 99 that runs: /);
      const busy = await occupyPort(machine.endpoint.instance.spec.port, () => undefined);
      expect(await failed()).toMatch(/^Another process listens on the engine's port\./);
      await busy.release();
      await expect.poll(isUp).toBe(true);
      await stopped();
      const intact = readFileSync(control);
      writeFileSync(control, Buffer.alloc(intact.length, 1));
      expect(await failed()).toMatch(/^The engine finds its data damaged and does not start\. .* Last output: /);
      writeFileSync(control, intact);
      await expect.poll(isUp).toBe(true);
      expect(await query("SELECT n FROM kept")).toEqual([7]);
    });

    test("is not running while one address is not bound, and restarts if that helps", async () => {
      const { port } = machine.endpoint.instance.spec;
      const [inside, outside] = ["127.0.0.1", "127.0.0.9"];
      const listeners = [
        { name: "engine", address: inside, port, audience: "private" },
        { name: "engine", address: outside, port, audience: "public" },
      ];
      const message = `The engine does not listen at ${outside}, port ${port}: another process listens there.`;
      const newest = () => machine.controller.observations.at(-1);
      const converge = async (restartCount: bigint) =>
        (await machine.converge({ listeners, restartCount })).failure?.message;
      // The engine responds before the agent observes it.
      await expect.poll(() => newest()?.state).toBe("running");
      const before = postmasters();
      const busy = await occupyPort(port, () => undefined, outside);
      // A running engine keeps serving on the other address, and is unhealthy.
      expect(await converge(1n)).toBeUndefined();
      await expect.poll(() => check("listener")?.reason).toBe(message);
      expect([check("listener")?.status, newest()?.state]).toEqual(["unhealthy", "running"]);
      expect([postmasters(), await isUp()]).toEqual([before, true]);
      expect(await converge(2n)).toBe(message);
      await expect.poll(() => newest()).toMatchObject({ state: "starting", reason: message });
      const started = postmasters();
      expect(started).not.toEqual(before);
      // Clients on the other address are not interrupted by a restart that would not help.
      expect([await converge(2n), postmasters(), await isUp()]).toEqual([message, started, true]);
      await busy.release();
      await expect.poll(() => newest()?.state).toBe("running");
      expect(check("listener")?.status).toBe("healthy");
      expect(postmasters()).not.toEqual(started);
      const there = { ...machine.endpoint, instance: { spec: { address: outside, port } } };
      await (await connectPostgresql(there, { user: "app_user", password })).end();
      expect(await query("SELECT n FROM kept")).toEqual([7]);
    });

    test("recovers with its data after a kill of the machine", async () => {
      await machine.restart();
      await expect.poll(isUp).toBe(true);
      expect(await query("SELECT n FROM kept")).toEqual([7]);
      expect((await machine.converge({ running: false, restartCount: 1n })).failure).toBeUndefined();
      expect(postmasters()).toEqual([]);
    });
  },
);
