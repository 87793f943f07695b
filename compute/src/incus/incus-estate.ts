import { setTimeout as sleep } from "node:timers/promises";
import { lookUp } from "@holdfast/common/look-up.ts";
import { namesIn } from "../local/atomic-file.ts";
import { layoutOf } from "../local/machine-paths.ts";
import type { IncusClient } from "./incus-client.ts";
import { IncusError, unlessThere } from "./incus-transport.ts";
import { machineIdOf } from "./instance-config.ts";
import { unmountDisk } from "./mounted-disk.ts";

/** What of an Incus is ours: a project, and a storage pool for the roots of its machines. */
export interface IncusEstate {
  readonly project: string;
  readonly pool: string;
  /** The pool is a sparse file of this size. */
  readonly poolBytes: number;
}

interface Instance {
  readonly name: string;
  readonly status: string;
}

const lookEveryMs = 50;
const ownerKey = "user.holdfast.directory";

/** Resolves when the daemon answers. */
export async function untilServing(incus: IncusClient, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await incus.call("GET", "/1.0", signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof IncusError) throw error;
      await sleep(lookEveryMs, undefined, { signal });
    }
  }
}

/**
 * The data directory whose machines are in the project; undefined when neither project nor pool is there. Throws NotOurs when
 * either is somebody else's, who chose the same name.
 */
export async function ownerOf(
  incus: IncusClient,
  { project, pool }: IncusEstate,
  signal: AbortSignal,
): Promise<string | undefined> {
  const owner = await lookFor(incus, `/1.0/projects/${project}`, signal);
  if (owner !== undefined && lookUp(owner.config, ownerKey) === undefined) throw new NotOurs(`project ${project}`);
  const storage = await lookFor(incus, poolPath(pool), signal);
  // Pools did not say whose they are once; then the project speaks for both.
  if (
    storage !== undefined &&
    (lookUp(storage.config, ownerKey) ?? lookUp(owner?.config ?? {}, ownerKey)) === undefined
  )
    throw new NotOurs(`storage pool ${pool}`);
  return lookUp(owner?.config ?? {}, ownerKey) ?? lookUp(storage?.config ?? {}, ownerKey);
}

/** Something of the daemon has a name that we need, and is not ours. */
export class NotOurs extends Error {
  override readonly name = "NotOurs";

  constructor(what: string) {
    super(`the daemon of Incus has a ${what} that Holdfast has not made; rename it, or use another daemon`);
  }
}

/** Makes what is missing of it, for a data directory. */
export async function makeEstate(
  incus: IncusClient,
  estate: IncusEstate,
  owner: string,
  signal: AbortSignal,
): Promise<void> {
  const features = Object.fromEntries(
    ["images", "profiles", "storage.volumes"].map((name) => [`features.${name}`, "true"]),
  );
  const project = { name: estate.project, config: { ...features, "features.networks": "false", [ownerKey]: owner } };
  const pool = { name: estate.pool, driver: "btrfs", config: { size: `${estate.poolBytes}B`, [ownerKey]: owner } };
  if ((await lookFor(incus, `/1.0/projects/${estate.project}`, signal)) === undefined)
    await unlessThere(incus.call("POST", "/1.0/projects", signal, project));
  if ((await lookFor(incus, poolPath(estate.pool), signal)) === undefined)
    await unlessThere(incus.call("POST", "/1.0/storage-pools", signal, pool));
}

/** Stops every machine, all at once: in order within graceMs, then by force. No controller may run meanwhile. */
export async function stopInstances(incus: IncusClient, graceMs: number, signal: AbortSignal): Promise<void> {
  const change = (name: string, body: object) => incus.run("PUT", `/1.0/instances/${name}/state`, signal, body);
  await Promise.all(
    (await instances(incus, signal)).map(async ({ name }) => {
      await incus.settled(name, signal);
      const status = await statusOf(incus, name, signal);
      if (status === "Stopped") return;
      try {
        if (status !== "Running" || graceMs === 0) throw new IncusError(400, "only by force");
        await change(name, { action: "stop", timeout: Math.ceil(graceMs / 1_000) });
      } catch (error) {
        if (!(error instanceof IncusError)) throw error;
        if ((await statusOf(incus, name, signal)) !== "Stopped") await change(name, { action: "stop", force: true });
      }
    }),
  );
}

/** Unmounts the data disks of all machines of a provider's directory; none may run. */
export async function unmountDisks(directory: string): Promise<void> {
  const layout = layoutOf(directory);
  await Promise.all((await namesIn(layout.machines)).map((id) => unmountDisk(layout.machine(id))));
}

/** Removes all of it, machines too, and nothing else. An interrupted removal is finished by the next. */
export async function removeEstate(incus: IncusClient, estate: IncusEstate, signal: AbortSignal): Promise<void> {
  if ((await ownerOf(incus, estate, signal)) === undefined) return;
  if ((await lookFor(incus, `/1.0/projects/${estate.project}`, signal)) !== undefined) {
    await stopInstances(incus, 0, signal);
    for (const { name } of await instances(incus, signal)) await incus.run("DELETE", `/1.0/instances/${name}`, signal);
    for (const path of await incus.call<string[]>("GET", "/1.0/images", signal))
      await incus.run("DELETE", path.split("?")[0] ?? "", signal);
    await incus.call("DELETE", `/1.0/projects/${estate.project}`, signal);
  }
  if ((await lookFor(incus, poolPath(estate.pool), signal)) !== undefined)
    await incus.call("DELETE", poolPath(estate.pool), signal);
}

async function instances(incus: IncusClient, signal: AbortSignal): Promise<Instance[]> {
  const all = await incus.call<Instance[]>("GET", "/1.0/instances?recursion=1", signal).catch((error: unknown) => {
    // The project is gone already.
    if (error instanceof IncusError && error.status === 404) return [];
    throw error;
  });
  return all.filter(({ name }) => machineIdOf(name) !== undefined || name.startsWith("image-"));
}

async function statusOf(incus: IncusClient, name: string, signal: AbortSignal): Promise<string> {
  return (await incus.call<Instance>("GET", `/1.0/instances/${name}`, signal)).status;
}

/** Pools are of no project; asked for by way of one that is not there, none is either. */
function poolPath(pool: string): string {
  return `/1.0/storage-pools/${pool}?project=default`;
}

/** What is at this path; undefined when nothing is. */
async function lookFor(
  incus: IncusClient,
  path: string,
  signal: AbortSignal,
): Promise<{ readonly config: Readonly<Record<string, string>> } | undefined> {
  try {
    return await incus.call("GET", path, signal);
  } catch (error) {
    if (error instanceof IncusError && error.status === 404) return undefined;
    throw error;
  }
}
