import { readdirSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readText } from "./files.ts";

/** The names of an installation, as a resolver of this host needs them. */
export interface ServedNames {
  /** Origin of the zone. */
  readonly domain: string;
  readonly server: { readonly host: string; readonly port: number };
  /** Address at which the server also serves port 53; undefined if it does not. */
  readonly resolverAddress: string | undefined;
  /** Current names with their addresses. */
  readonly records: readonly { readonly name: string; readonly addresses: readonly string[] }[];
}

/** Facts of the host that decide which method is possible. */
export interface ResolverFacts {
  /** Output of `resolvectl dns`; undefined if systemd-resolved does not run. */
  readonly resolvectl: string | undefined;
  /** True if NetworkManager runs dnsmasq as its resolver. */
  readonly networkManagerDnsmasq: boolean;
  readonly resolvConf: string;
  /** True if a program writes resolv.conf, so that lines of others are lost. */
  readonly resolvConfIsGenerated: boolean;
}

/** A configuration by which the programs of a host resolve the names of an installation. */
export interface ResolverMethod {
  readonly title: string;
  /** Path of the file that it writes, below the root directory. */
  readonly file: string;
  /** True if the file has lines of others, which remain; otherwise the file is removed with its block. */
  readonly isShared: boolean;
  /** True if several installations can use the method concurrently. */
  readonly servesSeveral?: true;
  readonly position: "first" | "last";
  isPossible(facts: ResolverFacts, names: ServedNames): boolean;
  lines(names: ServedNames): readonly string[];
  /** Command that has the resolver read the file; absent if programs read it themselves. */
  readonly reload?: readonly [command: string, ...args: string[]];
  /** Limit of the method for the user. */
  readonly notice?: string;
}

/** Methods in the order of preference. The last one is always possible. */
export const resolverMethods: readonly ResolverMethod[] = [
  {
    title: "systemd-resolved",
    file: "etc/systemd/resolved.conf.d/holdfast.conf",
    isShared: false,
    position: "last",
    // Domains of global servers apply to all global servers, so the server is added only if there are no others.
    isPossible: ({ resolvectl, resolvConf }, { server }) =>
      resolvectl !== undefined &&
      /^nameserver\s+127\.0\.0\.5[34]\b/m.test(resolvConf) &&
      globalServersOf(resolvectl).every((each) => each === serverText(server, ":")) &&
      /^Link .*\):[ \t]*\S/m.test(resolvectl),
    lines: ({ domain, server }) => ["[Resolve]", `DNS=${serverText(server, ":")}`, `Domains=~${domain}`],
    reload: ["systemctl", "restart", "systemd-resolved.service"],
  },
  {
    title: "dnsmasq of NetworkManager",
    file: "etc/NetworkManager/dnsmasq.d/holdfast.conf",
    isShared: false,
    position: "last",
    isPossible: ({ networkManagerDnsmasq }) => networkManagerDnsmasq,
    lines: ({ domain, server }) => [`server=/${domain}/${serverText(server, "#")}`],
    reload: ["nmcli", "general", "reload", "dns-full"],
  },
  {
    title: "resolv.conf",
    file: "etc/resolv.conf",
    isShared: true,
    position: "first",
    // The server refuses queries for other domains, and resolvers then query the next server of the file.
    isPossible: ({ resolvConf, resolvConfIsGenerated }, { resolverAddress }) =>
      resolverAddress !== undefined &&
      !resolvConfIsGenerated &&
      /^nameserver\s/m.test(resolvConf) &&
      !/^options\b.*\brotate\b/m.test(resolvConf),
    lines: ({ resolverAddress }) => [`nameserver ${resolverAddress}`],
  },
  {
    title: "hosts file",
    file: "etc/hosts",
    isShared: true,
    servesSeveral: true,
    position: "last",
    isPossible: () => true,
    lines: ({ records }) => records.flatMap(({ name, addresses }) => addresses.map((address) => `${address} ${name}`)),
    notice: "the hosts file has only the current names: run the command again after a service is created",
  },
];

/** Reads the facts; `run` resolves to a command's output, or to undefined if it is absent or fails. */
export async function readResolverFacts(
  root: string,
  run: (command: string, args: readonly string[]) => Promise<string | undefined>,
): Promise<ResolverFacts> {
  const resolvConf = readText(join(root, "etc/resolv.conf")) ?? "";
  return {
    resolvectl: await run("resolvectl", ["dns"]),
    networkManagerDnsmasq: networkManagerFiles(root).some((file) =>
      /^\s*dns\s*=\s*dnsmasq\b/m.test(readText(file) ?? ""),
    ),
    resolvConf,
    resolvConfIsGenerated:
      /^#.*\b(NetworkManager|resolvconf|systemd-resolved|dhcpcd|connman)\b/im.test(resolvConf) ||
      /^nameserver\s+127\.0\.0\.5[34]\b/m.test(resolvConf),
  };
}

function networkManagerFiles(root: string): string[] {
  const directories = ["usr/lib/NetworkManager/conf.d", "run/NetworkManager/conf.d", "etc/NetworkManager/conf.d"];
  return [
    join(root, "etc/NetworkManager/NetworkManager.conf"),
    ...directories.flatMap((directory) => filesOf(join(root, directory))),
  ];
}

function filesOf(directory: string): string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name));
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

/** Servers of the line `Global: 192.0.2.1 192.0.2.2`, and of the lines that continue it. */
function globalServersOf(resolvectl: string): string[] {
  const [, servers = ""] = /^Global:([\s\S]*?)(?=^\S|(?![\s\S]))/m.exec(resolvectl) ?? [];
  return servers.split(/\s+/).filter((each) => each !== "");
}

function serverText({ host, port }: ServedNames["server"], separator: string): string {
  return `${host.includes(":") && separator === ":" ? `[${host}]` : host}${separator}${port}`;
}
