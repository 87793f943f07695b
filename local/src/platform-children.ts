import { endpointText } from "@holdfast/common/endpoint.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { controllerFlags } from "@holdfast/controller/nodejs-flags.ts";
import { type ChildSpec, nodejsProcess } from "./child.ts";
import { acmeCertificateSettings, isAcmeEnabled } from "./acme/acme-child.ts";
import { identityDirectories } from "./data-plane-children.ts";
import { domainOf, type Installation, resolverAddressOf } from "./installation.ts";
import { objectsCredentialFile, objectsUrl } from "./object-store.ts";
import { listenersOf, type PlatformParts } from "./platform-parts.ts";
import { portNames } from "./ports.ts";
import { replaceFileSync } from "./files.ts";

const loopback = "127.0.0.1";

/** Base URL of the API for clients. */
export function baseUrlOf({ ports, advertise = loopback }: Installation): string {
  return `https://${endpointText(advertise, ports.api)}`;
}

/** Base URL of the API on this host, independent of the advertised address. */
export function localUrlOf({ ports }: Installation): string {
  return `https://${endpointText(loopback, ports.api)}`;
}

/** Base URL of the inference proxy, for clients of OpenAI's API. */
export function inferenceUrlOf({ ports, advertise = loopback }: Installation): string {
  return `https://${endpointText(advertise, ports.inference)}/v1`;
}

/** URL of the registry of images, whose host and port are the first part of an image's name. */
export function registryUrlOf({ ports, advertise = loopback }: Installation): string {
  return `https://${endpointText(advertise, ports.registry)}`;
}

/** URLs of hosted apps, as a pattern. */
export function appsUrlOf(installation: Installation): string {
  const { ingress } = installation.ports;
  return `https://NAME-ID.apps.${domainOf(installation)}${ingress === 443 ? "" : `:${ingress}`}`;
}

/** Address of the DNS server for clients. */
export function dnsServerOf({ installation, machineHost, advertised }: PlatformParts): string {
  return endpointText(advertised?.advertise ?? machineHost.address, installation.ports.dns);
}

