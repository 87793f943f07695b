import { join } from "node:path";
import { endpointText } from "@holdfast/common/endpoint.ts";
import { controllerFlags } from "@holdfast/controller/node-flags.ts";
import type { ChildSpec } from "./child.ts";
import { identityDirectories } from "./data-plane-children.ts";
import type { Installation } from "./installation.ts";
import { objectsDirectory, objectsUrl } from "./installation-objects.ts";
import { nodeChild } from "./node-child.ts";
import { listenersOf, type PlatformParts } from "./platform-parts.ts";
import { portNames } from "./ports.ts";

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

/** Base URL of the inference proxy, for clients of OpenAI's API. */
export function inferenceUrlOf({ ports, advertise = loopback }: Installation): string {
  return `https://${endpointText(advertise, ports.inference)}/v1`;
}

/** Where clients ask for names. */
export function dnsServerOf({ installation, machineHost, reach }: PlatformParts): string {
  return endpointText(reach?.advertise ?? machineHost.address, installation.ports.dns);
}

/** Everything that a controller of this installation is told; another one on the same etcd differs in its id and listeners only. */
export function controllerSettings(parts: PlatformParts) {
  const { layout, installation, secrets, pki, imagesDir, machineHost, reach, environment } = parts;
  const { ports } = installation;
  return {
    HOLDFAST_INSTALLATION_ID: installation.id,
    // The same at each start: what an earlier one held is known at once to be held no more.
    HOLDFAST_CONTROLLER_ID: "controller-1",
    // Members that its operator added to its own are named here with it.
    HOLDFAST_ETCD: environment["HOLDFAST_ETCD"] ?? `https://127.0.0.1:${ports.etcd_client}`,
    HOLDFAST_ETCD_CA: pki.controller.ca,
    HOLDFAST_ETCD_CERT: pki.controller.certificate,
    HOLDFAST_ETCD_KEY: pki.controller.key,
    HOLDFAST_HISTORY_URL: `postgres://holdfast@127.0.0.1:${ports.history}/holdfast`,
    HOLDFAST_HISTORY_PASSWORD_FILE: secrets.historyPasswordFile,
    HOLDFAST_HISTORY_CA: pki.controller.ca,
    HOLDFAST_MASTER_KEY_FILE: secrets.masterKeyFile,
    HOLDFAST_API_LISTEN: listenersOf(loopback, ports.api, reach),
    HOLDFAST_BASE_URL: baseUrlOf(installation),
    // Every port of the installation, also of programs that are not ours.
    HOLDFAST_OWN_ADDRESSES: [
      ...portNames.map((name) => endpointText(loopback, ports[name])),
      ...(environment["HOLDFAST_OWN_ADDRESSES"]?.split(",") ?? []),
    ].join(","),
    HOLDFAST_AGENT_LISTEN: listenersOf(machineHost.address, ports.agents, reach),
    HOLDFAST_AGENT_ADVERTISE: endpointText(reach?.address ?? machineHost.address, ports.agents),
    HOLDFAST_DOMAIN: domain,
    HOLDFAST_ISSUER_ADDRESSES: reach?.address ?? machineHost.address,
    HOLDFAST_ISSUER_PORT: String(ports.issuer),
    HOLDFAST_INFERENCE_ADDRESSES: reach?.address ?? loopback,
    HOLDFAST_INFERENCE_NAMES: [
      ...new Set([`inference.${domain}`, ...(reach ? [reach.advertise, reach.address] : [])]),
    ].join(","),
    HOLDFAST_ISSUERS_FROM: [...new Set(["127.0.0.1", machineHost.address])].map((address) => `${address}/32`).join(","),
    HOLDFAST_OBJECTS: objectsUrl(parts),
    HOLDFAST_OBJECTS_KEY_FILE: objectsDirectory(parts) === undefined ? secrets.objectsKeyFile : secrets.storeKeyFile,
    HOLDFAST_OBJECTS_ENDPOINT: endpointText(reach?.address ?? machineHost.address, ports.store),
    HOLDFAST_PROCESS_DIR: layout.root,
    ...machineHost.settings,
    HOLDFAST_IMAGES_DIR: imagesDir,
    HOLDFAST_DNS_SERVERS: endpointText(machineHost.address, ports.dns),
    HOLDFAST_BOOTSTRAP_FILE: secrets.bootstrapFile,
    HOLDFAST_CA_FILE: layout.authority,
    ...identityDirectories(layout),
    HOLDFAST_DEFAULT_ALLOWED_CIDRS: machineHost.allowedCidrs.join(","),
  };
}

/** The controller, with the gateway in it. */
export function controllerChild(parts: PlatformParts): ChildSpec {
  const main = join(parts.checkout, "controller", "src", "main.ts");
  const child = nodeChild("controller", main, parts.environment, controllerSettings(parts), {
    flags: controllerFlags,
  });
  return { ...child, listens: ["api", "agents"] };
}
