import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import type { Sample } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { killQuietly } from "../keeper/kill-quietly.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "../../test/support/machines/agent-machine.ts";
import { connectPostgresql, scramVerifier } from "../../test/support/engines/engine-clients.ts";
import { waitUntil } from "../../test/support/wait-until.ts";

const password = "a-password-of-the-test";
const skipped = whyNoAgentMachine("postgresql", "17");
const intervalMs = 500;
/** Half a processor can be used up also where others want the rest. */
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
      return values[slots.indexOf(metricOf(name)?.slot ?? 0)];
    }

    /** Values of a metric from this sample on; samples without it have none. */
    function valuesSince(count: number, name: string): number[] {
      return machine.controller.samples.slice(count).flatMap((sample) => valueOf(sample, name) ?? []);
    }

    const isLimited = () => machine.unlimited === undefined;

    test("come at the same times everywhere, with all that the machine can tell and why not the rest", async () => {
      await expect.poll(() => valuesSince(0, "disk_iops").length).toBeGreaterThan(1);
      const { samples } = machine.controller;
      expect(samples.every(({ timeMs }) => Number(timeMs) % intervalMs === 0)).toBe(true);
      expect(new Set(samples.map(({ timeMs }) => timeMs)).size).toBe(samples.length);
      // What came since the sample before is not known of the first one.
      expect(samples[0] && [valueOf(samples[0], "disk"), valueOf(samples[0], "disk_iops")]).toEqual([
        expect.any(Number),
        undefined,
      ]);
      const reasons = await waitUntil("the reasons of machine and engine are told", () => {
        const told = machine.controller.observations.at(-1)?.absentMetrics ?? {};
        return Object.keys(told).length === (isLimited() ? 5 : 7) ? told : undefined;
      });
      const network = expect.stringMatching(/^The machine shares its host's network/);
      const primary = "The node is the primary, which has no replication lag.";
      expect(reasons).toMatchObject({ network_in: network, network_out: network });
      for (const name of ["replication_lag_seconds", "pg_replication_lag_seconds", "replication_lag_bytes"])
        expect(reasons).toHaveProperty(name, primary);
      // The engine's figures and the agent's verdict come with those of the machine.
      await expect.poll(() => valuesSince(0, "health")).toContain(0);
      await expect.poll(() => valuesSince(0, "pg_connections")).toContain(0);
    });

    test("show how much of the plan's processor is used: all that the machine used, and hardly any when it rests", async (context) => {
      if (machine.unlimited !== undefined) context.skip(machine.unlimited);
      const burn =
        "DO $$ DECLARE until timestamptz := clock_timestamp() + '2s'; BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END $$";
      const [usedBefore, from, beganAt] = [machine.cpuUsedMs(), machine.controller.samples.length, performance.now()];
      await query(burn);
      const used = machine.cpuUsedMs() - usedBefore;
      // What others leave of the host is what it could use; the figures are to say how much that was.
      const most = used / (performance.now() - beganAt) / vcpu;
      const told = () => valuesSince(from, "cpu").reduce((sum, value) => sum + (value / 100) * intervalMs * vcpu, 0);
      await waitUntil("samples tell what it used", () => told() > used * 0.8, {
        describe: () => `${told()} of ${used}`,
      });
      const values = valuesSince(from, "cpu");
      expect(Math.max(...values)).toBeLessThanOrEqual(100);
      expect(Math.max(...values)).toBeGreaterThan(Math.min(most, 1) * 90);
      expect(told()).toBeLessThan(used * 1.5 + intervalMs);
      await expect.poll(() => valuesSince(from, "cpu").at(-1)).toBeLessThan(50);
    });

    test("show memory that sessions take as a share of the plan's", async (context) => {
      if (machine.unlimited !== undefined) context.skip(machine.unlimited);
      const before = valuesSince(0, "memory").at(-1) ?? 0;
      const from = machine.controller.samples.length;
      const megabytes = 84;
      const share = ((megabytes * 1_000_000) / memoryBytes) * 100;
      const values = () => valuesSince(from, "memory");
      const hungry = await connectPostgresql(machine.endpoint, { user: "app_user", password });
      try {
        // A sort in memory, which is kept as long as its cursor: until a sample tells of it, however late that comes.
        const lines = `SELECT repeat('x', 1000000) || n FROM generate_series(1, ${megabytes}) AS n ORDER BY 1`;
        await hungry.query("SET work_mem = '1GB'");
        await hungry.query("BEGIN");
        await hungry.query(`DECLARE held CURSOR FOR ${lines}`);
        await hungry.query("FETCH 1 FROM held");
        await waitUntil("a sample tells of it", () => values().some((value) => value > before + share * 0.9), {
          describe: () => values().join(" "),
        });
      } finally {
        await hungry.end();
      }
      expect(Math.max(...values())).toBeLessThan(before + share * 4);
    });

    test("count what the data disk does, and how full it is", async () => {
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
      // All of the time since is in samples, so that what they tell together is all that the disk did.
      const told = () => valuesSince(from, "disk_iops").reduce((sum, value) => sum + (value * intervalMs) / 1_000, 0);
      await waitUntil("samples tell what the disk did", () => told() > done * 0.7, {
        describe: () => `${told()} of ${done}`,
      });
      expect(done).toBeGreaterThan(50);
      await expect.poll(() => valuesSince(from, "disk").at(-1) ?? 0).toBeGreaterThan(full + 5);
    });

    test("wait on the disk while nobody takes them, outlive the agent, and come in order", async () => {
      const { controller } = machine;
      controller.keepsSamples = false;
      const held = () => readFileSync(join(machine.directory, "state/samples"), "utf8").trim().split("\n");
      const kept = controller.samples.length;
      await waitUntil("samples wait", () => controller.samples.length === kept && held().length > 6);
      const [agent = 0] = machine.pidsOf("node");
      const { length } = controller.hellos;
      killQuietly(agent, "SIGKILL");
      await waitUntil("another agent is there", () => controller.hellos.length > length);
      // The last line may be half written by the one that is there now.
      const waiting = await waitUntil("what waits is read in whole", () =>
        held().map((line) => BigInt(JSON.parse(line.slice(9)).t)),
      );
      controller.keepsSamples = true;
      const last = waiting.at(-1) ?? 0n;
      await waitUntil("they came", () => controller.samples.some(({ timeMs }) => timeMs > last));
      const came = controller.samples.slice(kept).map(({ timeMs }) => timeMs);
      expect(came).toEqual(came.toSorted((a, b) => Number(a - b)));
      expect(came).toEqual(expect.arrayContaining(waiting));
    });
  },
);
