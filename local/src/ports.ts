import { createServer } from "node:net";
import { firstOctet } from "./block-registry.ts";
import { UserError } from "./user-error.ts";

/** Ports of an installation on 127.0.0.1. */
export interface Ports {
  readonly api: number;
  readonly agents: number;
  readonly dns: number;
  readonly etcd_client: number;
  readonly etcd_peer: number;
  readonly history: number;
}

export type PortName = keyof Ports;

/** Each port with the flag that sets it and its number in the first block. */
export const portPlans: Readonly<Record<PortName, { flag: string; first: number }>> = {
  api: { flag: "api-port", first: 8443 },
  agents: { flag: "agents-port", first: 8444 },
  dns: { flag: "dns-port", first: 8445 },
  etcd_client: { flag: "etcd-client-port", first: 8446 },
  etcd_peer: { flag: "etcd-peer-port", first: 8447 },
  history: { flag: "history-port", first: 8448 },
};

export const portNames = Object.keys(portPlans) as PortName[];

/** Ports that go with a loopback block, the same for no two blocks. All are below those of outgoing connections. */
export function portsOf(block: string): Ports {
  const shift = (Number(block.split(".")[1]) - firstOctet) * 20;
  const numbers = portNames.map((name) => [name, portPlans[name].first + shift]);
  return Object.fromEntries(numbers) as Record<PortName, number>;
}

/**
 * Throws an error that names each busy port and its flag. Waits a moment first: the kernel may still be ending the
 * processes of an installation that was killed.
 */
export async function checkPorts(
  ports: Ports,
  clock: { now(): number; sleep(ms: number): Promise<void> },
): Promise<void> {
  const deadline = clock.now() + 3_000;
  for (;;) {
    const busy = await busyPorts(ports);
    if (busy.length === 0) return;
    if (clock.now() > deadline) {
      const list = busy.map((name) => `port ${ports[name]} is busy; choose another with --${portPlans[name].flag}`);
      throw new UserError(list.join("\n"));
    }
    await clock.sleep(50);
  }
}

/** Those that somebody listens on now. */
export async function busyPorts(ports: Ports): Promise<PortName[]> {
  const free = await Promise.all(portNames.map((name) => isFree(ports[name])));
  return portNames.filter((_, index) => !free[index]);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
