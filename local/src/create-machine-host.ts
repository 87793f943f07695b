import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { createIncusHost } from "./incus-host.ts";
import { type Installation, providerOf } from "./installation.ts";
import type { Layout } from "./layout.ts";
import { createNoHost, createProcessHost, type MachineHost } from "./machine-host.ts";

/** Machine host of the installation's provider, with its public addresses. */
export function createMachineHost(
  layout: Layout,
  installation: Omit<Installation, "ports">,
  environment: Readonly<Record<string, string>>,
): MachineHost {
  const { public_addresses: publicAddresses = "" } = installation;
  const host = hostOf(layout, installation, publicAddresses, environment);
  return { ...host, settings: { ...host.settings, HOLDFAST_PUBLIC_ADDRESSES: publicAddresses } };
}

function hostOf(
  { root }: Layout,
  installation: Omit<Installation, "ports">,
  publicAddresses: string,
  environment: Readonly<Record<string, string>>,
): MachineHost {
  const { loopback_block: loopbackBlock, incus_socket: socket } = installation;
  const provider = providerOf(installation);
  if (provider === "none") return createNoHost();
  if (provider === "process") return createProcessHost(root, loopbackBlock, publicAddresses);
  return createIncusHost({
    directory: root,
    loopbackBlock,
    socket,
    cacheDir: cacheDirectory(environment),
    environment,
  });
}
