import { createSocket } from "node:dgram";
import { createServer, isIPv6 } from "node:net";
import { type DataPlaneName, dataPlaneNames, eachDataPlane } from "@holdfast/common/data-planes.ts";
import { firstOctet } from "./block-claims.ts";
import { localDataPlanes } from "./data-planes.ts";
import { UserError } from "./user-error.ts";

/** Ports of an installation, all on 127.0.0.1. */
export type Ports = Readonly<Record<PortName, number>>;

export type PortName = "api" | "agents" | "etcd_client" | "etcd_peer" | "history" | DataPlaneName;

/** Each port's flag, and its number in the first block. */
export const portPlans: Readonly<Record<PortName, { flag: string; first: number }>> = {
  api: { flag: "api-port", first: 8443 },
  agents: { flag: "agents-port", first: 8444 },
  etcd_client: { flag: "etcd-client-port", first: 8446 },
  etcd_peer: { flag: "etcd-peer-port", first: 8447 },
  history: { flag: "history-port", first: 8448 },
  ...eachDataPlane((name) => ({ flag: `${name}-port`, first: localDataPlanes[name].firstPort })),
};

export const portNames = Object.keys(portPlans) as PortName[];

/** Ports of a loopback block, unique to it and below the range of outgoing connections. */
export function portsOf(block: string): Ports {
  const shift = (Number(block.split(".")[1]) - firstOctet) * 20;
  const numbers = portNames.map((name) => [name, portPlans[name].first + shift]);
  return Object.fromEntries(numbers) as Record<PortName, number>;
}

/** Ports that other machines reach, if the installation is advertised. */
const externalPorts: readonly PortName[] = ["api", "agents", ...dataPlaneNames];
const loopback = "127.0.0.1";

function listensOnUdp(name: PortName): boolean {
  return dataPlaneNames.some((plane) => plane === name && localDataPlanes[plane].listensOnUdp);
}

/**
 * Throws a UserError with each busy port and its flag, checked on loopback and, for external ports, on `listen`. Waits
 * up to 3 s: the kernel may still be ending the processes of a killed installation.
 */
export async function checkPorts(
  ports: Ports,
  clock: { now(): number; sleep(ms: number): Promise<void> },
  listen?: string,
): Promise<void> {
  const deadline = clock.now() + 3_000;
  for (;;) {
    const busy = await busyPorts(ports, listen);
    if (busy.length === 0) return;
    if (clock.now() > deadline) throw busyPortsError(ports, busy);
    await clock.sleep(50);
  }
}

/** Error that names each busy port and the flag that chooses another. */
export function busyPortsError(ports: Ports, busy: readonly BusyPort[]): UserError {
  const list = busy.map(({ name, host }) => {
    const where = host === loopback ? "" : ` on ${host}`;
    return `port ${ports[name]} is busy${where}; choose another with --${portPlans[name].flag}`;
  });
  return new UserError(list.join("\n"));
}

export interface BusyPort {
  readonly name: PortName;
  readonly host: string;
}

/** Ports that are in use now, with the address. */
export async function busyPorts(
  ports: Ports,
  listen = loopback,
  names: readonly PortName[] = portNames,
): Promise<BusyPort[]> {
  const listeners = names.flatMap((name) => {
    const hosts = externalPorts.includes(name) ? new Set([loopback, listen]) : [loopback];
    return Array.from(hosts, (host) => ({ name, host }));
  });
  const problems = await Promise.all(
    listeners.map(async ({ name, host }) => [
      await listenProblem(host, ports[name]),
      listensOnUdp(name) ? await bindProblem(host, ports[name]) : undefined,
    ]),
  );
  return listeners.filter((_, index) => problems[index]?.some((problem) => problem !== undefined));
}

/** Code of the error of listening there over TCP; undefined if it is possible. */
export function listenProblem(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

/** Code of the error of listening there over UDP; undefined if it is possible. */
function bindProblem(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
    socket.once("error", (error: NodeJS.ErrnoException) => socket.close(() => resolve(error.code ?? error.message)));
    socket.bind(port, host, () => socket.close(() => resolve(undefined)));
  });
}
