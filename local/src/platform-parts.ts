import { endpointText } from "@holdfast/common/endpoint.ts";
import type { Installation } from "./installation.ts";
import type { Layout } from "./layout.ts";
import type { MachineHost } from "./machine-host.ts";
import type { Reach } from "./reach.ts";
import type { Secrets } from "./secrets.ts";
import type { TransportPki } from "./transport-pki.ts";

/** What the processes of an installation are made from. */
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

/** Where machines of this host find what listens for them, and other machines besides. */
export function listenersOf(own: string, port: number, reach: Reach | undefined): string {
  const hosts = reach === undefined ? [own] : [own, reach.listen];
  return [...new Set(hosts)].map((host) => endpointText(host, port)).join(",");
}
