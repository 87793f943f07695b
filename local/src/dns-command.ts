import { silentLog } from "@holdfast/common/log.ts";
import { createZoneFile } from "@holdfast/dns/zone-file.ts";
import { createMachineHost } from "./create-machine-host.ts";
import { readJson } from "./files.ts";
import { readCommonOptions, readFlags } from "./flags.ts";
import { domainOf, type Installation, resolverAddressOf } from "./installation.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { providers } from "./machine-host.ts";
import type { ServedNames } from "./resolver-methods.ts";
import { installNames, methodsOf, type NamesHost, resolves, thisHost, uninstallNames } from "./service-names.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

export const dnsUsage = [
  "usage: holdfast dns install [--data DIR]      as root: programs of this host resolve the names of services",
  "       holdfast dns uninstall [--data DIR]    as root: restores the resolver's configuration",
  "       holdfast dns status [--data DIR]       exit code 1 if names do not resolve",
  "",
  "The first method that works is used: systemd-resolved, dnsmasq of NetworkManager, resolv.conf with the current",
  "servers as fallbacks, and the hosts file. `npm run clean` uninstalls it too.",
].join("\n");

/** Runs `holdfast dns` with the arguments after `dns`. */
export async function runDnsCommand(
  args: readonly string[],
  deps: UpDeps,
  host: NamesHost = thisHost(deps.print),
): Promise<void> {
  const [verb, ...rest] = args;
  if (verb !== "install" && verb !== "uninstall" && verb !== "status") throw new UserError(dnsUsage);
  const { environment, checkout, asRoot, print } = deps;
  const { dataDir } = readCommonOptions(readFlags(rest, ["data"], dnsUsage), environment, checkout, providers);
  const layout = layoutOf(dataDir);
  if (verb !== "status" && !asRoot) throw new UserError(`dns ${verb} changes files of this host: run it as root`);
  if (verb === "uninstall") {
    const titles = await uninstallNames(host, layout.root);
    return print(titles.length === 0 ? "nothing to uninstall" : `removed from ${titles.join(" and ")}`);
  }
  const installation = readJson<Installation>(layout.installation);
  if (installation?.ports === undefined)
    throw new UserError(`${layout.root} is not an installation; --data names another directory`);
  if (verb === "install") {
    const names = await servedNamesOf(layout, installation, environment, host);
    return await installNames(host, layout.root, names);
  }
  const domain = domainOf(installation);
  const [method] = methodsOf(host, layout.root);
  if (!(await resolves(host, domain)))
    throw new UserError(`names below ${domain} do not resolve on this host; as root: holdfast dns install`);
  print(`names below ${domain} resolve on this host${method === undefined ? "" : `, by ${method.title}`}`);
}

async function servedNamesOf(
  layout: Layout,
  installation: Installation,
  environment: UpDeps["environment"],
  host: NamesHost,
): Promise<ServedNames> {
  const domain = domainOf(installation);
  const server = { host: createMachineHost(layout, installation, environment).address, port: installation.ports.dns };
  const resolverAddress = resolverAddressOf(installation);
  const answersAtPort53 = await host.serves({ host: resolverAddress, port: 53 }, domain);
  const { records } = (await createZoneFile(layout.dns, silentLog).read()).snapshot();
  return {
    domain,
    server,
    resolverAddress: answersAtPort53 ? resolverAddress : undefined,
    records: [{ name: `ns1.${domain}`, addresses: [server.host] }, ...records],
  };
}

/** The line of `npm start` for names that do not resolve on this host; undefined if they do. */
export async function namesNotice(
  installation: Installation,
  owner: string,
  holdfast: string,
  host: NamesHost = thisHost(() => undefined),
): Promise<string | undefined> {
  if (methodsOf(host, owner).length > 0 || (await resolves(host, domainOf(installation)))) return undefined;
  return `Names of services do not resolve on this host yet; as root: ${holdfast} dns install`;
}

/** Removes the names of a deleted installation from this host's resolver. */
export async function removeNames(
  owner: string,
  { asRoot, print }: Pick<UpDeps, "asRoot" | "print">,
  host: NamesHost = thisHost(print),
): Promise<void> {
  if (methodsOf(host, owner).length === 0) return;
  if (asRoot) await uninstallNames(host, owner);
  else print(`this host's resolver still has its names; as root: holdfast dns uninstall --data ${owner}`);
}
