import { chown, mkdir, rename, rm, truncate } from "node:fs/promises";
import { basename } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { MachineSpec } from "../compute-provider.ts";
import { createDisk, removeWithDisk } from "./data-disk.ts";
import type { MachineNumbers } from "./machine-number.ts";
import type { Layout, MachinePaths } from "./machine-paths.ts";
import { type MachineRecord, writeRecord } from "./machine-record.ts";
import type { PublicAddresses } from "./public-addresses.ts";
import type { PreparedDisk, PreparedDisks } from "./prepared-disks.ts";
import { removeLocated, type StorageTiers } from "./storage-tiers.ts";

export interface MakeMachineDeps {
  readonly numbers: MachineNumbers;
  readonly publicAddresses: PublicAddresses;
  readonly preparedDisks: PreparedDisks;
  readonly disk: MachineRecord["disk"];
  readonly tiers: StorageTiers;
  readonly addressOf: (number: number) => string;
  /** User ids of engine and agent for a number; null if they are this process's own. */
  readonly uidOf: (number: number) => number | null;
  readonly agentUidOf: (uid: number) => number;
  readonly now: () => number;
}

/**
 * Creates the missing parts of a machine, its record last: a directory without a record comes from an
 * interrupted creation or destruction, and is completed or replaced.
 */
export async function makeMachine(
  spec: MachineSpec,
  paths: MachinePaths,
  image: NodeImage | undefined,
  deps: MakeMachineDeps,
): Promise<MachineRecord> {
  const isNew = await makeDirectory(paths.directory);
  const publicAddress = await claimPublic(spec.id, isNew, paths, deps.publicAddresses);
  const interrupted = isNew ? undefined : await deps.preparedDisks.findTaken(image?.id ?? "", paths);
  if (!isNew && interrupted === undefined) await removeWithDisk(paths.preparedDisk);
  const prepared = interrupted ?? (image && (await deps.preparedDisks.take(spec, image.id, paths)));
  const number = prepared?.number ?? (await numberFor(spec.id, isNew, paths, deps.numbers));
  const uid = deps.uidOf(number);

  await makeDirectory(paths.root);
  await makeDirectory(paths.state);
  if (uid !== null) await chown(paths.state, deps.agentUidOf(uid), uid);
  const disk = prepared?.disk ?? deps.disk;
  const { diskBytes } = spec;
  const tierDirectory = deps.tiers.directoryOf(spec.storageTier);
  if (prepared === undefined)
    await createDisk(paths, { kind: disk, diskBytes, uid, imageRoot: image?.root, tierDirectory });
  else await moveIntoPlace(prepared, spec, paths, deps.numbers);

  const record: MachineRecord = {
    spec,
    number,
    address: deps.addressOf(number),
    ...(publicAddress !== undefined && { publicAddress }),
    uid,
    disk,
    diskBytes,
    formattedBytes: prepared?.diskBytes ?? diskBytes,
    image: image?.id ?? "",
    starts: 0,
    createdAt: deps.now(),
  };
  await writeRecord(paths.record, record);
  await rm(paths.preparedDisk, { recursive: true, force: true });
  return record;
}

/** Removes a stopped machine: its record before its data, so that a machine with a record is always complete. */
export async function removeMachine(
  layout: Layout,
  id: string,
  { numbers, publicAddresses }: Pick<MakeMachineDeps, "numbers" | "publicAddresses">,
): Promise<void> {
  const paths = layout.machine(id);
  await rm(paths.record, { force: true });
  await removeWithDisk(paths.preparedDisk);
  await rm(paths.run, { force: true });
  // The number becomes free only after all files of its user are removed.
  for (const part of [paths.diskFile, paths.dataDirectory]) await removeLocated(part);
  await rm(paths.state, { recursive: true, force: true });
  for (const number of await numbers.of(id)) {
    await rm(layout.sockets(number), { recursive: true, force: true });
    await numbers.release(id, number);
  }
  await publicAddresses.release(id);
  await rm(paths.directory, { recursive: true, force: true });
}

/**
 * Claims an address after the directory exists, so that a destruction finds the claim. Fails without a free address.
 */
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
  const [existing] = isNew ? [] : await numbers.of(id);
  return existing ?? numbers.claim(id, paths.directory);
}

/** Moves the prepared disk to the path of the machine's disk, and assigns its number to the machine. */
async function moveIntoPlace(
  prepared: PreparedDisk,
  spec: MachineSpec,
  paths: MachinePaths,
  numbers: MachineNumbers,
): Promise<void> {
  await numbers.assign(prepared.number, spec.id, paths.directory);
  const [from, to] =
    prepared.disk === "loop"
      ? [`${paths.preparedDisk}/${basename(paths.diskFile)}`, paths.diskFile]
      : [`${paths.preparedDisk}/${basename(paths.dataDirectory)}`, paths.dataDirectory];
  try {
    await rename(from, to);
  } catch (error) {
    // An interrupted creation had moved it already.
    if (!hasCode(error, "ENOENT")) throw error;
  }
  if (prepared.disk === "loop") await truncate(to, spec.diskBytes);
}

/** Creates a directory; false if it existed. */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}
