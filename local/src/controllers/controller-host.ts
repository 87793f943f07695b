import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { endpointText } from "@holdfast/common/endpoint.ts";
import { etcdFlags } from "../etcd.ts";
import { replaceFileSync } from "../files.ts";
import type { InstalledPaths } from "../installed/installed-paths.ts";
import { type Settings, settingsText } from "../installed/settings-file.ts";
import { programUser } from "../program-user.ts";
import { bootstrapFileIn, historyPasswordFileIn, masterKeyFileIn, objectsKeyFileIn } from "../secrets.ts";
import { type TransportFiles, transportFilesIn, writeTransportFiles } from "../transport-pki.ts";
import type { ControllerJoinFile } from "./controller-join-file.ts";

/** The units of a host with a controller, in the order of their start. */
export const controllerUnits = ["etcd", "controller", "dns"] as const;
export type ControllerUnit = (typeof controllerUnits)[number];

/** Paths of a host: its settings and keys (`/etc/holdfast`), its data, and what can be created again. */
export type ControllerHostPaths = Pick<InstalledPaths, "settings" | "cache"> & {
  readonly data: Pick<InstalledPaths["data"], "controller">;
};

/** Ports of each host. */
const ports = { etcdClient: 2379, etcdPeer: 2380, api: 8443, agents: 8444, dns: 53, history: 5432 } as const;

/** User of etcd on the host; the block 127.0 belongs to no installation of one machine. */
export const etcdUid = programUser("127.0", true).uid;

const keysIn = (settings: string) => join(settings, "keys");
/**
 * Directory of etcd: its data and its certificate. The image in which etcd runs has another /etc, without the
 * settings of the host.
 */
const etcdIn = (data: string) => join(data, "etcd");

/** Certificate of the member of etcd. */
export function etcdFilesIn({ data }: ControllerHostPaths): TransportFiles {
  return transportFilesIn(join(etcdIn(data.controller), "pki"));
}

/** File of the authority that verifies the API. */
export function authorityFileIn({ data }: ControllerHostPaths): string {
  return join(data.controller, "ca.pem");
}

/** Base URL of the API on a host. */
export function apiUrlOf(address: string): string {
  return `https://${endpointText(address, ports.api)}`;
}

/** URLs of etcd on a host, for clients and for other members. */
export function etcdUrlsOf(address: string): { readonly client: string; readonly peer: string } {
  const url = (port: number) => `https://${endpointText(address, port)}`;
  return { client: url(ports.etcdClient), peer: url(ports.etcdPeer) };
}

/** host:port of the history. */
export function historyEndpointOf({ history }: Pick<ControllerJoinFile, "history">): string {
  return endpointText(history, ports.history);
}

/** Name of the member of etcd and id of the controller on a host. */
export function controllerIdOf(address: string, addresses: readonly string[]): string {
  return `controller-${addresses.indexOf(address) + 1}`;
}

/** Settings of each unit of a host; those that the operator adds are in another file. */
export function controllerHostSettings(
  file: ControllerJoinFile,
  paths: ControllerHostPaths,
): Readonly<Record<ControllerUnit, Settings>> {
  const { address, addresses, installation_id: installationId } = file;
  const { settings, cache, data } = paths;
  const keys = keysIn(settings);
  const client = transportFilesIn(join(settings, "pki"));
  const id = controllerIdOf(address, addresses);
  const each = (port: number) => addresses.map((host) => endpointText(host, port)).join(",");
  const dns = join(data.controller, "dns");
  const identity = { HOLDFAST_DNS_IDENTITY_DIR: join(dns, "identity") };
  return {
    etcd: etcdSettings([
      ...etcdFlags({
        name: id,
        data: join(etcdIn(data.controller), "data"),
        ...etcdUrlsOf(address),
        cluster: addresses.map((host) => `${controllerIdOf(host, addresses)}=${etcdUrlsOf(host).peer}`).join(","),
        files: etcdFilesIn(paths),
        heartbeatMs: 100,
        electionMs: 1_000,
      }),
      `--initial-cluster-token=${installationId}`,
      `--initial-cluster-state=${file.etcd_state}`,
    ]),
    controller: {
      HOLDFAST_INSTALLATION_ID: installationId,
      HOLDFAST_CONTROLLER_ID: id,
      HOLDFAST_ETCD: addresses.map((host) => etcdUrlsOf(host).client).join(","),
      HOLDFAST_ETCD_CA: client.ca,
      HOLDFAST_ETCD_CERT: client.certificate,
      HOLDFAST_ETCD_KEY: client.key,
      HOLDFAST_HISTORY_URL: `postgres://holdfast@${historyEndpointOf(file)}/holdfast`,
      HOLDFAST_HISTORY_PASSWORD_FILE: historyPasswordFileIn(keys),
      HOLDFAST_HISTORY_CA: client.ca,
      HOLDFAST_MASTER_KEY_FILE: masterKeyFileIn(keys),
      HOLDFAST_BOOTSTRAP_FILE: bootstrapFileIn(keys),
      HOLDFAST_OBJECTS: file.objects,
      HOLDFAST_OBJECTS_KEY_FILE: objectsKeyFileIn(keys),
      HOLDFAST_API_LISTEN: endpointText(address, ports.api),
      HOLDFAST_BASE_URL: apiUrlOf(address),
      HOLDFAST_AGENT_LISTEN: endpointText(address, ports.agents),
      HOLDFAST_AGENT_ADVERTISE: endpointText(address, ports.agents),
      HOLDFAST_PROVIDER: "none",
      HOLDFAST_DOMAIN: file.domain,
      HOLDFAST_DNS_SERVERS: each(ports.dns),
      ...identity,
      HOLDFAST_CA_FILE: authorityFileIn(paths),
      HOLDFAST_IMAGES_DIR: join(cache, "images"),
      HOLDFAST_CACHE: cache,
    },
    dns: {
      HOLDFAST_INSTALLATION_ID: installationId,
      HOLDFAST_CONTROLLERS: each(ports.agents),
      HOLDFAST_DNS_LISTEN: endpointText(address, ports.dns),
      HOLDFAST_DNS_ADDRESSES: addresses.join(","),
      HOLDFAST_DNS_DIR: dns,
      ...identity,
    },
  };
}

