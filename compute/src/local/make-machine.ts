import { chown, mkdir, rename, rm, truncate } from "node:fs/promises";
import { basename } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { MachineSpec } from "../compute-provider.ts";
import { makeDisk, removeWithDisk } from "./data-disk.ts";
import type { MachineNumbers } from "./machine-number.ts";
import type { Layout, MachinePaths } from "./machine-paths.ts";
import { type MachineRecord, writeRecord } from "./machine-record.ts";
import type { PublicAddresses } from "./public-addresses.ts";
import type { Spare, Spares } from "./spares.ts";
import { removePlaced, type StorageTiers } from "./storage-tiers.ts";

export interface MakeMachineDeps {
  readonly numbers: MachineNumbers;
  readonly publicAddresses: PublicAddresses;
  readonly spares: Spares;
  readonly disk: MachineRecord["disk"];
  readonly tiers: StorageTiers;
  readonly addressOf: (number: number) => string;
  /** Users of engine and agent for a number; null where they are this process's own. */
  readonly uidOf: (number: number) => number | null;
  readonly agentUidOf: (uid: number) => number;
  readonly now: () => number;
}

/**
 * Makes what is missing of a machine, its record last: without one, whatever is there is what an interrupted making or
 * destruction left, and is finished or made again.
 */
export async function makeMachine(
  spec: MachineSpec,
  paths: MachinePaths,
  image: NodeImage | undefined,
  deps: MakeMachineDeps,
): Promise<MachineRecord> {
  const isNew = await makeDirectory(paths.directory);
  const publicAddress = await claimPublic(spec.id, isNew, paths, deps.publicAddresses);
  const left = isNew ? undefined : await deps.spares.taken(image?.id ?? "", paths);
  if (!isNew && left === undefined) await removeWithDisk(paths.spare);
  const spare = left ?? (image && (await deps.spares.take(spec, image.id, paths)));
  const number = spare?.number ?? (await numberFor(spec.id, isNew, paths, deps.numbers));
  const uid = deps.uidOf(number);

  await makeDirectory(paths.root);
  await makeDirectory(paths.state);
  if (uid !== null) await chown(paths.state, deps.agentUidOf(uid), uid);
  const disk = spare?.disk ?? deps.disk;
  const { diskBytes } = spec;
  const tierDirectory = deps.tiers.directoryOf(spec.storageTier);
  if (spare === undefined) await makeDisk(paths, { kind: disk, diskBytes, uid, imageRoot: image?.root, tierDirectory });
  else await unpack(spare, spec, paths, deps.numbers);

  const record: MachineRecord = {
    spec,
    number,
    address: deps.addressOf(number),
    ...(publicAddress !== undefined && { publicAddress }),
    uid,
    disk,
    diskBytes,
    formattedBytes: spare?.diskBytes ?? diskBytes,
    image: image?.id ?? "",
    starts: 0,
    createdAt: deps.now(),
  };
  await writeRecord(paths.record, record);
  await rm(paths.spare, { recursive: true, force: true });
  return record;
}

/** Removes a machine that does not run; the record goes before the data, so that no half of it is taken for a machine. */
export async function removeMachine(
  layout: Layout,
  id: string,
  { numbers, publicAddresses }: Pick<MakeMachineDeps, "numbers" | "publicAddresses">,
): Promise<void> {
  const paths = layout.machine(id);
  await rm(paths.record, { force: true });
  await removeWithDisk(paths.spare);
  await rm(paths.run, { force: true });
  // The number is free only when nothing of its user is left.
  for (const part of [paths.diskFile, paths.dataDirectory]) await removePlaced(part);
  await rm(paths.state, { recursive: true, force: true });
  for (const number of await numbers.of(id)) {
    await rm(layout.sockets(number), { recursive: true, force: true });
    await numbers.release(id, number);
  }
  await publicAddresses.release(id);
  await rm(paths.directory, { recursive: true, force: true });
}

/** With its directory there, whoever destroys the machine finds what it has claimed; without an address there is no machine. */
async function claimPublic(
  id: string,
  isNew: boolean,
  paths: MachinePaths,
  publicAddresses: PublicAddresses,
): Promise<string | undefined> {
  try {
    return await publicAddresses.claim(id, paths.directory);
  } catch (error) {
    if (isNew) await rm(paths.directory, { recursive: true, force: true });
    throw error;
  }
}

async function numberFor(id: string, isNew: boolean, paths: MachinePaths, numbers: MachineNumbers): Promise<number> {
  const [own] = isNew ? [] : await numbers.of(id);
  return own ?? numbers.claim(id, paths.directory);
}

async function unpack(spare: Spare, spec: MachineSpec, paths: MachinePaths, numbers: MachineNumbers): Promise<void> {
  await numbers.assign(spare.number, spec.id, paths.directory);
  const [from, to] =
    spare.disk === "loop"
      ? [`${paths.spare}/${basename(paths.diskFile)}`, paths.diskFile]
      : [`${paths.spare}/${basename(paths.dataDirectory)}`, paths.dataDirectory];
  try {
    await rename(from, to);
  } catch (error) {
    // An interrupted making had moved it already.
    if (!hasCode(error, "ENOENT")) throw error;
  }
  if (spare.disk === "loop") await truncate(to, spec.diskBytes);
}

/** True when it was not there before. */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}
