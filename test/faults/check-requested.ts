import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { openPostgresql, openValkey } from "@holdfast/testing/api/clients.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { preparedDisks, type Platform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import type { PageJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { RequestLog, RequestedService } from "./requested-services.ts";

const run = promisify(execFile);
const convergeMs = 120_000;
const warmPoolSize = 2;

/** Settings of the platform: a fixed number of warm-pool machines, and first backups while processes are killed. */
export const faultSettings: Readonly<Record<string, string>> = {
  ...preparedDisks,
  HOLDFAST_WAITING_MACHINES: String(warmPoolSize),
  HOLDFAST_WAITING_MACHINES_MAX: String(warmPoolSize),
  HOLDFAST_FIRST_BACKUP_AFTER_S: "5",
};

/** Throws unless every accepted request has its result, and nothing else exists. */
export async function checkRequested(platform: Platform, requests: RequestLog): Promise<void> {
  for (const service of requests.services) await checkService(platform, service);
  await checkList(platform, requests);
  const waiting = await warmMachines(platform);
  const idle = [...waiting, ...(await retainedMachines(platform, requests))];
  await untilPassing("only requested machines exist", () => checkMachines(platform, requests, { waiting, idle }));
  await checkNames(platform, requests);
  await untilPassing("only requested objects are in the store", () => checkStore(platform, requests, idle));
}

/** Waits, because some lists show the effects of a deletion or a new machine only after a delay. */
function untilPassing(what: string, check: () => Promise<void>): Promise<boolean> {
  return waitUntil(what, () => check().then(() => true), { withinMs: convergeMs, everyMs: 200 });
}

/**
 * Ids of the machines of the warm pool, once the pool has exactly its configured size: none is being created or
 * deleted, and none has an owner.
 */
async function warmMachines(platform: Platform): Promise<string[]> {
  return asOperator(platform, FleetService, (fleet) => {
    const check = async () => {
      const { machines } = await fleet.listMachines({ page: { limit: 200 } });
      const unowned = machines.filter(({ ownerKind }) => ownerKind === "");
      const rest = unowned.every(({ state, desired }) => state === "waiting" && desired === "on");
      return rest && unowned.length === warmPoolSize ? unowned.map(({ id }) => id) : undefined;
    };
    return waitUntil("the warm pool is full", check, {
      withinMs: convergeMs,
      everyMs: 200,
      describe: async () => lastLogLines(platform.directory, 10),
    });
  });
}

/**
 * Ids of machines whose disk is retained until the undelete window of the service ends, because the service was not
 * running when it was deleted, and had an archive.
 */
async function retainedMachines(platform: Platform, requests: RequestLog): Promise<string[]> {
  const isArchive = (key: string) => key.startsWith("/holdfast/v1/archive/");
  const archives = [...(await dumpEtcd(platform.directory))].filter(([key]) => isArchive(key));
  const retained = archives.flatMap(([, value]) => {
    // oxlint-disable-next-line holdfast/names -- a stored key
    const { status } = JSON.parse(value) as { status: { deleted: { keptNodes?: string[] } | null } };
    // oxlint-disable-next-line holdfast/names -- a stored key
    return status.deleted?.keptNodes ?? [];
  });
  const withUndelete = requests.services.filter(({ desired, isPermanent }) => desired === "deleted" && !isPermanent);
  const nodeIds = new Set(withUndelete.flatMap((service) => service.nodeIds));
  expectSame(
    "retained disks of services without undelete",
    retained.filter((id) => !nodeIds.has(id)),
    [],
  );
  return retained;
}

async function checkService(platform: Platform, service: RequestedService): Promise<void> {
  const services = createServices(platform);
  const { id, desired, name } = service;
  const describe = async () =>
    `requested: ${JSON.stringify({ ...service, users: [...service.users] })}\nis: ${await services.describe(id)}`;
  const check = async () => {
    const response = await platform.rest.get<ServiceJson>(`/managed-services/${id}`);
    if (desired === "deleted") return response.status === 404;
    const { status, operation } = response.json;
    return response.status === 200 && status === desired && operation === null;
  };
  await waitUntil(`${name} is ${desired} and no operation is in progress`, check, {
    withinMs: convergeMs,
    everyMs: 100,
    describe,
  });
  if (desired === "deleted") return;
  const { tags, allowed_cidrs: allowedCidrs } = await services.get(id);
  expectSame(`tags of ${name}`, tags, service.tags);
  expectSame(`allowed_cidrs of ${name}`, allowedCidrs, service.allowedCidrs);
  // A backup delays no other operation of its service, so it may end last.
  await untilPassing(`every operation of ${name} has ended`, async () => {
    const open = (await services.operations(id)).filter(({ finished_at }) => finished_at === null);
    expectSame(`operations of ${name} without an end`, open, []);
  });
  if (desired !== "Running") return;
  await waitUntil(`${name} lets its users in`, () => canSignIn(platform, service), {
    everyMs: 200,
    describe,
  });
}

