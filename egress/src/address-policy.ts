import { isIP } from "node:net";
import { lookup } from "node:dns/promises";
import ipaddr from "ipaddr.js";
import { systemClock } from "@holdfast/common/clock.ts";

/**
 * IPv4 networks that are not public (RFC 6890 and its registries as of 2025) or embed other addresses (RFC 6052, 3056,
 * 4380), and public addresses at which a cloud serves its own machines. For IPv6 only 2000::/3 is public, except the
 * networks below. Metadata services of other clouds are in 169.254.0.0/16, 100.64.0.0/10, 192.0.0.0/24 and fc00::/7.
 */
const specialIpv4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // Azure's virtual public address: agent, DNS, DHCP and health of a virtual machine.
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
] as const;

const publicIpv6 = "2000::/3";

/** 2001::/23 contains Teredo and ORCHID; 2002::/16 is 6to4. NAT64, mapped and local addresses are outside 2000::/3. */
const specialIpv6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"] as const;

/** Decides whether a connection to an address may be made on behalf of a user. */
export interface AddressPolicy {
  /**
   * The reason for a refusal; undefined if the address is allowed. The address is in standard IPv4 or IPv6 notation.
   */
  refusal(address: string, port: number): Promise<"own" | "not public" | undefined>;
}

export interface OwnAddresses {
  /** Addresses of this host, except loopback. */
  readonly host: () => readonly string[];
  /** Listeners of the platform on its hosts, with their configured addresses or host names. */
  readonly listeners: () => readonly { readonly host: string; readonly port: number }[];
  /** Networks of machines. */
  readonly machineNetworks: () => readonly string[];
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = readonly [Address, number];

/**
 * Allows public addresses and the networks (CIDRs) in `allow`. The platform's own listeners and machines are refused in
 * any case. Throws if an entry of `allow` is not a network.
 */
export function createAddressPolicy(
  allow: readonly string[],
  ownAddresses: OwnAddresses,
  addressesOf: ListenerAddresses = createListenerAddresses(),
): AddressPolicy {
  const allowed = allow.map(networkOf);
  return {
    async refusal(text, port) {
      if (!ipaddr.isValid(text) || text.includes("%")) return "not public";
      const address = ipaddr.parse(text);
      const target = embeddedIpv4(address) ?? address;
      if (await isOwn(target, port, ownAddresses, addressesOf)) return "own";
      if (allowed.some((network) => contains(network, address))) return undefined;
      return isPublic(address) ? undefined : "not public";
    },
  };
}

function isPublic(address: Address): boolean {
  const inside = (network: string) => contains(networkOf(network), address);
  if (address.kind() === "ipv4") return !specialIpv4.some(inside);
  return inside(publicIpv6) && !specialIpv6.some(inside);
}

/**
 * A listener of the platform is refused under every address of this host, since a listener on 0.0.0.0 accepts
 * connections on all of them. A listener given by its host name is refused at the non-public addresses of the name: a
 * public address may be shared with others, such as the address of an object store.
 */
async function isOwn(
  address: Address,
  port: number,
  { host, listeners, machineNetworks }: OwnAddresses,
  addressesOf: ListenerAddresses,
): Promise<boolean> {
  if (machineNetworks().some((network) => contains(networkOf(network), address))) return true;
  const here = address.range() === "loopback" || address.range() === "unspecified" || isOneOf(address, host());
  const hosts = listeners()
    .filter((listener) => listener.port === port)
    .map((listener) => listener.host);
  if (hosts.length === 0) return false;
  if (here || isOneOf(address, hosts)) return true;
  const names = isPublic(address) ? [] : hosts.filter((name) => isIP(name) === 0);
  const named = await Promise.all(names.map((name) => addressesOf(name)));
  return isOneOf(address, named.flat());
}

function isOneOf(address: Address, texts: readonly string[]): boolean {
  return texts.some((text) => ipaddr.isValid(text) && ipaddr.parse(text).toString() === address.toString());
}

/** The IPv4 address embedded in an IPv6 address: mapped, compatible, NAT64 or 6to4. */
function embeddedIpv4(address: Address): Address | undefined {
  if (address.kind() === "ipv4") return undefined;
  const bytes = address.toByteArray();
  const ipv4At = (offset: number) => new ipaddr.IPv4(bytes.slice(offset, offset + 4));
  if (contains(networkOf("2002::/16"), address)) return ipv4At(2);
  const leading = ["::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"];
  if (leading.some((network) => contains(networkOf(network), address))) return ipv4At(12);
  const compatible = contains(networkOf("::/96"), address) && !/^::1?$/.test(address.toString());
  return compatible ? ipv4At(12) : undefined;
}

function networkOf(text: string): Network {
  return ipaddr.parseCIDR(text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`);
}

function contains(network: Network, address: Address): boolean {
  return address.kind() === network[0].kind() && address.match(network as [Address, number]);
}

/** Addresses of a listener that a setting gives by its host name; empty for a name that never resolved. */
type ListenerAddresses = (name: string) => Promise<readonly string[]>;

interface ListenerAddressesDeps {
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  readonly monotonicMs?: () => number;
}

const listenerCacheMs = 30_000;
const listenerNamesMax = 1_000;

/**
 * Resolves with the hosts file, as the platform's own clients of these listeners do. Results are cached for 30 seconds;
 * if a later lookup fails, the previous addresses remain valid.
 */
export function createListenerAddresses({
  resolve = systemAddresses,
  monotonicMs = systemClock.monotonicMs,
}: ListenerAddressesDeps = {}): ListenerAddresses {
  const cache = new Map<string, { readonly addresses: Promise<readonly string[]>; readonly untilMs: number }>();

  return (name) => {
    const cached = cache.get(name);
    if (cached !== undefined && cached.untilMs > monotonicMs()) return cached.addresses;
    if (cached === undefined && cache.size >= listenerNamesMax) cache.clear();
    const addresses = resolve(name).catch(() => cached?.addresses ?? []);
    cache.set(name, { addresses, untilMs: monotonicMs() + listenerCacheMs });
    return addresses;
  };
}

async function systemAddresses(name: string): Promise<string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}
