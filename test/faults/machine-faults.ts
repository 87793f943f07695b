import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import { expect } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { firstProcessOf } from "@holdfast/testing/machines/incus-machines.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type FaultFixture, setFrozen, type WrittenService } from "./fault-fixture.ts";
import type { StatusSample } from "./status-samples.ts";

const run = promisify(execFile);

/** True if the machine is reported unreachable, and its engine's health unknown. */
export const isUnreachable = ({ node, health }: StatusSample) => node === "Unreachable" && health === "unknown";

export async function killMachine(fixture: FaultFixture, service: WrittenService): Promise<void> {
  const { statuses: sights, figures, incus } = fixture;
  const at = Date.now();
  process.kill(await firstProcessOf(incus, service.machineId), "SIGKILL");
  const reportedMs = await sights.until(
    service.id,
    "the service is not reported healthy",
    at,
    ({ node, health }) => node !== "Running" || health !== "healthy",
  );
  figures.note(`machine killed (${service.service.database_type})`, {
    reportedMs,
    backMs: await fixture.recoveredMs(service, at + reportedMs),
  });
}

export async function pauseMachine(fixture: FaultFixture, service: WrittenService, pauseMs: number): Promise<void> {
  const { statuses: sights, figures, incus } = fixture;
  const keeper = await firstProcessOf(incus, service.machineId);
  const at = Date.now();
  await setFrozen(incus, service.machineId, true);
  let reportedMs: number;
  try {
    reportedMs = await sights.until(service.id, "the machine is reported unreachable", at, isUnreachable);
    // Time: the length of the pause.
    await sleep(Math.max(0, at + pauseMs - Date.now()));
    const rest = sights.since(service.id, at + reportedMs + 1);
    expect(rest.every(isUnreachable), JSON.stringify(rest)).toBe(true);
  } finally {
    await setFrozen(incus, service.machineId, false);
  }
  const backMs = await fixture.recoveredMs(service, Date.now());
  expect(await firstProcessOf(incus, service.machineId)).toBe(keeper);
  figures.note(`machine paused for ${pauseMs / 1_000} s`, { reportedMs, backMs });
}

/** Fills the disk to the last byte; writes fail until space is free again, and no acknowledged row is lost. */
export async function fillDisk(fixture: FaultFixture, service: WrittenService): Promise<void> {
  const { statuses: sights, figures, platform } = fixture;
  const disk = layoutOf(platform.directory).machine(service.machineId).dataDirectory;
  const filler = join(disk, "filler");
  const at = Date.now();
  await fill(filler);
  let reportedMs: number;
  try {
    reportedMs = await sights.until(service.id, "health reports the full disk", at, ({ reason }) =>
      /disk (is full|takes no writes|is (at least )?\d+% full)/i.test(reason),
    );
    if (service.service.database_type === "postgresql")
      await expect(
        queryOnce(
          platform,
          service.connection,
          service,
          "CREATE TABLE more AS SELECT generate_series(1, 1000000) AS n",
        ),
      ).rejects.toThrow(/No space left|disk is full|read-only|terminat|connection|ECONN|timeout|recovery|starting up/i);
    // Time: the length of the fault, in which a restart fails.
    await sleep(3_000);
  } finally {
    await rm(filler, { force: true });
  }
  figures.note(`data disk full (${service.service.database_type})`, {
    reportedMs,
    backMs: await fixture.recoveredMs(service, Date.now()),
  });
}

/** Leaves less than a MiB of its file system free. */
async function fill(file: string): Promise<void> {
  let sizeMib = 0;
  for (let stepMib = 512; stepMib >= 1; ) {
    try {
      await run("fallocate", ["--offset", `${sizeMib}MiB`, "--length", `${stepMib}MiB`, file]);
      sizeMib += stepMib;
    } catch {
      stepMib /= 2;
    }
  }
}

/** Runs a query that needs more memory than the plan has, so that the kernel kills its process. */
export async function exhaustMemory(fixture: FaultFixture, service: WrittenService): Promise<void> {
  const { statuses: sights, figures, platform, incus } = fixture;
  const keeper = await firstProcessOf(incus, service.machineId);
  // The engine builds the complete row in memory.
  const greedy = Array.from({ length: 8 }, () => "length(repeat(repeat('x', 1024), 900000))");
  await expect(queryOnce(platform, service.connection, service, `SELECT ${greedy.join(" + ")}`)).rejects.toThrow(
    /terminat|timeout|closed|ECONN/i,
  );
  const at = Date.now();
  const before = service.writer.acknowledged;
  // On a busy machine the client may give up before the kernel kills anything.
  const reportedMs = await sights.until(
    service.id,
    "health reports the lack of memory",
    at,
    ({ unhealthy: ill, reason }) => ill.includes("memory") && reason.startsWith("Out of memory: the kernel ended"),
    150_000,
  );
  await waitUntil("the engine acknowledges writes again", () => service.writer.acknowledged > before, {
    withinMs: 120_000,
  });
  const backMs = Date.now() - at;
  expect(await firstProcessOf(incus, service.machineId)).toBe(keeper);
  figures.note("memory exhausted", { reportedMs, backMs });
}
