import { isIP } from "node:net";
import { readConfig, type Setting, text, type ValuesOf, integer, list } from "@holdfast/common/config.ts";
import { proxySettings } from "@holdfast/common/client-address.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { FleetSettings } from "#fleet/fleet-settings.ts";
import type { KernelSettings } from "#kernel/kernel-settings.ts";
import { mergeDeclared, type SystemDeclaration } from "#kernel/system-declaration.ts";
import type { AppSettings } from "#app/issuer-feed.ts";
import type { InferenceSettings } from "#inference/inference-system.ts";
import { systems } from "./systems.ts";

const addresses = list(
  "HOLDFAST_OWN_ADDRESSES",
  "Further addresses of the installation's listeners, such as behind NAT, or host:port of listeners that no other setting names; URLs of users never lead there",
);

/** Settings of the API listener. */
const apiSettings = {
  apiListen: list("HOLDFAST_API_LISTEN", "Each host:port that serves REST and gRPC", "127.0.0.1:8443"),
  baseUrl: text("HOLDFAST_BASE_URL", "URL at which clients reach the API", "https://127.0.0.1:8443"),
  apiCertFile: text(
    "HOLDFAST_API_CERT_FILE",
    "PEM file of an own certificate and its chain, for clients of the API that request one of its names; it is read again when it changes",
    "",
  ),
  consoleCode: text(
    "HOLDFAST_CONSOLE_CODE",
    "Directory of the console that this controller serves, built by console/bundle.ts; empty: built from its own checkout",
    "",
  ),
  apiCertKeyFile: text("HOLDFAST_API_CERT_KEY_FILE", "PEM file of the private key of the own certificate", ""),
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
    "Reads that one credential may make in a second on each controller, ten times as many at once; an organization has five times that; 0 for no limit",
    100,
  ),
  rateChanges: integer(
    "HOLDFAST_RATE_CHANGES",
    "Changes that one credential may request in a second on each controller, ten times as many at once; an organization has five times that; 0 for no limit",
    20,
  ),
  rateMessages: integer(
    "HOLDFAST_RATE_MESSAGES",
    "Calls about messages of queues (enqueue, list, claim, ack, nack, extend) that one credential may make in a second on each controller, ten times as many at once; an organization has five times that; 0 for no limit",
    500,
  ),
  followers: integer(
    "HOLDFAST_FOLLOWERS",
    "Streams of events and logs that one credential may have at a time on each controller; an organization has five times that, and all have fifty times that",
    20,
  ),
  rateSource: integer(
    "HOLDFAST_RATE_SOURCE",
    "Requests without a credential (pages, health, reflection, setup) that one address, or /64 of IPv6, may make in a second, ten times as many at once; 0 for no limit",
    50,
  ),
  ...proxySettings,
  apiConnections: integer(
    "HOLDFAST_API_CONNECTIONS",
    "Connections to the API on each controller; above it the longest idle one of the address with most connections is closed",
    8_000,
  ),
} as const;

export type ApiSettings = ValuesOf<typeof apiSettings>;

const logSettings = { logLevel: text("HOLDFAST_LOG_LEVEL", "debug, info, warn or error", "info") } as const;

/** Settings that the controller itself reads; each system reads its own. */
export type ControllerConfig = KernelSettings &
  ApiSettings &
  Pick<FleetSettings, "agentListen"> &
  Partial<Pick<AppSettings, "issuerAddresses" | "issuerPort"> & Pick<InferenceSettings, "inferenceAddresses">> &
  ValuesOf<typeof logSettings>;

/** Every setting of a controller with these systems. */
function settingsOf(declared: readonly SystemDeclaration[]) {
  const own = { name: "controller", settings: { ...apiSettings, ...logSettings } };
  return mergeDeclared<Pick<SystemDeclaration, "name" | "settings">, Setting<unknown>>(
    [...declared, own],
    ({ settings: members }) => members,
  );
}

/** All settings; docs/reference/settings/ is generated from them. */
export const settings = settingsOf(systems);

/** Throws with all problems together. The values include those that systems declare, for the systems to read. */
export function readControllerConfig(
  environment: Readonly<Record<string, string | undefined>>,
  declared: readonly SystemDeclaration[] = systems,
): ControllerConfig {
  return readConfig(settingsOf(declared), environment) as ControllerConfig;
}
