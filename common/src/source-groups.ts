import { BlockList, isIPv4, isIPv6 } from "node:net";

/** A group of sources that are counted together, and its limit as a multiple of one source's limit. */
export interface SourceGroup {
  readonly name: string;
  readonly factor: number;
}

/** The groups of an address, the narrowest first; empty for a load balancer, whose address many clients share. */
export type SourceGroups = (address: string) => readonly SourceGroup[];

/** IPv6 prefixes: a customer has at least a /64, often a /56; a /48 is a site. */
const prefixes = [
  { bits: 64, factor: 1 },
  { bits: 56, factor: 4 },
  { bits: 48, factor: 16 },
] as const;

/** `shared` are networks (CIDRs) of load balancers and proxies. Throws if an entry is not a network. */
export function createSourceGroups(shared: readonly string[] = []): SourceGroups {
  const isShared = createNetworks(shared);
  return (text) => {
    const address = plainAddress(text);
    if (isShared(address)) return [];
    if (!isIPv6(address)) return [{ name: address, factor: 1 }];
    const parts = partsOf(address);
    return prefixes.map(({ bits, factor }) => ({ name: `${prefixOf(parts, bits)}/${bits}`, factor }));
  };
}

/** A predicate for addresses in one of the networks (CIDRs). Throws if an entry is not a network. */
export function createNetworks(cidrs: readonly string[]): (address: string) => boolean {
  const networks = new BlockList();
  for (const cidr of cidrs) {
    const [address = "", bits] = cidr.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    networks.addSubnet(address, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return (text) => {
    const address = plainAddress(text);
    return cidrs.length > 0 && networks.check(address, isIPv6(address) ? "ipv6" : "ipv4");
  };
}

/** Normalizes an address: an IPv4 address mapped into IPv6 becomes IPv4, and a zone is removed. */
export function plainAddress(text: string): string {
  return text.startsWith("::ffff:") && isIPv4(text.slice(7)) ? text.slice(7) : (text.split("%")[0] ?? "");
}

/** The eight 16-bit groups of an IPv6 address. */
function partsOf(address: string): number[] {
  const [head = "", tail] = address.split("::");
  const numbers = (text: string) => text.split(":").filter((part) => part !== "" && !part.includes("."));
  const before = numbers(head);
  const after = tail === undefined ? [] : numbers(tail);
  const dotted = address.includes(".") ? 2 : 0;
  const zeros = Array.from({ length: Math.max(0, 8 - dotted - before.length - after.length) }, () => "0");
  const all = [...before, ...(tail === undefined ? [] : zeros), ...after].map((part) => Number.parseInt(part, 16));
  return [...all, 0, 0].slice(0, 8);
}

function prefixOf(parts: readonly number[], bits: number): string {
  const full = parts.slice(0, bits >> 4).map((part) => part.toString(16));
  const rest = bits & 15;
  const last = (parts[bits >> 4] ?? 0) >> (16 - rest);
  return (rest === 0 ? full : [...full, last.toString(16)]).join(":");
}