/** Expects that every created user can sign in with the password that the API reveals. */
async function canSignIn(platform: Platform, { id, engine, users }: RequestedService): Promise<boolean> {
  const { connection } = await createServices(platform).open(id);
  for (const user of ["app_user", ...users]) {
    const path = `/managed-services/${id}/database-users/${user}/reveal-password`;
    const { status, json, text } = await platform.rest.post<{ password: string }>(path);
    if (status !== 200) throw new Error(`revealing the password of ${user}: ${status} ${text}`);
    const login = { user, password: json.password };
    if (engine === "postgresql") {
      const client = await openPostgresql(platform, connection, login);
      await client.query("SELECT 1");
      await client.end();
    } else {
      (await openValkey(platform, connection, login)).disconnect();
    }
  }
  return true;
}

async function checkList(platform: Platform, requests: RequestLog): Promise<void> {
  const { json } = await platform.rest.get<PageJson<"services", ServiceJson>>("/managed-services?limit=200");
  expectSame(
    "names of services",
    json.services.map(({ name }) => name).sort(),
    requests
      .living()
      .map(({ name }) => name)
      .sort(),
  );
}

async function checkMachines(
  platform: Platform,
  requests: RequestLog,
  { waiting, idle }: { waiting: readonly string[]; idle: readonly string[] },
): Promise<void> {
  const living = requests.living();
  const nodes = [...idle, ...living.flatMap(({ nodeIds }) => nodeIds)].sort();
  const up = living.filter(({ desired }) => desired === "Running");
  const running = [...waiting, ...up.flatMap(({ nodeIds }) => nodeIds)].sort();
  await asOperator(platform, FleetService, async (fleet) => {
    const { machines } = await fleet.listMachines({ page: { limit: 200 } });
    expectSame("machines in the store", machines.map(({ id }) => id).sort(), nodes);
    const { orphans } = await fleet.sweepOrphans({ dryRun: true });
    expectSame(
      "machines without an owner",
      orphans.map(({ machineId }) => machineId),
      [],
    );
  });
  expectSame(
    "machines with processes",
    platform
      .processes()
      .machines.map(({ id }) => id)
      .sort(),
    running,
  );
  const directory = join(platform.directory, "machines");
  expectSame("directories of machines", existsSync(directory) ? readdirSync(directory).sort() : [], nodes);
  if (asRoot) expectSame("loop devices", await loopDevices(platform.directory), running);
}

/** Ids of the machines whose disk is attached to a loop device. */
async function loopDevices(directory: string): Promise<string[]> {
  const { stdout } = await run("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"]);
  // The kernel names a file by the machine's own mounts, without the path above the host's mount point.
  const machinesPath = `/${basename(directory)}/machines/`;
  return stdout
    .split("\n")
    .flatMap((file) => file.split(machinesPath)[1]?.split("/")[0] ?? [])
    .sort();
}

async function checkNames(platform: Platform, requests: RequestLog): Promise<void> {
  for (const { hostname, desired } of requests.services) {
    await waitUntil(`${hostname} is ${desired === "deleted" ? "no name" : "a name"}`, async () => {
      const addresses = await resolveName(platform.admin.dns_server, hostname);
      return addresses.length === (desired === "deleted" ? 0 : 1);
    });
  }
}

/** Expects no key of a deleted object in etcd, except records with a retention time. */
async function checkStore(platform: Platform, requests: RequestLog, idle: readonly string[]): Promise<void> {
  const keys = [...(await dumpEtcd(platform.directory)).keys()];
  const below = (kind: string) =>
    keys
      .filter((key) => key.startsWith(`/holdfast/v1/${kind}/`))
      .map((key) => key.split("/").slice(4).join("/"))
      .sort();
  const living = requests.living();
  const ids = living.map(({ id }) => id).sort();
  expectSame("keys of services", below("managed-service"), ids);
  const machines = [...idle, ...living.flatMap(({ nodeIds }) => nodeIds)];
  expectSame("keys of machines", below("machine"), machines.sort());
  expectSame(
    "keys of names",
    below("name/managed-service")
      .map((key) => key.split("/").at(-1))
      .sort(),
    living.map(({ name }) => name).sort(),
  );
  const users = living.flatMap(({ id, users: created }) => ["app_user", ...created].map((user) => `${id}.${user}`));
  expectSame("keys of users", below("database-user"), users.sort());
  const deleted = requests.services.filter(({ desired }) => desired === "deleted").map(({ hostname }) => hostname);
  expectSame(
    "keys of names of deleted services",
    below("dns-record").filter((name) => deleted.some((host) => name.endsWith(host))),
    [],
  );
}

function expectSame(what: string, actual: unknown, expected: unknown): void {
  const [actualText, expectedText] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (actualText !== expectedText) throw new Error(`${what}:\n  expected ${expectedText}\n  actual   ${actualText}`);
}
