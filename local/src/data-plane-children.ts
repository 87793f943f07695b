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
import { objectsDirectory } from "./installation-objects.ts";
import { nodeChild } from "./node-child.ts";
import { listenersOf, type PlatformParts } from "./platform-parts.ts";
import { UserError } from "./user-error.ts";

/** What is its own of a data plane's child: where its identity is, and settings besides its listener. */
interface DataPlaneChild {
  identityDirectory(layout: Layout): string;
  settings(parts: PlatformParts): Record<string, string>;
  /** Of further processes that share its port; their settings come over its own. */
  others?(parts: PlatformParts): { readonly name: string; readonly settings: Record<string, string> }[];
}

const children: Readonly<Record<DataPlaneName, DataPlaneChild>> = {
  dns: {
    identityDirectory: ({ dns }) => join(dns, "identity"),
    settings: ({ layout, installation, machineHost, reach }) => ({
      HOLDFAST_INSTALLATION_ID: installation.id,
      // What the zone says of its own servers: clients that are elsewhere reach no other.
      ...(reach !== undefined && { HOLDFAST_DNS_ADDRESSES: reach.address }),
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
      // Nobody asks it for anything where objects are in S3.
      HOLDFAST_STORE_DIR: objectsDirectory(parts) ?? parts.layout.objects,
      HOLDFAST_STORE_KEY_FILE: parts.secrets.storeKeyFile,
    }),
  },
  inference: {
    identityDirectory: ({ inference }) => join(inference, "identity"),
    settings: ({ layout, installation, machineHost, reach }) => ({
      HOLDFAST_INSTALLATION_ID: installation.id,
      // Applications of this host call it, as they do the API.
      HOLDFAST_INFERENCE_LISTEN: listenersOf("127.0.0.1", installation.ports.inference, reach),
      HOLDFAST_INFERENCE_DIR: layout.inference,
      HOLDFAST_INFERENCE_KEY_FILE: join(layout.keys, "inference-key"),
      HOLDFAST_INFERENCE_METRICS: join(layout.run, "inference-metrics.sock"),
      HOLDFAST_INFERENCE_SHARES_PORT: "yes",
      HOLDFAST_CONTROLLERS: endpointText(machineHost.address, installation.ports.agents),
    }),
    others: ({ layout, environment }) =>
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

/** How many processes of the proxy share its port; one unless the operator asks for more. Throws a UserError. */
function inferenceProcessesOf({ HOLDFAST_INFERENCE_PROCESSES: asked = "1" }: PlatformParts["environment"]): number {
  const count = Number(asked);
  if (Number.isInteger(count) && count >= 1 && count <= inferenceProcessesMax) return count;
  throw new UserError(`HOLDFAST_INFERENCE_PROCESSES: ${asked} is not a number from 1 to ${inferenceProcessesMax}`);
}

/** The settings by which a controller knows where to leave the identities of the data planes beside it. */
export function identityDirectories(layout: Layout): Record<string, string> {
  return Object.fromEntries(
    dataPlaneNames.map((name) => [identityDirectorySetting(name), children[name].identityDirectory(layout)]),
  );
}

/** The data planes of an installation. Each waits for its certificate by itself. */
export function dataPlaneChildren(parts: PlatformParts): ChildSpec[] {
  const { checkout, environment, layout, installation, machineHost, reach } = parts;
  return dataPlaneNames.flatMap((name): ChildSpec[] => {
    const { identityDirectory, settings, others } = children[name];
    const main = join(checkout, name, "src", "main.ts");
    const its = {
      [`HOLDFAST_${name.toUpperCase()}_LISTEN`]: listenersOf(machineHost.address, installation.ports[name], reach),
      [identityDirectorySetting(name)]: identityDirectory(layout),
      ...settings(parts),
    };
    const { graceMs } = dataPlanes[name];
    const further = (others?.(parts) ?? []).map((other) =>
      nodeChild(other.name, main, environment, { ...its, ...other.settings }, { graceMs }),
    );
    return [{ ...nodeChild(name, main, environment, its, { graceMs }), listens: [name] }, ...further];
  });
}
