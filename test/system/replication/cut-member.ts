import { agentUidOf } from "@holdfast/compute/local/machine-number.ts";
import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import { readRecord } from "@holdfast/compute/local/machine-record.ts";
import { listeners } from "@holdfast/testing/machines/incus-machines.ts";
import { cutUserLinks } from "@holdfast/testing/network/uid-network-cuts.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";

/**
 * Cuts a machine off from its controllers and from the other machines of its service, until the returned function is
 * called. Clients still reach its engine: their writes would reveal two primaries.
 */
export async function cutMember(
  platform: Pick<Platform, "directory">,
  { nodes }: { readonly nodes: readonly { readonly id: string }[] },
  machineId: string,
): Promise<() => Promise<void>> {
  const cut = await machineOf(platform, machineId);
  const others = await Promise.all(nodes.filter(({ id }) => id !== machineId).map(({ id }) => machineOf(platform, id)));
  const pairs = others.flatMap((other) => [
    ...other.users.map((uid) => [uid, cut.address] as const),
    ...cut.users.map((uid) => [uid, other.address] as const),
  ]);
  return cutUserLinks(listeners(platform).number, { uids: [cut.agent], pairs });
}

async function machineOf({ directory }: Pick<Platform, "directory">, id: string) {
  const record = await readRecord(layoutOf(directory).machine(id).record);
  if (record === undefined || record.uid === null) throw new Error(`machine ${id} has no separate users`);
  return { address: record.address, agent: agentUidOf(record.uid), users: [record.uid, agentUidOf(record.uid)] };
}
