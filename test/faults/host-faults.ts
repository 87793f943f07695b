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
import { asOperator } from "../support/platform/organizations.ts";
import { startSecondController } from "../support/platform/second-controller.ts";
import { daemonOf, firstProcessOf, listeners } from "../support/machines/incus-machines.ts";
import { isAlive, killAtOnce } from "../support/platform/platform-processes.ts";
import { expectStatus } from "../support/platform/services.ts";
import { freePorts } from "../support/platform/free-ports.ts";
import { waitUntil } from "../support/wait-until.ts";
import type { FaultGround, WrittenService } from "./fault-ground.ts";

const run = promisify(execFile);
const mib = 1024 ** 2;

/** Incus as it has them, whoever believes what. */
async function instancesOf({ incus }: FaultGround): Promise<string[]> {
  const paths = await incus.call<string[]>("GET", "/1.0/instances", AbortSignal.timeout(30_000));
  return paths.map((path) => path.split(/[/?]/)[3] ?? "").sort();
}

/** A service is made, and then removed, by a daemon that is killed as soon as it began. Running machines do not notice. */
export async function killDaemonAtWork(ground: FaultGround, bystander: WrittenService): Promise<void> {
  const { services, platform, incus, figures } = ground;
  const keeper = await firstProcessOf(incus, bystander.machineId);
  const before = await instancesOf(ground);
  let id = "";
  const asked = {
    create: async () => void ({ id } = await services.create("made-meanwhile")),
    delete: async () => void expectStatus(await platform.rest.delete(`/managed-services/${id}`), 202),
  };
  for (const verb of ["create", "delete"] as const) {
    const daemon = await daemonOf(incus);
    await incus.events.ready(AbortSignal.timeout(30_000));
    const begun = Promise.withResolvers<void>();
    const events = incus.events.subscribe({
      event: ({ type }) => type === "operation" && begun.resolve(),
      opened: () => undefined,
    });
    await asked[verb]();
    await begun.promise;
    process.kill(daemon, "SIGKILL");
    events.close();
    const at = Date.now();
    await waitUntil("the daemon is gone", () => !isAlive(daemon));
    if (verb === "create") await services.settled(id, "Running", 150_000);
    else await services.gone(id, 150_000);
    figures.note(`incusd killed during ${verb}`, { backMs: Date.now() - at });
  }
  expect(await instancesOf(ground)).toEqual(before);
  expect(await firstProcessOf(incus, bystander.machineId)).toBe(keeper);
}

/** The roots of machines have no room: a new one is refused with the reason, and nothing of it stays. */
export async function fillPool(ground: FaultGround, bystander: WrittenService): Promise<void> {
  const { services, platform, sights, figures } = ground;
  const { number } = listeners(platform);
  const pool = join(incusDirectory(number), "storage-pools", `holdfast-${number}`);
  const filler = join(pool, "filler");
  const before = await instancesOf(ground);
  const { bavail, bsize } = await statfs(pool);
  await run("fallocate", ["--length", `${Math.floor((bavail * bsize) / mib) - 64}MiB`, filler]);
  // What is allocated counts from the file system's next transaction on.
  await run("sync", ["--file-system", pool]);
  let id: string;
  try {
    const at = Date.now();
    ({ id } = await services.create("too-much"));
    const shownMs = await sights.until(id, "the service is in Error", at, ({ status }) => status === "Error");
    figures.note("storage pool full", { shownMs, backMs: 0 });
    expect((await services.get(id)).error?.message).toMatch(/storage pool is too full: .* GiB/);
    expect(await instancesOf(ground)).toEqual(before);
    const written = bystander.writer.acknowledged;
    await waitUntil("others take writes", () => bystander.writer.acknowledged > written);
  } finally {
    await rm(filler, { force: true });
  }
  const at = Date.now();
  await waitUntil(
    "the service runs once there is room",
    async () => {
      const { status, operation } = await services.get(id);
      // As its user would.
      if (status === "Error" && operation === null) await platform.rest.post(`/managed-services/${id}/start`);
      return status === "Running" && operation === null;
    },
    { withinMs: 120_000, everyMs: 300, describe: () => services.describe(id) },
  );
  figures.note("storage pool with room again", { backMs: Date.now() - at });
  await services.delete(id);
  expect(await instancesOf(ground)).toEqual(before);
}

