import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import type { Sample } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { signalIfAlive } from "../keeper/signal-process.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const password = "a-password-of-the-test";
const skipped = whyNoAgentMachine("postgresql", "17");
const intervalMs = 500;
/** Half a CPU can be used up even on a busy host. */
const vcpu = 0.5;
const memoryBytes = 700 << 20;
const diskBytes = 600 << 20;

describe.skipIf(skipped !== undefined)(
  `samples of a machine under load${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let machine: AgentMachine;

    beforeAll(async () => {
      machine = await startAgentMachine({
        engine: "postgresql",
        version: "17",
        vcpu,
        memoryBytes,
        diskBytes,
        diskIsDevice: true,
        sampleIntervalMs: intervalMs,
        spec: {
          storageBytes: BigInt(diskBytes),
          users: [{ username: "app_user", role: "admin", verifier: scramVerifier(password) }],
          databases: ["defaultdb"],
        },
      });
      await machine.converge();
    });
    afterAll(() => machine?.remove());
    beforeEach(() => onTestFailed(() => console.log(machine.log())));

    async function query(sql: string): Promise<void> {
      const client = await connectPostgresql(machine.endpoint, { user: "app_user", password });
      try {
        await client.query(sql);
      } finally {
        await client.end();
      }
    }

    function valueOf({ slots, values }: Sample, name: string): number | undefined {
      return values[slots.indexOf(metricOf(name)?.number ?? 0)];
    }

    /** Values of a metric from this sample on; samples without it have none. */
    function valuesSince(count: number, name: string): number[] {
      return machine.controller.samples.slice(count).flatMap((sample) => valueOf(sample, name) ?? []);
    }

    const isLimited = () => machine.unlimited === undefined;

    test("are taken at the same times everywhere, with a reason for each missing metric", async () => {
      await expect.poll(() => valuesSince(0, "disk_iops").length).toBeGreaterThan(1);
      const { samples } = machine.controller;
      expect(samples.every(({ timeMs }) => Number(timeMs) % intervalMs === 0)).toBe(true);
      expect(new Set(samples.map(({ timeMs }) => timeMs)).size).toBe(samples.length);
      // The first sample has no rate, since the time before it is unknown.
      expect(samples[0] && [valueOf(samples[0], "disk"), valueOf(samples[0], "disk_iops")]).toEqual([
        expect.any(Number),
        undefined,
      ]);
      const reasons = await waitUntil("the reasons of machine and engine are reported", () => {
        const reported = machine.controller.observations.at(-1)?.absentMetrics ?? {};
        return Object.keys(reported).length === (isLimited() ? 5 : 7) ? reported : undefined;
      });
      const network = expect.stringMatching(/^The machine shares its host's network/);
      const primary = "The node is the primary, which has no replication lag.";
      expect(reasons).toMatchObject({ network_in: network, network_out: network });
      for (const name of ["replication_lag_seconds", "pg_replication_lag_seconds", "replication_lag_bytes"])
        expect(reasons).toHaveProperty(name, primary);
      // The metrics of engine and health arrive together with the machine's.
      await expect.poll(() => valuesSince(0, "health")).toContain(0);
      await expect.poll(() => valuesSince(0, "pg_connections")).toContain(0);
    });

    test("show the share of the plan's CPU that the machine uses, near zero when idle", async (context) => {
      if (machine.unlimited !== undefined) context.skip(machine.unlimited);
      const burn =
        "DO $$ DECLARE until timestamptz := clock_timestamp() + '2s'; BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END $$";
      const [usedBefore, from, beganAt] = [machine.cpuUsedMs(), machine.controller.samples.length, performance.now()];
      await query(burn);
      const used = machine.cpuUsedMs() - usedBefore;
      // Other load on the host limits the CPU that it can use; the metrics must show how much it used.
      const highest = used / (performance.now() - beganAt) / vcpu;
      const reported = () =>
        valuesSince(from, "cpu").reduce((sum, value) => sum + (value / 100) * intervalMs * vcpu, 0);
      await waitUntil("samples show its use", () => reported() > used * 0.8, {
        describe: () => `${reported()} of ${used}`,
      });
      const values = valuesSince(from, "cpu");
      expect(Math.max(...values)).toBeLessThanOrEqual(100);
      expect(Math.max(...values)).toBeGreaterThan(Math.min(highest, 1) * 90);
      expect(reported()).toBeLessThan(used * 1.5 + intervalMs);
      await expect.poll(() => valuesSince(from, "cpu").at(-1)).toBeLessThan(50);
    });

    test("show the memory of sessions as a share of the plan's", async (context) => {
      if (machine.unlimited !== undefined) context.skip(machine.unlimited);
      const before = valuesSince(0, "memory").at(-1) ?? 0;
      const from = machine.controller.samples.length;
      const megabytes = 84;
      const share = ((megabytes * 1_000_000) / memoryBytes) * 100;
      const values = () => valuesSince(from, "memory");
      const hungry = await connectPostgresql(machine.endpoint, { user: "app_user", password });
      try {
        // A sort in memory, retained as long as its cursor, until a sample shows it, however late.
        const lines = `SELECT repeat('x', 1000000) || n FROM generate_series(1, ${megabytes}) AS n ORDER BY 1`;
        await hungry.query("SET work_mem = '1GB'");
        await hungry.query("BEGIN");
        await hungry.query(`DECLARE held CURSOR FOR ${lines}`);
        await hungry.query("FETCH 1 FROM held");
        await waitUntil("a sample shows it", () => values().some((value) => value > before + share * 0.9), {
          describe: () => values().join(" "),
        });
      } finally {
        await hungry.end();
      }
      expect(Math.max(...values())).toBeLessThan(before + share * 4);
    });

    test("count operations and use of the data disk", async () => {
      const device = basename(
        execFileSync("losetup", [
          "--associated",
          join(machine.directory, "disk.img"),
          "--noheadings",
          "--output",
          "NAME",
        ])
          .toString()
          .trim(),
      );
      const counted = () => {
        const line = readFileSync("/proc/diskstats", "utf8")
          .split("\n")
          .find((each) => each.includes(` ${device} `));
        const fields = line?.trim().split(/\s+/) ?? [];
        return Number(fields[3]) + Number(fields[7]);
      };
      const [before, full] = [counted(), valuesSince(0, "disk").at(-1) ?? 0];
      const from = machine.controller.samples.length;
      await query("CREATE TABLE filled AS SELECT repeat(i::text, 100) AS line FROM generate_series(1, 150000) AS i");
      for (let index = 0; index < 50; index += 1) await query("INSERT INTO filled VALUES ('one')");
      const done = counted() - before;
      // The samples cover all of the time since, so their sum is all that the disk did.
      const reported = () =>
        valuesSince(from, "disk_iops").reduce((sum, value) => sum + (value * intervalMs) / 1_000, 0);
      await waitUntil("samples show the disk's operations", () => reported() > done * 0.7, {
        describe: () => `${reported()} of ${done}`,
      });
      expect(done).toBeGreaterThan(50);
      await expect.poll(() => valuesSince(from, "disk").at(-1) ?? 0).toBeGreaterThan(full + 5);
    });

    test("wait on disk during an outage, survive the agent, and arrive in order", async () => {
      const { controller } = machine;
      controller.storesSamples = false;
      const spooled = () => readFileSync(join(machine.directory, "state/samples"), "utf8").trim().split("\n");
      const received = controller.samples.length;
      await waitUntil("samples wait", () => controller.samples.length === received && spooled().length > 6);
      const [agent = 0] = machine.pidsOf("node");
      const { length } = controller.hellos;
      signalIfAlive(agent, "SIGKILL");
      await waitUntil("another agent is there", () => controller.hellos.length > length);
      // The last line may be incomplete while the current agent writes it.
      const waiting = await waitUntil("the waiting samples are read completely", () =>
        spooled().map((line) => BigInt(JSON.parse(line.slice(9)).t)),
      );
      controller.storesSamples = true;
      const last = waiting.at(-1) ?? 0n;
      await waitUntil("they came", () => controller.samples.some(({ timeMs }) => timeMs > last));
      const came = controller.samples.slice(received).map(({ timeMs }) => timeMs);
      expect(came).toEqual(came.toSorted((a, b) => Number(a - b)));
      expect(came).toEqual(expect.arrayContaining(waiting));
    });
  },
);
