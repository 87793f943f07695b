import { join } from "node:path";
import {
  type DataPlaneName,
  dataPlaneNames,
  dataPlanes,
  identityDirectorySetting,
} from "@holdfast/common/data-planes.ts";
import { endpointText } from "@holdfast/common/endpoint.ts";
import type { ChildSpec } from "./child.ts";
import type { Layout } from "./layout.ts";
import { objectsDirectory } from "./object-store.ts";
import { nodeChild } from "./node-child.ts";
import { listenersOf, type PlatformParts } from "./platform-parts.ts";
import { UserError } from "./user-error.ts";

/** Settings of one data plane's process, besides its listener. */
interface DataPlaneChild {
  identityDirectory(layout: Layout): string;
  settings(parts: PlatformParts): Record<string, string>;
  /** Further processes that share its port, with settings that override its own. */
  extraProcesses?(parts: PlatformParts): { readonly name: string; readonly settings: Record<string, string> }[];
}

const children: Readonly<Record<DataPlaneName, DataPlaneChild>> = {
  dns: {
    identityDirectory: ({ dns }) => join(dns, "identity"),
    settings: ({ layout, installation, machineHost, advertised }) => ({
      HOLDFAST_INSTALLATION_ID: installation.id,
      // Name servers in the zone: clients on other machines can reach no other address.
      ...(advertised !== undefined && { HOLDFAST_DNS_ADDRESSES: advertised.address }),
      HOLDFAST_DNS_DIR: layout.dns,
      HOLDFAST_CONTROLLERS: endpointText(machineHost.address, installation.ports.agents),
    }),
  },
  issuer: {
    identityDirectory: ({ issuer }) => join(issuer, "identity"),
    settings: ({ layout, installation, machineHost }) => ({
      HOLDFAST_INSTALLATION_ID: installation.id,
      HOLDFAST_ISSUER_DIR: layout.issuer,
      HOLDFAST_ISSUER_METRICS: join(layout.run, "issuer-metrics.sock"),
      HOLDFAST_CONTROLLERS: endpointText(machineHost.address, installation.ports.agents),
    }),
  },
  store: {
    identityDirectory: ({ store }) => store,
    settings: (parts) => ({
      // Unused if objects are in S3.
      HOLDFAST_STORE_DIR: objectsDirectory(parts) ?? parts.layout.objects,
      HOLDFAST_STORE_KEY_FILE: parts.secrets.storeKeyFile,
    }),
  },
  inference: {
    identityDirectory: ({ inference }) => join(inference, "identity"),
    settings: ({ layout, installation, machineHost, advertised }) => ({
      HOLDFAST_INSTALLATION_ID: installation.id,
      // Applications on this host call it, as they call the API.
      HOLDFAST_INFERENCE_LISTEN: listenersOf("127.0.0.1", installation.ports.inference, advertised),
      HOLDFAST_INFERENCE_DIR: layout.inference,
      HOLDFAST_INFERENCE_KEY_FILE: join(layout.keys, "inference-key"),
      HOLDFAST_INFERENCE_METRICS: join(layout.run, "inference-metrics.sock"),
      HOLDFAST_INFERENCE_SHARES_PORT: "yes",
      HOLDFAST_CONTROLLERS: endpointText(machineHost.address, installation.ports.agents),
    }),
    extraProcesses: ({ layout, environment }) =>
      Array.from({ length: inferenceProcessesOf(environment) - 1 }, (_, at) => ({
        name: `inference-${at + 2}`,
        settings: {
          HOLDFAST_INFERENCE_DIR: join(layout.inference, String(at + 2)),
          HOLDFAST_INFERENCE_METRICS: join(layout.run, `inference-metrics-${at + 2}.sock`),
        },
      })),
  },
};

const inferenceProcessesMax = 16;

/** Number of proxy processes that share the port; one unless the operator sets more. Throws a UserError. */
function inferenceProcessesOf({ HOLDFAST_INFERENCE_PROCESSES: text = "1" }: PlatformParts["environment"]): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= inferenceProcessesMax) return count;
  throw new UserError(`HOLDFAST_INFERENCE_PROCESSES: ${text} is not a number from 1 to ${inferenceProcessesMax}`);
}

/** Settings of the directories into which a controller writes the identities of local data planes. */
export function identityDirectories(layout: Layout): Record<string, string> {
  return Object.fromEntries(
    dataPlaneNames.map((name) => [identityDirectorySetting(name), children[name].identityDirectory(layout)]),
  );
}

/** Processes of an installation's data planes. Each waits for its certificate itself. */
export function dataPlaneChildren(parts: PlatformParts): ChildSpec[] {
  const { checkout, environment, layout, installation, machineHost, advertised } = parts;
  return dataPlaneNames.flatMap((name): ChildSpec[] => {
    const { identityDirectory, settings, extraProcesses } = children[name];
    const main = join(checkout, name, "src", "main.ts");
    const ownSettings = {
      [`HOLDFAST_${name.toUpperCase()}_LISTEN`]: listenersOf(machineHost.address, installation.ports[name], advertised),
      [identityDirectorySetting(name)]: identityDirectory(layout),
      ...settings(parts),
    };
    const { graceMs } = dataPlanes[name];
    const extra = (extraProcesses?.(parts) ?? []).map((other) =>
      nodeChild(other.name, main, environment, { ...ownSettings, ...other.settings }, { graceMs }),
    );
    return [{ ...nodeChild(name, main, environment, ownSettings, { graceMs }), listens: [name] }, ...extra];
  });
}