/** Machines follow from a controller that drains to one that is new, and back when that one leaves. */
export async function changeController(ground: FaultGround, all: readonly WrittenService[]): Promise<void> {
  const { platform, figures } = ground;
  const second = await startSecondController(platform);
  const held = async (controllerId: string) =>
    waitUntil(`${controllerId} has all streams`, async () => {
      const { controllers } = await asOperator(platform, ControlService, (rpcs) => rpcs.listControllers({}));
      return controllers.find(({ id }) => id === controllerId)?.sessions === all.length;
    });
  try {
    const at = Date.now();
    await asOperator(platform, ControlService, (rpcs) => rpcs.drainController({ controllerId: "controller-1" }));
    await held("controller-2");
    figures.note("controller drains, another is there", { backMs: Date.now() - at });
    // Started anew, it drains no more.
    for (const pid of platform.processes().controllers) killAtOnce(pid);
    await waitUntil("the first one is back", async () => (await platform.rest.get("/catalog")).status === 200);
  } finally {
    await second.stop();
  }
  await held("controller-1");
}

/** All controllers there were are gone, and the new one listens elsewhere. */
export async function moveController(ground: FaultGround, all: readonly WrittenService[]): Promise<void> {
  const { platform, incus, figures } = ground;
  const keepers = await Promise.all(all.map(({ machineId }) => firstProcessOf(incus, machineId)));
  const [port] = await freePorts(1);
  await platform.killControlPlane();
  await platform.start(["--agents-port", String(port)]);
  const at = Date.now();
  const backMs = await Promise.all(all.map((service) => ground.back(service, at)));
  expect(await Promise.all(all.map(({ machineId }) => firstProcessOf(incus, machineId)))).toEqual(keepers);
  figures.note("controller moved to another port", { backMs: Math.max(...backMs) });
}

/** As after a power cut: no process is left, and of what was mounted, routed and filtered nothing either. Resolves once the API answers again, with when it was started. */
export async function cutPower(
  { platform, incus }: Pick<FaultGround, "platform" | "incus">,
  machineIds: readonly string[],
): Promise<number> {
  const { number, host_address: address } = listeners(platform);
  const keepers = await Promise.all(machineIds.map((id) => firstProcessOf(incus, id)));
  const monitors = keepers.map((pid) => statOf(pid)?.parent ?? 0);
  const pids = [...platform.processes().all, ...monitors, ...keepers];
  // All stand still before the first dies, so that none can act on another one's end.
  for (const pid of pids) killAtOnce(pid, "SIGSTOP");
  for (const pid of pids) killAtOnce(pid);
  await waitUntil("all of it is gone", () => pids.every((pid) => !isAlive(pid)));
  await losePlaces([platform.directory, incusDirectory(number)]);
  await run("nft", ["delete", "table", "inet", edgeTable(addressBlockOf(`127.${number}`))]);
  await run("ip", ["address", "delete", `${address}/32`, "dev", "lo"]);
  const at = Date.now();
  await platform.start();
  return at;
}

export async function rebootHosts(ground: FaultGround, all: readonly WrittenService[]): Promise<void> {
  const { figures } = ground;
  const before = await instancesOf(ground);
  const at = await cutPower(
    ground,
    all.map(({ machineId }) => machineId),
  );
  const startMs = Date.now() - at;
  const backMs = await Promise.all(all.map((service) => ground.back(service, at)));
  figures.note("hosts rebooted: until the API answers", { backMs: startMs });
  figures.note("hosts rebooted: until all is well", { backMs: Math.max(...backMs) });
  expect(await instancesOf(ground)).toEqual(before);
  expect(before).toEqual(all.map(({ machineId }) => instanceName(machineId)).sort());
}

/** Mounts below the directories, and loop devices with files there. */
async function losePlaces(directories: readonly string[]): Promise<void> {
  const isOurs = (path = "") => directories.some((directory) => path.startsWith(`${directory}/`));
  const mounts = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1])
    .filter((path) => isOurs(path))
    .reverse();
  for (const mount of mounts) await run("umount", ["--lazy", mount ?? ""]);
  const { stdout } = await run("losetup", ["--list", "--noheadings", "--output", "NAME,BACK-FILE"]);
  for (const line of stdout.split("\n")) {
    const [device = "", file = ""] = line.trim().split(/\s+/);
    // Those that nothing holds any more go by themselves.
    if (isOurs(file)) await run("losetup", ["--detach", device]).catch(() => undefined);
  }
}
