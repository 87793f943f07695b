import { BlockList, isIP } from "node:net";
import type { PolicyRule } from "../compute-provider.ts";

/** Fixed parts of an installation's packet filter. */
export interface EdgeConfig {
  /** Name of the nftables table, which has only the rules of this installation. */
  readonly table: string;
  /** Networks of all machines: the private network first, then the public ones. */
  readonly networks: readonly string[];
  /** Name prefix of the machines' network links. */
  readonly links: string;
  /** Address and ports of the host that machines may call; no ports if it runs no controller. */
  readonly hostAddress: string;
  readonly hostPorts: readonly number[];
}

/**
 * The complete table in the syntax of nft(8), which replaces the previous one in one transaction. Replies pass.
 * Every other packet to a machine needs a rule, so that a session ends when its rule is removed. A machine may open
 * connections only where a rule of another machine or of a controller admits it, and to the host's ports.
 *
 * The table has no sets and maps. A packet during the transaction passes either the old or the new rules, but sees sets
 * in their current state: it would find the old ones empty, and be refused.
 */
export function edgeRuleset(config: EdgeConfig, rules: readonly PolicyRule[]): string {
  const { table } = config;
  return [`add table inet ${table}`, `delete table inet ${table}`, ...edgeLines(config, rules)].join("\n");
}

/** The table without any rule, in the syntax of nft(8); its creation fails if the table exists. */
export function closedRuleset(config: EdgeConfig): string {
  return [`create table inet ${config.table}`, ...edgeLines(config, [])].join("\n");
}

function edgeLines(config: EdgeConfig, rules: readonly PolicyRule[]): string[] {
  const { table, networks, links, hostAddress, hostPorts } = config;
  const [toMachines, toOthers] = splitRules(config, rules);
  const machines = [...new Set(toMachines.map(({ to }) => to))].sort();
  const subnets = Map.groupBy(machines, subnetOf);
  return [
    `table inet ${table} {`,
    ...chain("forward", [
      "type filter hook forward priority filter; policy accept;",
      ...networks.map((network) => `ip daddr ${network} goto to_machine`),
      // Packets are also matched by link: an address may belong to a network that the host no longer has.
      `oifname "${links}*" goto to_machine`,
      `iifname "${links}*" goto from_machine`,
    ]),
    ...chain("output", [
      "type filter hook output priority filter; policy accept;",
      `oifname "${links}*" goto to_machine`,
    ]),
    ...chain("input", [
      "type filter hook input priority filter; policy accept;",
      `iifname "${links}*" goto from_machine`,
    ]),
    ...chain("to_machine", [
      "ct direction reply accept",
      // ICMP packets of a connection, such as "packet too big".
      "ct state related accept",
      ...[...subnets.keys()].map((network) => `ip daddr ${network} jump ${chainOf("near", network)}`),
      "goto refused",
    ]),
    ...chain("from_machine", [
      "ct direction reply accept",
      ...hostPorts.flatMap((port) =>
        ["tcp", "udp"].map((protocol) => `ip daddr ${hostAddress} ${protocol} dport ${port} accept`),
      ),
      ...toOthers.flatMap((rule) =>
        linesOf(rule).map((line) => `${isIP(rule.to) === 4 ? "ip" : "ip6"} daddr ${rule.to} ${line}`),
      ),
      "goto refused",
    ]),
    // A reset ends the attempt immediately; without it the client would wait for its timeout.
    ...chain("refused", ["meta l4proto tcp reject with tcp reset", "drop"]),
    ...[...subnets].flatMap(([network, addresses]) =>
      chain(
        chainOf("near", network),
        addresses.map((address) => `ip daddr ${address} jump ${chainOf("to", address)}`),
      ),
    ),
    ...machines.flatMap((address) =>
      chain(
        chainOf("to", address),
        toMachines.filter(({ to }) => to === address).flatMap((rule) => linesOf(rule)),
      ),
    ),
    "}",
    "",
  ];
}

/**
 * The network of sixteen addresses with this address: a packet is matched against the networks with machines, then
 * against the addresses of the matching network.
 */
function subnetOf(address: string): string {
  const last = Number(address.slice(address.lastIndexOf(".") + 1));
  return `${address.slice(0, address.lastIndexOf("."))}.${last - (last % 16)}/28`;
}

function chainOf(prefix: "near" | "to", network: string): string {
  return `${prefix}_${network.replaceAll(/[./]/g, "_")}`;
}

/**
 * Splits the rules into those for machines of these networks, and those for other destinations that machines may call.
 */
function splitRules(
  { networks, hostAddress }: EdgeConfig,
  rules: readonly PolicyRule[],
): [toMachines: PolicyRule[], toOthers: PolicyRule[]] {
  const machineNetworks = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    machineNetworks.addSubnet(address, Number(bits), "ipv4");
  }
  const isMachine = ({ to }: PolicyRule) => to !== hostAddress && isIP(to) === 4 && machineNetworks.check(to, "ipv4");
  return [rules.filter(isMachine), rules.filter((rule) => !isMachine(rule))];
}

function linesOf({ owner, port, from }: PolicyRule): string[] {
  const to = port === null ? "" : `tcp dport ${port} `;
  return from.map((cidr) => {
    const family = cidr.includes(":") ? "ip6" : "ip";
    return `${family} saddr ${cidr} ${to}accept comment "${owner.kind} ${owner.id}"`;
  });
}

function chain(name: string, lines: readonly string[]): string[] {
  return [`  chain ${name} {`, ...lines.map((line) => `    ${line}`), "  }"];
}
