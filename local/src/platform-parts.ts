import { endpointText } from "@holdfast/common/endpoint.ts";
import type { Installation } from "./installation.ts";
import type { Layout } from "./layout.ts";
import type { MachineHost } from "./machine-host.ts";
import type { Programs } from "./programs.ts";
import type { AdvertisedListener } from "./advertised-listener.ts";
import type { Secrets } from "./secrets.ts";
import type { TransportPki } from "./transport-pki.ts";

/** Inputs of an installation's processes. */
export interface PlatformParts {
  readonly layout: Layout;
  readonly installation: Installation;
  readonly secrets: Secrets;
  readonly pki: TransportPki;
  readonly imagesDir: string;
  readonly machineHost: MachineHost;
  /** Addresses for other machines; undefined if they are not to reach it. */
  readonly advertised: AdvertisedListener | undefined;
  readonly programs: Programs;
  /** The operator's environment, which all processes inherit; settings of the installation override it. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Listen addresses for machines of this host, and for other machines if advertised. */
export function listenersOf(
  local: readonly string[],
  port: number,
  advertised: AdvertisedListener | undefined,
): string {
  const hosts = advertised === undefined ? local : [...local, advertised.listen];
  return [...new Set(hosts)].map((host) => endpointText(host, port)).join(",");
}
