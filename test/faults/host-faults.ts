import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { statOf } from "@holdfast/compute/local/process-identity.ts";
import { instanceName } from "@holdfast/compute/incus/instance-config.ts";
import { edgeTable } from "@holdfast/compute/incus/machine-edge.ts";
import { incusDirectory } from "@holdfast/local/incus-daemon.ts";
import { addressBlockOf } from "@holdfast/local/incus-host.ts";
import { expect } from "vitest";
import { ControlService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { daemonOf, firstProcessOf, listeners } from "@holdfast/testing/machines/incus-machines.ts";
import { isAlive, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { FaultFixture, WrittenService } from "./fault-fixture.ts";

const run = promisify(execFile);
const mib = 1024 ** 2;

/** Instances that Incus itself lists. */
async function instancesOf({ incus }: FaultFixture): Promise<string[]> {
  const paths = await incus.call<string[]>("GET", "/1.0/instances", AbortSignal.timeout(30_000));
  return paths.map((path) => path.split(/[/?]/)[3] ?? "").sort();
}

/**
 * Creates and then removes a service, and kills the daemon as soon as it works on that. Expects no effect on running
 * machines.
 */
export async function killDaemonAtWork(fixture: FaultFixture, bystander: WrittenService): Promise<void> {
  const { services, platform, incus, figures } = fixture;
  const keeper = await firstProcessOf(incus, bystander.machineId);
  const before = await instancesOf(fixture);
  let id = "";
  const body = {
    create: async () => void ({ id } = await services.create("made-meanwhile")),
    delete: async () => void expectStatus(await platform.rest.delete(`/managed-services/${id}`), 202),
  };
  for (const verb of ["create", "delete"] as const) {
    const daemon = await daemonOf(incus);
    await incus.events.ready(AbortSignal.timeout(30_000));
    const started = Promise.withResolvers<void>();
    const events = incus.events.subscribe({
      event: ({ type }) => type === "operation" && started.resolve(),
      opened: () => undefined,
    });
    await body[verb]();
    await started.promise;
    process.kill(daemon, "SIGKILL");
    events.close();
    const at = Date.now();
    await waitUntil("the daemon has ended", () => !isAlive(daemon));
    if (verb === "create") await services.settled(id, "Running", 150_000);
    else await services.deleted(id, 150_000);
    figures.note(`incusd killed during ${verb}`, { backMs: Date.now() - at });
  }
  expect(await instancesOf(fixture)).toEqual(before);
  expect(await firstProcessOf(incus, bystander.machineId)).toBe(keeper);
}

/** Fills the pool of machine roots: a new machine is rejected with the reason, and nothing of it remains. */
export async function fillPool(fixture: FaultFixture, bystander: WrittenService): Promise<void> {
  const { services, platform, statuses: sights, figures } = fixture;
  const { number } = listeners(platform);
  const pool = join(incusDirectory(number), "storage-pools", `holdfast-${number}`);
  const filler = join(pool, "filler");
  const before = await instancesOf(fixture);
  const { bavail, bsize } = await statfs(pool);
  await run("fallocate", ["--length", `${Math.floor((bavail * bsize) / mib) - 64}MiB`, filler]);
  // Allocations count from the file system's next transaction on.
  await run("sync", ["--file-system", pool]);
  let id: string;
  try {
    const at = Date.now();
    ({ id } = await services.create("too-much"));
    const reportedMs = await sights.until(id, "the service is in Error", at, ({ status }) => status === "Error");
    figures.note("storage pool full", { reportedMs, backMs: 0 });
    expect((await services.get(id)).error?.message).toMatch(/storage pool is too full: .* GiB/);
    expect(await instancesOf(fixture)).toEqual(before);
    const written = bystander.writer.acknowledged;
    await waitUntil("others accept writes", () => bystander.writer.acknowledged > written);
  } finally {
    await rm(filler, { force: true });
  }
  const at = Date.now();
  await waitUntil(
    "the service runs once there is space",
    async () => {
      const { status, operation } = await services.get(id);
      // As its user would.
      if (status === "Error" && operation === null) await platform.rest.post(`/managed-services/${id}/start`);
      return status === "Running" && operation === null;
    },
    { withinMs: 120_000, everyMs: 300, describe: () => services.describe(id) },
  );
  figures.note("storage pool with space again", { backMs: Date.now() - at });
  await services.delete(id);
  expect(await instancesOf(fixture)).toEqual(before);
}

/** Drains a controller: machines reconnect to a new one, and back when the new one stops. */
export async function changeController(fixture: FaultFixture, all: readonly WrittenService[]): Promise<void> {
  const { platform, figures } = fixture;
  const second = await startSecondController(platform);
  const sessionsOf = async (controllerId: string) =>
    waitUntil(`${controllerId} has all streams`, async () => {
      const { controllers } = await asOperator(platform, ControlService, (rpcs) => rpcs.listControllers({}));
      return controllers.find(({ id }) => id === controllerId)?.sessions === all.length;
    });
  try {
    const at = Date.now();
    await asOperator(platform, ControlService, (rpcs) => rpcs.drainController({ controllerId: "controller-1" }));
    await sessionsOf("controller-2");
    figures.note("controller drains, another one runs", { backMs: Date.now() - at });
    // A restarted controller does not drain.
    for (const pid of platform.processes().controllers) killImmediately(pid);
    await waitUntil("the first one is back", async () => (await platform.rest.get("/catalog")).status === 200);
  } finally {
    await second.stop();
  }
  await sessionsOf("controller-1");
}

/** Stops all controllers, and starts a new one at another address. */
export async function moveController(fixture: FaultFixture, all: readonly WrittenService[]): Promise<void> {
  const { platform, incus, figures } = fixture;
  const keepers = await Promise.all(all.map(({ machineId }) => firstProcessOf(incus, machineId)));
  const [port] = await freePorts(1);
  await platform.killControlPlane();
  await platform.start(["--agents-port", String(port)]);
  const at = Date.now();
  const backMs = await Promise.all(all.map((service) => fixture.recoveredMs(service, at)));
  expect(await Promise.all(all.map(({ machineId }) => firstProcessOf(incus, machineId)))).toEqual(keepers);
  figures.note("controller moved to another port", { backMs: Math.max(...backMs) });
}

/**
 * Simulates a power cut: no process remains, nor any mount, route or packet filter. Resolves with the start time once
 * the API responds again.
 */
export async function cutPower(
  { platform, incus }: Pick<FaultFixture, "platform" | "incus">,
  machineIds: readonly string[],
): Promise<number> {
  const { number, host_address: address } = listeners(platform);
  const keepers = await Promise.all(machineIds.map((id) => firstProcessOf(incus, id)));
  const monitors = keepers.map((pid) => statOf(pid)?.parent ?? 0);
  const pids = [...platform.processes().all, ...monitors, ...keepers];
  // All processes are stopped before the first is killed, so that none can react to the end of another.
  for (const pid of pids) killImmediately(pid, "SIGSTOP");
  for (const pid of pids) killImmediately(pid);
  await waitUntil("all processes have ended", () => pids.every((pid) => !isAlive(pid)));
  await loseMounts([platform.directory, incusDirectory(number)]);
  await run("nft", ["delete", "table", "inet", edgeTable(addressBlockOf(`127.${number}`))]);
  await run("ip", ["address", "delete", `${address}/32`, "dev", "lo"]);
  const at = Date.now();
  await platform.start();
  return at;
}

export async function rebootHosts(fixture: FaultFixture, all: readonly WrittenService[]): Promise<void> {
  const { figures } = fixture;
  const before = await instancesOf(fixture);
  const at = await cutPower(
    fixture,
    all.map(({ machineId }) => machineId),
  );
  const startMs = Date.now() - at;
  const backMs = await Promise.all(all.map((service) => fixture.recoveredMs(service, at)));
  figures.note("hosts rebooted: until the API answers", { backMs: startMs });
  figures.note("hosts rebooted: until recovery", { backMs: Math.max(...backMs) });
  expect(await instancesOf(fixture)).toEqual(before);
  expect(before).toEqual(all.map(({ machineId }) => instanceName(machineId)).sort());
}

/** Unmounts all mounts below the directories, and detaches loop devices with files there. */
async function loseMounts(directories: readonly string[]): Promise<void> {
  const isBelow = (path = "") => directories.some((directory) => path.startsWith(`${directory}/`));
  const mounts = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1])
    .filter((path) => isBelow(path))
    .reverse();
  for (const mount of mounts) await run("umount", ["--lazy", mount ?? ""]);
  const { stdout } = await run("losetup", ["--list", "--noheadings", "--output", "NAME,BACK-FILE"]);
  for (const line of stdout.split("\n")) {
    const [device = "", file = ""] = line.trim().split(/\s+/);
    // Unused loop devices detach by themselves.
    if (isBelow(file)) await run("losetup", ["--detach", device]).catch(() => undefined);
  }
}
