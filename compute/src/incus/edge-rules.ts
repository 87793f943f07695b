import { BlockList, isIP } from "node:net";
import type { ReachRule } from "../compute-provider.ts";

/** What the rules of an installation's machines stand on. */
export interface EdgePlace {
  /** Name of the table; nobody else's rules are in it. */
  readonly table: string;
  /** Networks of all machines: that of private addresses first, then those of public ones. */
  readonly networks: readonly string[];
  /** What the names of the machines' links begin with. */
  readonly links: string;
  /** Where machines find the host, and on which ports; none where no controller is. */
  readonly hostAddress: string;
  readonly hostPorts: readonly number[];
}

/**
 * Pure: the whole table, as nft(8) reads it, which replaces the one before in one transaction. Replies pass; everything
 * else to a machine needs a rule, for each of its packets: a session is cut when its rule goes. A machine itself begins
 * nothing but what a rule of another machine or of a controller allows, and calls to the host's ports.
 *
 * Nothing in it is a set or a map. A packet that meets the transaction goes through the rules of before or through those of
 * after, but looks into sets as they are at that moment, finds those of before empty, and would be refused.
 */
export function edgeRuleset(place: EdgePlace, rules: readonly ReachRule[]): string {
  const { table } = place;
  return [`add table inet ${table}`, `delete table inet ${table}`, ...edgeLines(place, rules)].join("\n");
}

/** Pure: the table that allows nothing, as nft(8) reads it, which fails as a whole when there is a table. */
export function closedRuleset(place: EdgePlace): string {
  return [`create table inet ${place.table}`, ...edgeLines(place, [])].join("\n");
}

function edgeLines(place: EdgePlace, rules: readonly ReachRule[]): string[] {
  const { table, networks, links, hostAddress, hostPorts } = place;
  const [toMachines, toOthers] = splitRules(place, rules);
  const machines = [...new Set(toMachines.map(({ to }) => to))].sort();
  const neighbourhoods = Map.groupBy(machines, neighbourhoodOf);
  return [
    `table inet ${table} {`,
    ...chain("forward", [
      "type filter hook forward priority filter; policy accept;",
      ...networks.map((network) => `ip daddr ${network} goto to_machine`),
      // By the link too: an address may be of a network that the host no longer has.
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
      // Those of ICMP that belong to a connection, such as of a packet that is too large.
      "ct state related accept",
      ...[...neighbourhoods.keys()].map((network) => `ip daddr ${network} jump ${chainOf("near", network)}`),
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
    // A refusal is told at once; a machine that merely does not answer looks as if it were down.
    ...chain("refused", ["meta l4proto tcp reject with tcp reset", "drop"]),
    ...[...neighbourhoods].flatMap(([network, addresses]) =>
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

/** Sixteen addresses: a packet is held against each network that has machines, and then against those in its own. */
function neighbourhoodOf(address: string): string {
  const last = Number(address.slice(address.lastIndexOf(".") + 1));
  return `${address.slice(0, address.lastIndexOf("."))}.${last - (last % 16)}/28`;
}

function chainOf(what: "near" | "to", place: string): string {
  return `${what}_${place.replaceAll(/[./]/g, "_")}`;
}

/** Those to machines of these networks, and those to whom machines may call elsewhere. */
function splitRules(
  { networks, hostAddress }: EdgePlace,
  rules: readonly ReachRule[],
): [toMachines: ReachRule[], toOthers: ReachRule[]] {
  const own = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    own.addSubnet(address, Number(bits), "ipv4");
  }
  const isMachine = ({ to }: ReachRule) => to !== hostAddress && isIP(to) === 4 && own.check(to, "ipv4");
  return [rules.filter(isMachine), rules.filter((rule) => !isMachine(rule))];
}

function linesOf({ owner, port, from }: ReachRule): string[] {
  const to = port === null ? "" : `tcp dport ${port} `;
  return from.map((cidr) => {
    const family = cidr.includes(":") ? "ip6" : "ip";
    return `${family} saddr ${cidr} ${to}accept comment "${owner.kind} ${owner.id}"`;
  });
}

function chain(name: string, lines: readonly string[]): string[] {
  return [`  chain ${name} {`, ...lines.map((line) => `    ${line}`), "  }"];
}
