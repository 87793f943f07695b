import { BlockList, isIPv6 } from "node:net";

/** Is this an address that the allow-list has? */
export function createAllowedAddresses(cidrs: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", length = ""] = cidr.split("/");
    const family = isIPv6(network) ? "ipv6" : "ipv4";
    list.addSubnet(network, length === "" ? (family === "ipv6" ? 128 : 32) : Number(length), family);
  }
  return (address) => list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
