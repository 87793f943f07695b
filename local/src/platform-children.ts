import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { endpointText } from "@holdfast/common/endpoint.ts";
import { controllerFlags } from "@holdfast/controller/node-flags.ts";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import type { ChildSpec } from "./child.ts";
import type { Installation } from "./installation.ts";
import type { Layout } from "./layout.ts";
import type { MachineHost } from "./machine-host.ts";
import type { Reach } from "./reach.ts";
import type { Secrets } from "./secrets.ts";
import type { TransportPki } from "./transport-pki.ts";

export interface PlatformParts {
  readonly layout: Layout;
  readonly installation: Installation;
  readonly secrets: Secrets;
  readonly pki: TransportPki;
  readonly imagesDir: string;
  readonly machineHost: MachineHost;
  /** How other machines reach it; undefined when they are not to. */
  readonly reach: Reach | undefined;
  /** Root of the code. */
  readonly checkout: string;
  /** What the operator set: children get it all, with ours over it. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Origin of the zone that services of a local installation are named in. */
const domain = "local.holdfast.test";
const loopback = "127.0.0.1";

/** URL of the API for clients. */
export function baseUrlOf({ ports, advertise = loopback }: Installation): string {
  return `https://${endpointText(advertise, ports.api)}`;
}

/** URL of the API on this host, whoever else reaches it by whatever. */
export function localUrlOf({ ports }: Installation): string {
  return `https://${endpointText(loopback, ports.api)}`;
}

/** Where clients ask for names. */
export function dnsServerOf({ installation, machineHost, reach }: PlatformParts): string {
  return endpointText(reach?.advertise ?? machineHost.address, installation.ports.dns);
}

/** Where machines of this host find what listens for them, and other machines besides. */
function listenersOf(own: string, port: number, reach: Reach | undefined): string {
  const hosts = reach === undefined ? [own] : [own, reach.listen];
  return [...new Set(hosts)].map((host) => endpointText(host, port)).join(",");
}

/** Everything that a controller of this installation is told; another one on the same etcd differs in its id and listeners only. */
export function controllerSettings(parts: PlatformParts) {
  const { layout, installation, secrets, pki, imagesDir, machineHost, reach } = parts;
  const { ports } = installation;
  return {
    HOLDFAST_INSTALLATION_ID: installation.id,
    // The same at each start: what an earlier one held is known at once to be held no more.
    HOLDFAST_CONTROLLER_ID: "controller-1",
    HOLDFAST_ETCD: `https://127.0.0.1:${ports.etcd_client}`,
    HOLDFAST_ETCD_CA: pki.controller.ca,
    HOLDFAST_ETCD_CERT: pki.controller.certificate,
    HOLDFAST_ETCD_KEY: pki.controller.key,
    HOLDFAST_HISTORY_URL: `postgres://holdfast@127.0.0.1:${ports.history}/holdfast`,
    HOLDFAST_HISTORY_PASSWORD_FILE: secrets.historyPasswordFile,
    HOLDFAST_HISTORY_CA: pki.controller.ca,
    HOLDFAST_MASTER_KEY_FILE: secrets.masterKeyFile,
    HOLDFAST_API_LISTEN: listenersOf(loopback, ports.api, reach),
    HOLDFAST_BASE_URL: baseUrlOf(installation),
    HOLDFAST_AGENT_LISTEN: listenersOf(machineHost.address, ports.agents, reach),
    HOLDFAST_AGENT_ADVERTISE: endpointText(reach?.address ?? machineHost.address, ports.agents),
    HOLDFAST_DOMAIN: domain,
    HOLDFAST_OBJECTS: pathToFileURL(layout.objects).href,
    HOLDFAST_PROCESS_DIR: layout.root,
    ...machineHost.settings,
    HOLDFAST_IMAGES_DIR: imagesDir,
    HOLDFAST_DNS_SERVERS: endpointText(machineHost.address, ports.dns),
    HOLDFAST_BOOTSTRAP_FILE: secrets.bootstrapFile,
    HOLDFAST_CA_FILE: layout.authority,
    HOLDFAST_DNS_IDENTITY_DIR: dnsIdentity(layout),
    HOLDFAST_DEFAULT_ALLOWED_CIDRS: machineHost.allowedCidrs.join(","),
  };
}

/** The controller, with the gateway in it. */
export function controllerChild(parts: PlatformParts): ChildSpec {
  const main = join(parts.checkout, "controller", "src", "main.ts");
  const child = nodeChild("controller", main, parts.environment, controllerSettings(parts), controllerFlags);
  return { ...child, listens: ["api", "agents"] };
}

/** The DNS server. */
export function dnsChild(parts: PlatformParts): ChildSpec {
  const { layout, installation, machineHost, reach } = parts;
  const { ports } = installation;
  const child = nodeChild("dns", join(parts.checkout, "dns", "src", "main.ts"), parts.environment, {
    HOLDFAST_INSTALLATION_ID: installation.id,
    HOLDFAST_DNS_LISTEN: listenersOf(machineHost.address, ports.dns, reach),
    // What the zone says of its own servers: clients that are elsewhere reach no other.
    ...(reach !== undefined && { HOLDFAST_DNS_ADDRESSES: reach.address }),
    HOLDFAST_DNS_DIR: layout.dns,
    HOLDFAST_DNS_IDENTITY_DIR: dnsIdentity(layout),
    HOLDFAST_CONTROLLERS: endpointText(machineHost.address, ports.agents),
  });
  return { ...child, listens: ["dns"] };
}

/** Directory in which the controller leaves the certificate of the DNS server. */
export function dnsIdentity(layout: Layout): string {
  return join(layout.dns, "identity");
}

/** A program of the platform; `settings` come over what the operator set, `flags` are Node's. */
export function nodeChild(
  name: string,
  main: string,
  environment: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
): ChildSpec {
  // grpc-js names etcd's IP address as TLS server name, and Node says so on each start.
  const argv = [process.execPath, "--disable-warning=DEP0123", ...flags, main];
  const [command = "", ...args] = argv;
  return {
    name,
    // Only Linux ends a process with its parent.
    launch: existsSync("/proc/self") ? dyingWithParent(argv) : { command, args },
    env: { ...environment, ...settings },
    ready: null,
    stopSignal: "SIGTERM",
    graceMs: 10_000,
  };
}
