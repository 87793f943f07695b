import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";

/** Facts of this host that decide whether it forwards packets of other machines to services. */
export interface ForwardingDeps {
  /** Device with this address; undefined if it is not the host's. */
  readonly deviceOf: (address: string) => string | undefined;
  /** True if the host forwards packets from this device. */
  readonly forwards: (device: string) => boolean;
}

const host: ForwardingDeps = {
  deviceOf: (address) =>
    Object.entries(networkInterfaces()).find(([, each]) => each?.some((known) => known.address === address))?.[0],
  forwards: (device) => readFileSync(`/proc/sys/net/ipv4/conf/${device}/forwarding`, "utf8").trim() === "1",
};

/**
 * Instructions for the operator's network, as lines of text: other machines need, besides the allow-list, a route to
 * the machines' network by way of this host, and forwarding on it. Holdfast does not change these settings.
 */
export function serviceRoute(
  network: string,
  address: string,
  { deviceOf, forwards }: ForwardingDeps = host,
): string[] {
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
