import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";

/** What of this host decides whether packets of other machines get through it to services. */
export interface Passage {
  /** Device that an address is on; undefined when it is not this host's. */
  readonly deviceOf: (address: string) => string | undefined;
  /** Does the host pass on what comes from this device? */
  readonly forwards: (device: string) => boolean;
}

const host: Passage = {
  deviceOf: (address) =>
    Object.entries(networkInterfaces()).find(([, each]) => each?.some((known) => known.address === address))?.[0],
  forwards: (device) => readFileSync(`/proc/sys/net/ipv4/conf/${device}/forwarding`, "utf8").trim() === "1",
};

/**
 * What other machines need besides their place in a service's allow-list, as lines of text: a route to the network of machines by
 * way of this host, whose address they know, and that it forwards. That is for whoever runs the network: nobody else's setting is
 * changed.
 */
export function serviceRoute(network: string, address: string, { deviceOf, forwards }: Passage = host): string[] {
  const device = deviceOf(address);
  const closed = device !== undefined && !forwards(device);
  return [
    `Other machines that a service allows (--allow CIDR) reach it with a route to ${network}:`,
    "",
    `  ip route add ${network} via ${address}`,
    ...(closed
      ? [`  sysctl net.ipv4.conf.${device}.forwarding=1     # on this machine, which does not forward yet`]
      : []),
  ];
}
