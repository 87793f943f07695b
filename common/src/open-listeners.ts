import type { AddressInfo, ListenOptions, Server } from "node:net";
import { networkInterfaces } from "node:os";
import { type Endpoint, endpointText } from "./endpoint.ts";

const open = new Map<Server, Endpoint>();

/**
 * Listens on host:port and resolves with the port. Every network listener of the platform is opened here: egress reads
 * the list of the process's listeners and never connects to one of them for a user.
 */
export function listenAt(server: Server, at: Endpoint, options: ListenOptions = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ ...options, host: at.host, port: at.port }, () => {
      server.off("error", reject);
      const { address, port } = server.address() as AddressInfo;
      open.set(server, { host: address, port });
      server.once("close", () => open.delete(server));
      resolve(port);
    });
  });
}

/** Endpoints where this process currently listens. */
export function openListeners(): Endpoint[] {
  return [...open.values()];
}

/**
 * host:port where this process listens, as processes on other hosts reach it: a listener on all addresses is reported
 * at each address of this host. `planned` are listeners that it opens later.
 */
export function reportedListeners(planned: readonly Endpoint[] = []): string[] {
  // Link-local addresses lead nowhere from other hosts, and come and go with the interfaces of machines.
  const addresses = Object.values(networkInterfaces())
    .flatMap((list) => list?.map(({ address }) => address) ?? [])
    .filter((address) => !/^fe[89ab]/i.test(address));
  const reported = [...planned, ...openListeners()].flatMap(({ host, port }) => {
    const isUnspecified = host === "0.0.0.0" || host === "::";
    return (isUnspecified ? [host, ...addresses] : [host]).map((each) => endpointText(each, port));
  });
  return [...new Set(reported)];
}
