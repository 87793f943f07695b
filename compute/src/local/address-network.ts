import { isIPv6 } from "node:net";

/** A network of IPv4 addresses, such as `203.0.113.16/28`. */
export interface AddressNetwork {
  /** CIDR notation, from the network's first address. */
  readonly text: string;
  readonly first: number;
  readonly size: number;
}

/** Shortest prefix of a host's network for machines. */
const minBits = 16;

/**
 * Parses an IPv4 CIDR of 16 to 32 bits. Throws with the reason for anything else, and for a network that does not begin
 * at its first address.
 */
export function addressNetworkOf(text: string): AddressNetwork {
  const [, address = "", bitsText = ""] = /^((?:\d{1,3}\.){3}\d{1,3})\/(\d{1,2})$/.exec(text) ?? [];
  const bytes = address.split(".").map(Number);
  const bits = Number(bitsText);
  if (isIPv6(text.split("/")[0] ?? ""))
    throw new Error(
      `${text} is an IPv6 network: machines have IPv4 addresses only, such as addresses of 203.0.113.16/28`,
    );
  if (address === "" || bytes.some((byte) => byte > 255) || bits > 32)
    throw new Error(`${text} is not a network of IPv4 addresses, such as 203.0.113.16/28`);
  if (bits < minBits) throw new Error(`${text} is larger than /${minBits}`);
  const first = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
  const size = 2 ** (32 - bits);
  if (first % size !== 0) throw new Error(`${text} does not begin at its network's first address`);
  return { text, first, size };
}

/** True if the networks have an address in common. */
export function overlap(a: AddressNetwork, b: AddressNetwork): boolean {
  return a.first < b.first + b.size && b.first < a.first + a.size;
}

/** Addresses for machines: without the network and broadcast addresses if there are more than two. */
export function hostAddressesOf({ first, size }: AddressNetwork): string[] {
  const edge = size > 2 ? 1 : 0;
  return Array.from({ length: size - 2 * edge }, (_, index) => textOf(first + edge + index));
}

function textOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}
