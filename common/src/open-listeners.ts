import type { AddressInfo, ListenOptions, Server } from "node:net";
import { networkInterfaces } from "node:os";
import { type Endpoint, endpointText } from "./endpoint.ts";

const open = new Map<Server, Endpoint>();

/**
 * Begins to listen on host:port; resolves with the port. Every listener of the platform on a network is opened here: what a
 * process has opened is its own, so its egress connects to none of them for a user.
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

/** Where this process listens now. */
export function openListeners(): Endpoint[] {
  return [...open.values()];
}

/**
 * host:port where this process listens now, as processes on other hosts reach it: a listener on all addresses is reported
 * at each address of this host. `coming` are those that it opens later.
 */
export function reportedListeners(coming: readonly Endpoint[] = []): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []);
  const reported = [...coming, ...openListeners()].flatMap(({ host, port }) => {
    const isUnspecified = host === "0.0.0.0" || host === "::";
    return (isUnspecified ? [host, ...addresses] : [host]).map((each) => endpointText(each, port));
  });
  return [...new Set(reported)];
}
