import { agentUidOf } from "@holdfast/compute/local/machine-number.ts";
import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import { readRecord } from "@holdfast/compute/local/machine-record.ts";
import { listeners } from "../../support/machines/incus-machines.ts";
import { cutUserLinks } from "../../support/network/uid-network-cuts.ts";
import type { Platform } from "../../support/platform/platform.ts";
import type { ServiceJson } from "../../support/api/service-json.ts";
import type { Fault } from "./failures.ts";

/**
 * Cuts a machine of the service off from its controllers and from its other members, while clients reach its engine:
 * their writes would reveal two primaries.
 */
export function cutNetworkOf(platform: Pick<Platform, "directory">, service: () => Promise<ServiceJson>): Fault {
  async function machine(id: string) {
    const record = await readRecord(layoutOf(platform.directory).machine(id).record);
    if (record === undefined || record.uid === null) throw new Error(`machine ${id} has no users of its own`);
    return { address: record.address, agent: agentUidOf(record.uid), users: [record.uid, agentUidOf(record.uid)] };
  }

  return async (machineId) => {
    const cut = await machine(machineId);
    const { nodes } = await service();
    const others = await Promise.all(nodes.filter(({ id }) => id !== machineId).map(({ id }) => machine(id)));
    const pairs = others.flatMap((other) => [
      ...other.users.map((uid) => [uid, cut.address] as const),
      ...cut.users.map((uid) => [uid, other.address] as const),
    ]);
    return cutUserLinks(listeners(platform).number, { uids: [cut.agent], pairs });
  };
}
