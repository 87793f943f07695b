import { execFile } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { claimNumber } from "@holdfast/testing/controller/claim.ts";
import { connectValkey, valkeyClient, valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import type { ConformanceClient } from "@holdfast/testing/engines/conformance-subject.ts";
import { signalIfAlive } from "../keeper/signal-process.ts";

const run = promisify(execFile);
const password = "a-password-of-the-test";
const diskBytes = 64 << 20;
const skipped = whyNoAgentMachine("valkey", "8.1");

/** A separate data disk, small enough to be filled. */
describe.skipIf(skipped !== undefined)(
  `an agent with Valkey${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let machine: AgentMachine;

    beforeAll(async () => {
      machine = await startAgentMachine({
        engine: "valkey",
        version: "8.1",
        diskBytes,
        memoryBytes: 400 << 20,

        spec: {
          storageBytes: BigInt(diskBytes),
          users: [{ username: "app_user", role: "admin", verifier: valkeyVerifier(password) }],
        },
      });
    });
    afterAll(() => machine?.remove());
    beforeEach(() => onTestFailed(() => console.log(machine.log())));

    const enter = (): Promise<ConformanceClient> => valkeyClient(machine.endpoint, { user: "app_user", password });

    async function read(key: string): Promise<string | undefined> {
      const client = await enter();
      try {
        return await client.read(key);
      } finally {
        await client.close();
      }
    }

    const readable = (key: string) => read(key).catch((error: Error) => error.message);

    async function command(...args: string[]): Promise<unknown> {
      const { call, close } = await connectValkey(machine.endpoint, { user: "app_user", password });
      try {
        return await call(...args);
      } finally {
        await close();
      }
    }

    const check = (name: string) => machine.controller.observations.at(-1)?.checks.find((each) => each.name === name);
    const statusOf = (name: string) => check(name)?.status;

    test("starts on an empty machine and stores a value over TLS through its listener", async () => {
      expect((await machine.converge()).failure).toBeUndefined();
      const client = await enter();
      await client.write("kept", "7");
      await client.close();
      expect(await read("kept")).toBe("7");
      expect(machine.pidsOf("haproxy").length).toBeGreaterThan(0);
    });

    test("ends open sessions that the allow-list forbids, and leaves others alone", async () => {
      const open = await enter();
      await machine.converge({ allowedCidrs: ["127.0.0.1/32"] });
      expect(await open.read("kept")).toBe("7");
      await machine.converge({ allowedCidrs: ["10.0.0.0/8"] });
      await open.ended;
      await expect(enter()).rejects.toThrow(/disconnected|ECONNRESET|EPIPE|closed/);
      await machine.converge();
      expect(await read("kept")).toBe("7");
    });

    test("ends a connection that stalls its handshake, and no session that is open", async () => {
      const open = await enter();
      const { address, port } = machine.endpoint.instance.spec;
      const stalled = connect(port, address);
      stalled.on("error", () => undefined);
      stalled.resume();
      stalled.write(Buffer.from("1603010200010001fc0303", "hex"));
      await once(stalled, "close");
      expect(await open.read("kept")).toBe("7");
      await open.close();
    });

    test("recovers after a kill of its listener or itself, and restarts on request", async () => {
      for (const program of ["haproxy", "valkey-server"]) {
        const before = machine.pidsOf(program);
        // The others end with the first one.
        for (const pid of before) signalIfAlive(pid, "SIGKILL");
        const others = () => machine.pidsOf(program).some((pid) => !before.includes(pid));
        await expect.poll(others).toBe(true);
        await expect.poll(() => readable("kept")).toBe("7");
      }
      const [before] = machine.pidsOf("valkey-server");
      expect((await machine.converge({ restartCount: 1n })).failure).toBeUndefined();
      expect(machine.pidsOf("valkey-server")).not.toContain(before);
      expect(await read("kept")).toBe("7");
    });

    test("is running as soon as its listener has all of its addresses", async () => {
      const { port } = machine.endpoint.instance.spec;
      const address = `198.18.79.${await claimNumber("address", 200)}`;
      const listeners = ["127.0.0.1", address].map((each) => ({
        name: "engine",
        address: each,
        port,
        audience: "public",
      }));
      const ip = (verb: string) => run("ip", ["address", verb, `${address}/32`, "dev", "lo"]);
      const reason = () => {
        const { state = "", reason = "" } = machine.controller.observations.at(-1) ?? {};
        return `${state}: ${reason}`;
      };
      const allowedCidrs = ["127.0.0.0/8", `${address}/32`];
      const converging = machine.converge({ listeners, allowedCidrs, restartCount: 2n });
      try {
        const absent = `${address}, port ${port}: the machine does not have this address`;
        await expect.poll(reason).toMatch(/^starting: The engine does not listen at /);
        expect(reason()).toContain(absent);
        await ip("add");
        expect((await converging).failure).toBeUndefined();
        await expect.poll(reason).toBe("running: ");
        const there = { ...machine.endpoint, instance: { spec: { address, port } } };
        await (await valkeyClient(there, { user: "app_user", password })).close();
      } finally {
        await ip("delete").catch(() => undefined);
      }
      expect((await machine.converge({ restartCount: 2n })).failure).toBeUndefined();
      expect(await read("kept")).toBe("7");
    });

    test("retains the writes of a transaction across a restart", async () => {
      const { call, close } = await connectValkey(machine.endpoint, { user: "app_user", password });
      for (const args of [["MULTI"], ["SET", "one", "1"], ["SET", "two", "2"], ["EXEC"]]) await call(...args);
      await close();
      expect((await machine.converge({ restartCount: 3n })).failure).toBeUndefined();
      expect([await read("one"), await read("two")]).toEqual(["1", "2"]);
    });

    test("recovers after an out-of-memory kill and reports it", async (context) => {
      if (machine.unlimited !== undefined) context.skip(machine.unlimited);
      const [before] = machine.pidsOf("valkey-server");
      const agents = machine.pidsOf("node");
      const { call, close } = await connectValkey(machine.endpoint, { user: "app_user", password });
      // In memory and never stored, so its next start is small.
      const hoard = "local all = {} for i = 1, 1e9 do all[i] = string.rep('x', 1000) .. i end";
      await expect(call("EVAL", hoard, "0")).rejects.toThrow(/disconnected|ECONNRESET|EPIPE|closed/);
      await close();
      await expect.poll(() => readable("kept")).toBe("7");
      expect(machine.pidsOf("valkey-server")).not.toContain(before);
      await expect.poll(() => check("memory")?.reason).toMatch(/^Out of memory: /);
      expect(machine.pidsOf("node")).toEqual(agents);
    });

    test("reports a full disk without counting as dead", async () => {
      const [inside = 0] = machine.pidsOf("valkey-server");
      const fill = join(`/proc/${inside}/root`, machine.directory, "data/fill");
      const filled = async (share: number) => {
        // Appended: a file that is truncated first releases the disk, and a check between unblocks writes.
        const { size = 0 } = statSync(fill, { throwIfNoEntry: false }) ?? {};
        appendFileSync(fill, Buffer.alloc(Math.floor(diskBytes * share) - size));
        // New settings trigger the next check.
        await machine.converge({ restartCount: 3n });
      };
      await filled(0.87);
      await expect.poll(() => statusOf("storage")).toBe("degraded");
      await filled(0.955);
      await expect.poll(() => statusOf("storage")).toBe("unhealthy");
      expect(machine.controller.observations.at(-1)?.state).toBe("running");
      expect(machine.pidsOf("valkey-server")).toContain(inside);
      const write = async () => {
        const client = await enter();
        try {
          await client.write("large", "x".repeat(10_000));
        } finally {
          await client.close();
        }
      };
      const refusal = () => write().then(String, String);
      await expect.poll(refusal).toMatch(/OOM/);
      expect(await command("DEL", "one")).toBe(1);
      await expect.poll(() => statusOf("liveness")).toBe("healthy");
      expect(machine.controller.observations.at(-1)?.writesBlocked).toBe(true);
      await filled(1).catch(() => undefined);
      await machine.converge({ restartCount: 3n });
      await expect.poll(() => check("storage")?.reason).toMatch(/^The disk is full/);
      // The reserve has space for it, and nothing else is written.
      await expect.poll(() => command("DEL", "two").catch(String)).toBe(1);
      expect(await refusal()).toMatch(/OOM/);
      expect(machine.controller.observations.at(-1)?.state).toBe("running");
      expect(machine.pidsOf("valkey-server")).toContain(inside);
      rmSync(fill);
      // On its own, without a request.
      await expect.poll(refusal).toBe("undefined");
      await machine.converge({ restartCount: 3n });
      await expect.poll(() => statusOf("storage")).toBe("healthy");
      await expect.poll(() => statusOf("liveness")).toBe("healthy");
      expect(await read("kept")).toBe("7");
    });

    test("runs a command that blocks all others without counting as dead", async () => {
      await command("EVAL", "for i = 1, 100000 do redis.call('SADD', 'numbers', i) end", "0");
      const { call, close } = await connectValkey(machine.endpoint, { user: "app_user", password });
      const slow = call("SUNION", ...Array.from({ length: 600 }, () => "numbers"));
      // New settings trigger the next check.
      const liveness = async () => {
        await machine.converge({ restartCount: 3n });
        return statusOf("liveness");
      };
      await expect.poll(liveness, { timeout: 30_000, interval: 500 }).toBe("degraded");
      expect(check("commands")?.reason).toMatch(/busy with one command/);
      expect(await slow).toHaveLength(100_000);
      await close();
      await machine.converge({ restartCount: 3n });
      await expect.poll(() => statusOf("liveness")).toBe("healthy");
      await command("DEL", "numbers");
    });

    test("rewrites its log before a client is refused, however often the same data are written", async () => {
      const { call, close } = await connectValkey(machine.endpoint, { user: "app_user", password });
      const block = "x".repeat(200_000);
      const before = machine.controller.observations.length;
      // More in total than the disk can store.
      for (let round = 0; round < 50; round += 1) {
        for (let n = 0; n < 10; n += 1) expect(await call("SET", `block-${n}`, block)).toBe("OK");
        // Time: the rate of the writer, which the log has to follow.
        await sleep(50);
      }
      await close();
      expect(machine.controller.observations.slice(before).some(({ writesBlocked }) => writesBlocked)).toBe(false);
      expect(await read("kept")).toBe("7");
    });

    test("accepts FLUSHALL on a full disk, and writes soon after", async () => {
      const block = "x".repeat(500_000);
      const { call, close } = await connectValkey(machine.endpoint, { user: "app_user", password });
      let written = 0;
      const fill = async () => {
        for (;;) await call("SET", `large-${(written += 1)}`, block);
      };
      // A rewrite of the log may release space, so that writes continue until the data fill the disk.
      const isBlocked = async () => {
        await expect(fill()).rejects.toThrow(/OOM|MISCONF/);
        return machine.controller.observations.at(-1)?.writesBlocked;
      };
      await expect.poll(isBlocked).toBe(true);
      // A completely full disk refuses it until the reserve is released.
      await expect.poll(() => call("FLUSHALL").catch(String), { timeout: 10_000 }).toBe("OK");
      await expect.poll(() => call("SET", "kept", "7").catch(String), { timeout: 10_000 }).toBe("OK");
      await close();
      await expect.poll(() => statusOf("storage")).toBe("healthy");
    });
  },
);
