import {
  type DataPlane,
  type DataPlaneHost,
  type DataPlaneName,
  dataPlaneNames,
  identityDirectorySetting,
} from "@holdfast/common/data-planes.ts";
import { endpointText } from "@holdfast/common/endpoint.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { challengesServerOf } from "./acme/acme-child.ts";
import { isOwnAddress } from "./advertised-listener.ts";
import { type ChildSpec, nodejsProcess } from "./child.ts";
import { localDataPlanes } from "./data-planes.ts";
import { resolverAddressOf } from "./installation.ts";
import type { Layout } from "./layout.ts";
import { objectsCredentialFile, objectsDirectory, objectsUrl } from "./object-store.ts";
import { listenersOf, type PlatformParts } from "./platform-parts.ts";
import { dataPlaneUid } from "./program-user.ts";
import { UserError } from "./user-error.ts";

/** Number of processes that share a data plane's port; one unless the operator sets more. Throws a UserError. */
function processesOf({ processes }: DataPlane, environment: PlatformParts["environment"]): number {
  if (processes === undefined) return 1;
  const text = lookUp(environment, processes.countSetting) ?? "1";
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= processes.maxCount) return count;
  throw new UserError(`${processes.countSetting}: ${text} is not a number from 1 to ${processes.maxCount}`);
}

/** Settings of the directories into which a controller writes the identities of local data planes. */
export function identityDirectories(layout: Layout): Record<string, string> {
  return Object.fromEntries(
    dataPlaneNames.map((name) => [
      identityDirectorySetting(name),
      localDataPlanes[name].identityDirectory(layout[name]),
    ]),
  );
}

/** Processes of an installation's data planes. Each waits for its certificate itself. */
export function dataPlaneChildren(parts: PlatformParts): ChildSpec[] {
  const { programs, environment, layout, machineHost } = parts;
  return dataPlaneNames.flatMap((name): ChildSpec[] => {
    const plane = localDataPlanes[name];
    const host = dataPlaneHost(name, parts);
    const ownSettings = {
      [`HOLDFAST_${name.toUpperCase()}_LISTEN`]: host.listenersOn(machineHost.address),
      [identityDirectorySetting(name)]: plane.identityDirectory(layout[name]),
      ...plane.settings(host),
    };
    const { graceMs, processes } = plane;
    const child = (childName: string, settings: Readonly<Record<string, string>>) =>
      nodejsProcess(childName, programs[name], environment, { ...ownSettings, ...settings }, { graceMs });
    const numbers = Array.from({ length: processesOf(plane, environment) - 1 }, (_, at) => at + 2);
    const others = numbers.map((number) => child(`${name}-${number}`, processes?.settings(number, host) ?? {}));
    return [{ ...child(name, {}), listens: [name] }, ...others];
  });
}

/** Addresses of this host that hosted apps may have. Throws a UserError for one of another host. */
function floatingIpsOf(environment: PlatformParts["environment"]): readonly string[] {
  const all = (lookUp(environment, "HOLDFAST_FLOATING_IPS") ?? "").split(",").filter((each) => each !== "");
  const other = all.find((each) => !isOwnAddress(each));
  if (other === undefined) return all;
  throw new UserError(`HOLDFAST_FLOATING_IPS: ${other} is not an address of this machine, so no ingress listens on it`);
}

function dataPlaneHost(name: DataPlaneName, parts: PlatformParts): DataPlaneHost {
  const { layout, installation, machineHost, advertised, secrets, environment } = parts;
  return {
    installationId: installation.id,
    controllers: endpointText(machineHost.address, installation.ports.agents),
    directory: layout[name],
    keysDirectory: layout.keys,
    runDirectory: layout.run,
    objects: {
      directory: objectsDirectory(parts) ?? layout.objects,
      keyFile: secrets.storeKeyFile,
      url: objectsUrl(parts),
      credentialFile: objectsCredentialFile(parts),
    },
    imagesDirectory: parts.imagesDir,
    programUid: dataPlaneUid(installation.loopback_block, localDataPlanes[name].programNumber),
    advertisedAddress: advertised?.address,
    resolverAddress: resolverAddressOf(installation),
    floatingIps: floatingIpsOf(environment),
    challengesServer: challengesServerOf(environment),
    listenersOn: (address) => listenersOf([address], installation.ports[name], advertised),
  };
}
