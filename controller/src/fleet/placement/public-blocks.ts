import { addressNetworkOf, overlap } from "@holdfast/compute/local/address-network.ts";
import type { HostObject } from "../host/host.ts";

/** Pure: hosts whose public addresses are another one's as well, by id, with the reason; neither may give out any. */
export function doubledBlocks(hosts: readonly HostObject[]): ReadonlyMap<string, string> {
  const blocks = hosts.flatMap(({ metadata: { id }, spec, status }) => {
    const text = status.facts?.publicBlock ?? "";
    return text === "" || spec.destroyedAt !== null ? [] : [{ id, network: addressNetworkOf(text) }];
  });
  const doubled = new Map<string, string>();
  for (const { id, network } of blocks) {
    const other = blocks.find((each) => each.id !== id && overlap(each.network, network));
    if (other !== undefined) doubled.set(id, `its public addresses ${network.text} are those of host ${other.id} too.`);
  }
  return doubled;
}