/** All settings of a controller. Another controller on the same etcd differs only in its id and listeners. */
export function controllerSettings(parts: PlatformParts) {
  const { layout, installation, secrets, pki, imagesDir, machineHost, advertised, environment } = parts;
  const { ports } = installation;
  const domain = domainOf(installation);
  return {
    HOLDFAST_INSTALLATION_ID: installation.id,
    // The id is the same at each start, so that leases of an earlier run are known to be void.
    HOLDFAST_CONTROLLER_ID: "controller-1",
    // With the members that the operator added to the installation's own.
    HOLDFAST_ETCD: environment["HOLDFAST_ETCD"] ?? `https://127.0.0.1:${ports.etcd_client}`,
    HOLDFAST_ETCD_CA: pki.controller.ca,
    HOLDFAST_ETCD_CERT: pki.controller.certificate,
    HOLDFAST_ETCD_KEY: pki.controller.key,
    HOLDFAST_HISTORY_URL: `postgres://holdfast@127.0.0.1:${ports.history}/holdfast`,
    HOLDFAST_HISTORY_PASSWORD_FILE: secrets.historyPasswordFile,
    HOLDFAST_HISTORY_CA: pki.controller.ca,
    HOLDFAST_MASTER_KEY_FILE: secrets.masterKeyFile,
    // Machines of hosted apps reach the API at the machine host's address.
    HOLDFAST_API_LISTEN: listenersOf([loopback, machineHost.address], ports.api, advertised),
    HOLDFAST_BASE_URL: baseUrlOf(installation),
    // All ports of the installation, including ports of other programs.
    HOLDFAST_OWN_ADDRESSES: [
      ...portNames.map((name) => endpointText(loopback, ports[name])),
      endpointText(resolverAddressOf(installation), 53),
      ...(environment["HOLDFAST_OWN_ADDRESSES"]?.split(",") ?? []),
    ].join(","),
    HOLDFAST_AGENT_LISTEN: listenersOf([machineHost.address], ports.agents, advertised),
    HOLDFAST_AGENT_ADVERTISE: endpointText(advertised?.address ?? machineHost.address, ports.agents),
    HOLDFAST_DOMAIN: domain,
    HOLDFAST_ISSUER_ADDRESSES: advertised?.address ?? machineHost.address,
    HOLDFAST_ISSUER_PORT: String(ports.issuer),
    HOLDFAST_INFERENCE_ADDRESSES: advertised?.address ?? loopback,
    HOLDFAST_INFERENCE_NAMES: [
      ...new Set([`inference.${domain}`, ...(advertised ? [advertised.advertise, advertised.address] : [])]),
    ].join(","),
    HOLDFAST_REGISTRY_ADDRESS: new URL(registryUrlOf(installation)).host,
    HOLDFAST_REGISTRY_NAMES: [
      ...new Set([`registry.${domain}`, ...(advertised ? [advertised.advertise, advertised.address] : [])]),
    ].join(","),
    HOLDFAST_INGRESS_ADDRESSES: advertised?.address ?? loopback,
    HOLDFAST_INGRESS_PORT: String(ports.ingress),
    HOLDFAST_INGRESS_NAMES: `*.apps.${domain}`,
    HOLDFAST_INGRESS_FROM: [...new Set(["127.0.0.1", machineHost.address])].map((address) => `${address}/32`).join(","),
    HOLDFAST_APP_API_ADDRESSES: advertised?.address ?? machineHost.address,
    HOLDFAST_APP_API_PORT: String(ports.api),
    HOLDFAST_ISSUERS_FROM: [...new Set(["127.0.0.1", machineHost.address])].map((address) => `${address}/32`).join(","),
    HOLDFAST_OBJECTS: objectsUrl(parts),
    HOLDFAST_OBJECTS_KEY_FILE: objectsCredentialFile(parts),
    HOLDFAST_OBJECTS_ENDPOINT: endpointText(advertised?.address ?? machineHost.address, ports.store),
    HOLDFAST_PROCESS_DIR: layout.root,
    ...machineHost.settings,
    HOLDFAST_IMAGES_DIR: imagesDir,
    HOLDFAST_DNS_SERVERS: endpointText(machineHost.address, ports.dns),
    HOLDFAST_BOOTSTRAP_FILE: secrets.bootstrapFile,
    HOLDFAST_CA_FILE: layout.authority,
    ...identityDirectories(layout),
    HOLDFAST_DEFAULT_ALLOWED_CIDRS: machineHost.allowedCidrs.join(","),
    ...acmeCertificateSettings(parts),
  };
}

/** The process of the controller, which includes the gateway. */
export function controllerChild(parts: PlatformParts): ChildSpec {
  const { programs, environment } = parts;
  const child = nodejsProcess("controller", programs.controller, environment, controllerSettings(parts), {
    flags: controllerFlags,
  });
  return { ...child, listens: ["api", "agents"] };
}

/** Writes admin.json: addresses and credentials for clients. */
export function writeAdminFile(parts: PlatformParts): void {
  const { layout, installation, secrets, environment } = parts;
  const { organization: _, ...credentials } = secrets.bootstrap;
  // With a certificate of the operator, only IP addresses have the certificate that `ca_file` verifies.
  const hasOwn = lookUp(environment, "HOLDFAST_API_CERT_FILE") || isAcmeEnabled(environment);
  const url = hasOwn ? localUrlOf(installation) : baseUrlOf(installation);
  const admin = {
    base_url: url,
    grpc_url: url,
    inference_url: inferenceUrlOf(installation),
    registry_url: registryUrlOf(installation),
    ...credentials,
    ca_file: layout.authority,
    dns_server: dnsServerOf(parts),
  };
  replaceFileSync(layout.admin, `${JSON.stringify(admin, null, 2)}\n`, 0o600);
}
