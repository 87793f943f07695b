import { isIP } from "node:net";
import { readConfig, type Setting, text, type ValuesOf, integer, list } from "@holdfast/common/config.ts";
import { proxySettings } from "@holdfast/common/client-address.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { FleetSettings } from "#fleet/fleet-settings.ts";
import type { KernelSettings } from "#kernel/kernel-settings.ts";
import { mergeDeclared, type SystemDeclaration } from "#kernel/system-declaration.ts";
import type { AppSettings } from "#app/issuer-feed.ts";
import type { InferenceConfig } from "#inference/inference-system.ts";
import { systems } from "./systems.ts";

const addresses = list(
  "HOLDFAST_OWN_ADDRESSES",
  "Additional addresses of the installation's listeners, such as behind NAT, or host:port of listeners that no other setting names; URLs of users must not refer to them",
);

/** Settings of the API listener. */
const apiSettings = {
  apiListen: list("HOLDFAST_API_LISTEN", "host:port of each listener for REST and gRPC", "127.0.0.1:8443"),
  baseUrl: text("HOLDFAST_BASE_URL", "URL at which clients reach the API", "https://127.0.0.1:8443"),
  apiCertFile: text(
    "HOLDFAST_API_CERT_FILE",
    "PEM file of the operator's certificate for the API and its chain, for clients that request one of its names; it is read again when it changes",
    "",
  ),
  consoleCode: text(
    "HOLDFAST_CONSOLE_CODE",
    "Directory of the console that this controller serves, built by console/bundle.ts; empty: built from the controller's checkout",
    "",
  ),
  apiCertKeyFile: text("HOLDFAST_API_CERT_KEY_FILE", "PEM file of the private key of the operator's certificate", ""),
  apiCertAwaited: text(
    "HOLDFAST_API_CERT_AWAITED",
    "yes: the two files of the certificate may not exist yet; until then clients get the installation's own certificate",
    "",
  ),
  ownAddresses: {
    ...addresses,
    parse(value: string) {
      const all = addresses.parse(value);
      for (const each of all) if (isIP(each) === 0) endpointOf(each);
      return all;
    },
  },
  rateReads: integer(
    "HOLDFAST_RATE_READS",
    "Reads per second of one credential on each controller, with a burst of ten times as many; all credentials of an organization together may make five times as many; 0 for no limit",
    100,
  ),
  rateChanges: integer(
    "HOLDFAST_RATE_CHANGES",
    "Changes per second of one credential on each controller, with a burst of ten times as many; all credentials of an organization together may make five times as many; 0 for no limit",
    20,
  ),
  rateMessages: integer(
    "HOLDFAST_RATE_MESSAGES",
    "Calls about messages of queues (enqueue, list, claim, ack, nack, extend) per second of one credential on each controller, with a burst of ten times as many; all credentials of an organization together may make five times as many; 0 for no limit",
    500,
  ),
  followers: integer(
    "HOLDFAST_FOLLOWERS",
    "Concurrent streams of events and logs of one credential on each controller; all credentials of an organization together may have five times as many, and all organizations fifty times as many",
    20,
  ),
  rateSource: integer(
    "HOLDFAST_RATE_SOURCE",
    "Requests per second without a credential (pages, health, reflection, setup) of one address, or /64 of IPv6, with a burst of ten times as many; 0 for no limit",
    50,
  ),
  ...proxySettings,
  apiConnections: integer(
    "HOLDFAST_API_CONNECTIONS",
    "Maximum number of connections to the API on each controller; above it the longest idle connection of the address with the most connections is closed",
    8_000,
  ),
} as const;

export type ApiSettings = ValuesOf<typeof apiSettings>;

const logSettings = {
  logLevel: text("HOLDFAST_LOG_LEVEL", "Minimum level of logged messages: debug, info, warn or error", "info"),
} as const;

/** Settings that the controller itself reads; each system reads its own settings. */
export type ControllerConfig = KernelSettings &
  ApiSettings &
  Pick<FleetSettings, "agentListen" | "domain"> &
  Partial<Pick<AppSettings, "issuerAddresses" | "issuerPort"> & Pick<InferenceConfig, "inferenceAddresses">> &
  ValuesOf<typeof logSettings>;

/** Every setting of a controller with these systems. */
function settingsOf(declared: readonly SystemDeclaration[]) {
  const controllerSettings = { name: "controller", settings: { ...apiSettings, ...logSettings } };
  return mergeDeclared<Pick<SystemDeclaration, "name" | "settings">, Setting<unknown>>(
    [...declared, controllerSettings],
    ({ settings: members }) => members,
  );
}

/** All settings. The pages in docs/reference/settings/ are generated from them. */
export const settings = settingsOf(systems);

/** Reads the settings; throws one error with all problems. The values include the settings of the systems. */
export function readControllerConfig(
  environment: Readonly<Record<string, string | undefined>>,
  declared: readonly SystemDeclaration[] = systems,
): ControllerConfig {
  return readConfig(settingsOf(declared), environment) as ControllerConfig;
}
