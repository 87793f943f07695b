import { setTimeout as sleep } from "node:timers/promises";
import { lookUp } from "@holdfast/common/look-up.ts";
import { namesIn } from "../local/atomic-file.ts";
import { layoutOf } from "../local/machine-paths.ts";
import type { IncusClient } from "./incus-client.ts";
import { IncusError, ignoreExisting } from "./incus-transport.ts";
import { machineIdOf } from "./instance-config.ts";
import { unmountDisk } from "./mounted-disk.ts";

/** Resources of an installation in Incus: a project, and a storage pool for the machines' roots. */
export interface IncusResources {
  readonly project: string;
  readonly pool: string;
  /** Size of the pool, which is a sparse file. */
  readonly poolBytes: number;
}

interface Instance {
  readonly name: string;
  readonly status: string;
}

const pollIntervalMs = 50;
const ownerKey = "user.holdfast.directory";

/** Resolves when the daemon responds. */
export async function untilServing(incus: IncusClient, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await incus.call("GET", "/1.0", signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof IncusError) throw error;
      await sleep(pollIntervalMs, undefined, { signal });
    }
  }
}

/**
 * The data directory whose machines are in the project; undefined if neither project nor pool exists. Throws
 * ForeignResource if one of them was not created by Holdfast.
 */
export async function ownerOf(
  incus: IncusClient,
  { project, pool }: IncusResources,
  signal: AbortSignal,
): Promise<string | undefined> {
  const owner = await findResource(incus, `/1.0/projects/${project}`, signal);
  if (owner !== undefined && lookUp(owner.config, ownerKey) === undefined)
    throw new ForeignResource(`project ${project}`);
  const storage = await findResource(incus, poolPath(pool), signal);
  // Pools of earlier releases name no owner; then the project's owner counts.
  if (
    storage !== undefined &&
    (lookUp(storage.config, ownerKey) ?? lookUp(owner?.config ?? {}, ownerKey)) === undefined
  )
    throw new ForeignResource(`storage pool ${pool}`);
  return lookUp(owner?.config ?? {}, ownerKey) ?? lookUp(storage?.config ?? {}, ownerKey);
}

/** The daemon has a resource with a name of this installation that Holdfast did not create. */
export class ForeignResource extends Error {
  override readonly name = "ForeignResource";

  constructor(resource: string) {
    super(`the Incus daemon has a ${resource} that Holdfast did not create; rename it, or use another daemon`);
  }
}

/** Creates the missing resources, owned by a data directory. */
export async function createIncusResources(
  incus: IncusClient,
  resources: IncusResources,
  owner: string,
  signal: AbortSignal,
): Promise<void> {
  const features = Object.fromEntries(
    ["images", "profiles", "storage.volumes"].map((name) => [`features.${name}`, "true"]),
  );
  const project = { name: resources.project, config: { ...features, "features.networks": "false", [ownerKey]: owner } };
  const pool = {
    name: resources.pool,
    driver: "btrfs",
    config: { size: `${resources.poolBytes}B`, [ownerKey]: owner },
  };
  if ((await findResource(incus, `/1.0/projects/${resources.project}`, signal)) === undefined)
    await ignoreExisting(incus.call("POST", "/1.0/projects", signal, project));
  if ((await findResource(incus, poolPath(resources.pool), signal)) === undefined)
    await ignoreExisting(incus.call("POST", "/1.0/storage-pools", signal, pool));
}

/** Stops all machines concurrently: in order within graceMs, then by force. No controller may run during the call. */
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

/**
 * Removes all resources of the installation, machines included, and nothing else. The next call completes an
 * interrupted removal.
 */
export async function removeIncusResources(
  incus: IncusClient,
  resources: IncusResources,
  signal: AbortSignal,
): Promise<void> {
  if ((await ownerOf(incus, resources, signal)) === undefined) return;
  if ((await findResource(incus, `/1.0/projects/${resources.project}`, signal)) !== undefined) {
    await stopInstances(incus, 0, signal);
    for (const { name } of await instances(incus, signal)) await incus.run("DELETE", `/1.0/instances/${name}`, signal);
    for (const path of await incus.call<string[]>("GET", "/1.0/images", signal))
      await incus.run("DELETE", path.split("?")[0] ?? "", signal);
    await incus.call("DELETE", `/1.0/projects/${resources.project}`, signal);
  }
  if ((await findResource(incus, poolPath(resources.pool), signal)) !== undefined)
    await incus.call("DELETE", poolPath(resources.pool), signal);
}

async function instances(incus: IncusClient, signal: AbortSignal): Promise<Instance[]> {
  const all = await incus.call<Instance[]>("GET", "/1.0/instances?recursion=1", signal).catch((error: unknown) => {
    // The project does not exist any more.
    if (error instanceof IncusError && error.status === 404) return [];
    throw error;
  });
  return all.filter(({ name }) => machineIdOf(name) !== undefined || name.startsWith("image-"));
}

async function statusOf(incus: IncusClient, name: string, signal: AbortSignal): Promise<string> {
  return (await incus.call<Instance>("GET", `/1.0/instances/${name}`, signal)).status;
}

/** Path of a pool. Pools belong to no project, and a request with a missing project would not find them. */
function poolPath(pool: string): string {
  return `/1.0/storage-pools/${pool}?project=default`;
}

/** The resource at this path; undefined if there is none. */
async function findResource(
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