const variablePrefix = "ETCD_";

/** Flags of etcd as variables of its environment (etcd's documentation, "Configuration options"). */
function etcdSettings(flags: readonly string[]): Settings {
  return Object.fromEntries(
    flags.map((flag) => {
      const [name = "", ...value] = flag.slice("--".length).split("=");
      return [`${variablePrefix}${name.replaceAll("-", "_").toUpperCase()}`, value.join("=") || "true"];
    }),
  );
}

/** Flags of the variables: a program in an image does not inherit its environment. */
export function etcdFlagsOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    name.startsWith(variablePrefix) && value !== undefined
      ? [`--${name.slice(variablePrefix.length).toLowerCase().replaceAll("_", "-")}=${value}`]
      : [],
  );
}

/** Name of a unit's settings file. */
export function controllerSettingsFile({ settings }: ControllerHostPaths, unit: ControllerUnit): string {
  return join(settings, `${unit}.env`);
}

/** File with the settings that the operator adds, which take precedence; no command writes it. */
export function ownSettingsFile({ settings }: ControllerHostPaths): string {
  return join(settings, "local.env");
}

/** Copy of the join file of the host, from which its files are written again. */
export function storedJoinFile({ settings }: ControllerHostPaths): string {
  return join(keysIn(settings), "join.json");
}

/** Directories of the secrets and of the controller's certificate, below the settings. */
export const controllerKeyFolders = ["keys", "pki"] as const;

/** Stores the join file of a host. */
export function storeJoinFile(file: ControllerJoinFile, paths: ControllerHostPaths): void {
  mkdirSync(paths.settings, { recursive: true, mode: 0o755 });
  const keys = keysIn(paths.settings);
  mkdirSync(keys, { recursive: true });
  chmodSync(keys, 0o700);
  replaceFileSync(storedJoinFile(paths), `${JSON.stringify(file, null, 2)}\n`, 0o600);
}

/** Writes keys, certificates and settings of a host, and creates its data directories. Idempotent. */
export function writeControllerHost(file: ControllerJoinFile, paths: ControllerHostPaths): void {
  storeJoinFile(file, paths);
  const keys = keysIn(paths.settings);
  replaceFileSync(masterKeyFileIn(keys), file.secrets.master_keys, 0o600);
  replaceFileSync(bootstrapFileIn(keys), file.secrets.bootstrap, 0o600);
  replaceFileSync(historyPasswordFileIn(keys), file.secrets.history_password, 0o600);
  replaceFileSync(objectsKeyFileIn(keys), file.secrets.objects_key, 0o600);
  const ca = file.authority;
  writeTransportFiles(join(paths.settings, "pki"), { ...file.controller, ca }, undefined);
  const settings = controllerHostSettings(file, paths);
  for (const unit of controllerUnits)
    replaceFileSync(controllerSettingsFile(paths, unit), settingsText(settings[unit]), 0o600);

  const { controller: data } = paths.data;
  mkdirSync(data, { recursive: true, mode: 0o755 });
  mkdirSync(join(data, "dns"), { recursive: true });
  const etcd = etcdIn(data);
  mkdirSync(etcd, { recursive: true });
  chmodSync(etcd, 0o700);
  chownSync(etcd, etcdUid, etcdUid);
  writeTransportFiles(join(etcd, "pki"), { ...file.etcd, ca }, etcdUid);
}
