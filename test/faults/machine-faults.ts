import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import { expect } from "vitest";
import { queryOnce } from "../support/api/clients.ts";
import { firstProcessOf } from "../support/machines/incus-machines.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type FaultGround, setFrozen, type WrittenService } from "./fault-ground.ts";
import type { Sight } from "./sights.ts";

const run = promisify(execFile);

/** Nobody hears of the machine, and nothing is claimed of its engine. */
export const isUnreachable = ({ node, health }: Sight) => node === "Unreachable" && health === "unknown";

export async function killMachine(ground: FaultGround, service: WrittenService): Promise<void> {
  const { sights, figures, incus } = ground;
  const at = Date.now();
  process.kill(await firstProcessOf(incus, service.machineId), "SIGKILL");
  const shownMs = await sights.until(
    service.id,
    "the service is not said to be well",
    at,
    ({ node, health }) => node !== "Running" || health !== "healthy",
  );
  figures.note(`machine killed (${service.service.database_type})`, {
    shownMs,
    backMs: await ground.back(service, at + shownMs),
  });
}

export async function pauseMachine(ground: FaultGround, service: WrittenService, pauseMs: number): Promise<void> {
  const { sights, figures, incus } = ground;
  const keeper = await firstProcessOf(incus, service.machineId);
  const at = Date.now();
  await setFrozen(incus, service.machineId, true);
  let shownMs: number;
  try {
    shownMs = await sights.until(service.id, "the machine is said to be unreachable", at, isUnreachable);
    await sleep(Math.max(0, at + pauseMs - Date.now()));
    const rest = sights.since(service.id, at + shownMs + 1);
    expect(rest.every(isUnreachable), JSON.stringify(rest)).toBe(true);
  } finally {
    await setFrozen(incus, service.machineId, false);
  }
  const backMs = await ground.back(service, Date.now());
  expect(await firstProcessOf(incus, service.machineId)).toBe(keeper);
  figures.note(`machine paused for ${pauseMs / 1_000} s`, { shownMs, backMs });
}

/** Until there is not a byte left; what is written until it is free again fails, and nothing that was acknowledged. */
export async function fillDisk(ground: FaultGround, service: WrittenService): Promise<void> {
  const { sights, figures, platform } = ground;
  const disk = layoutOf(platform.directory).machine(service.machineId).dataDirectory;
  const filler = join(disk, "filler");
  const at = Date.now();
  await fill(filler);
  let shownMs: number;
  try {
    shownMs = await sights.until(service.id, "health says that the disk is full", at, ({ reason }) =>
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
    // Long enough for a restart that cannot work.
    await sleep(3_000);
  } finally {
    await rm(filler, { force: true });
  }
  figures.note(`data disk full (${service.service.database_type})`, {
    shownMs,
    backMs: await ground.back(service, Date.now()),
  });
}

/** Leaves not a MiB of what its file system has. */
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

/** A query that takes more than the plan has: the kernel ends what does not fit. */
export async function exhaustMemory(ground: FaultGround, service: WrittenService): Promise<void> {
  const { sights, figures, platform, incus } = ground;
  const keeper = await firstProcessOf(incus, service.machineId);
  // What a row is made from is all in memory until the row is done.
  const greedy = Array.from({ length: 8 }, () => "length(repeat(repeat('x', 1024), 900000))");
  await expect(queryOnce(platform, service.connection, service, `SELECT ${greedy.join(" + ")}`)).rejects.toThrow(
    /terminat|timeout|closed|ECONN/i,
  );
  const at = Date.now();
  const before = service.writer.acknowledged;
  // On a busy machine the client gives up before the kernel has anything to end.
  const shownMs = await sights.until(
    service.id,
    "health says that memory ran out",
    at,
    ({ ill, reason }) => ill.includes("memory") && reason.startsWith("Out of memory: the kernel ended"),
    150_000,
  );
  await waitUntil("the engine acknowledges writes again", () => service.writer.acknowledged > before, {
    withinMs: 120_000,
  });
  const backMs = Date.now() - at;
  expect(await firstProcessOf(incus, service.machineId)).toBe(keeper);
  figures.note("memory exhausted", { shownMs, backMs });
}
