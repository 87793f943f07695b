import { join } from "node:path";
import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { namesNotice } from "./dns-command.ts";
import { isHandover } from "./handover.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { installKeyFiles, requireSameStore } from "./object-store.ts";
import type { Options } from "./options.ts";
import { appsUrlOf, baseUrlOf, registryUrlOf } from "./platform-children.ts";
import { withProgress } from "./progress.ts";
import { recordServing } from "./serving-record.ts";
import { type UpDeps, withPlatform } from "./with-platform.ts";

/** Runs the platform until the signal fires, then stops it in order. */
export async function up(options: Options, deps: UpDeps, signal: AbortSignal): Promise<void> {
  const { checkout, print } = deps;
  const { objects, objectsKey, dataDir } = options;
  if (objects !== undefined) requireSameStore(layoutOf(dataDir), objects);
  installKeyFiles(layoutOf(dataDir), { objectsKey });
  await withPlatform(options, deps, signal, async (platform, { layout, installation, machineHost, advertised }) => {
    let endServing: (() => void) | undefined;
    try {
      const holdfast = programOf(options.dataDir, deps);
      // An unreadable file of the resolver must not fail a start.
      const notice = namesNotice(installation, layout.root, holdfast).catch(() => undefined);
      await withProgress(print, async (begin) => {
        begin("starting");
        await platform.start(signal);
      });
      const { network } = machineHost;
      const fromElsewhere =
        network === undefined || advertised === undefined ? [] : serviceRoute(network, advertised.listen);
      const urls = {
        api: baseUrlOf(installation),
        apps: appsUrlOf(installation),
        registry: registryUrlOf(installation),
      };
      print(welcome(urls, layout, holdfast, [await notice, ...fromElsewhere]));
      endServing = recordServing(layout.run, checkout);
      await aborted(signal);
    } finally {
      print("stopping");
      endServing?.();
      await platform.stop({ keepsMachines: isHandover(signal) });
      print("stopped; `npm start` continues from the same state");
    }
  });
}

/** The command line of this installation, for lines to paste. */
function programOf(dataDir: string, { checkout, environment }: UpDeps): string {
  if (environment["HOLDFAST_PROGRAM"] === "holdfast") return "holdfast";
  return dataDir === join(checkout, ".holdfast") ? "./bin/holdfast.js" : `HOLDFAST_DATA=${dataDir} ./bin/holdfast.js`;
}

/** Resolves when the signal fires. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Final output of `npm start`: addresses, commands to paste, and notices, such as the route for other machines. */
export function welcome(
  urls: { readonly api: string; readonly apps: string; readonly registry: string },
  layout: Layout,
  holdfast: string,
  notices: readonly (string | undefined)[],
): string {
  const lines = notices.filter((line) => line !== undefined);
  return [
    "",
    `Holdfast runs at ${urls.api} (REST and gRPC). Ctrl-C stops it and retains all data.`,
    `Hosted apps: ${urls.apps}, from images in the registry ${new URL(urls.registry).host}`,
    `Credentials: ${layout.admin}`,
    "",
    "A first database, from another terminal in this directory:",
    "",
    `  ${holdfast} services create first --type postgresql --plan tier-1 --storage-gb 1`,
    `  ${holdfast} services wait first`,
    `  psql "$(${holdfast} services connect first --conninfo)"`,
    "",
    ...(lines.length === 0 ? [] : [...lines, ""]),
  ].join("\n");
}

/** Facts of this host that decide whether it forwards packets of other machines to services. */
export interface ForwardingDeps {
  /** Device with this address; undefined if it is not the host's. */
  readonly deviceOf: (address: string) => string | undefined;
  /** True if the host forwards packets from this device. */
  readonly forwards: (device: string) => boolean;
}

const hostForwarding: ForwardingDeps = {
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
  { deviceOf, forwards }: ForwardingDeps = hostForwarding,
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
