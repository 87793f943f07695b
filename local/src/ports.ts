import { createSocket } from "node:dgram";
import { createServer, isIPv6 } from "node:net";
import { type DataPlaneName, dataPlaneNames, dataPlanes, eachDataPlane } from "@holdfast/common/data-planes.ts";
import { firstOctet } from "./block-registry.ts";
import { UserError } from "./user-error.ts";

/** Ports of an installation, all on 127.0.0.1. */
export type Ports = Readonly<Record<PortName, number>>;

export type PortName = "api" | "agents" | "etcd_client" | "etcd_peer" | "history" | DataPlaneName;

/** Each port with the flag that sets it and its number in the first block. */
export const portPlans: Readonly<Record<PortName, { flag: string; first: number }>> = {
  api: { flag: "api-port", first: 8443 },
  agents: { flag: "agents-port", first: 8444 },
  etcd_client: { flag: "etcd-client-port", first: 8446 },
  etcd_peer: { flag: "etcd-peer-port", first: 8447 },
  history: { flag: "history-port", first: 8448 },
  ...eachDataPlane((name) => ({ flag: `${name}-port`, first: dataPlanes[name].firstPort })),
};

export const portNames = Object.keys(portPlans) as PortName[];

/** Ports that go with a loopback block, the same for no two blocks. All are below those of outgoing connections. */
export function portsOf(block: string): Ports {
  const shift = (Number(block.split(".")[1]) - firstOctet) * 20;
  const numbers = portNames.map((name) => [name, portPlans[name].first + shift]);
  return Object.fromEntries(numbers) as Record<PortName, number>;
}

/** Those that other machines reach, when they are to. */
const reached: readonly PortName[] = ["api", "agents", ...dataPlaneNames];
const loopback = "127.0.0.1";

function listensOnUdp(name: PortName): boolean {
  return dataPlaneNames.some((plane) => plane === name && dataPlanes[plane].listensOnUdp);
}

/**
 * Throws an error that names each busy port and its flag, on loopback and, for those that other machines reach, on
 * `listen`. Waits a moment first: the kernel may still be ending the processes of an installation that was killed.
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
    if (clock.now() > deadline) throw portsAreBusy(ports, busy);
    await clock.sleep(50);
  }
}

/** Tells of each of them, and of the flag that chooses another one. */
export function portsAreBusy(ports: Ports, busy: readonly BusyPort[]): UserError {
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

/** Those of them that somebody listens on now, and at which address. */
export async function busyPorts(
  ports: Ports,
  listen = loopback,
  names: readonly PortName[] = portNames,
): Promise<BusyPort[]> {
  const places = names.flatMap((name) => {
    const hosts = reached.includes(name) ? new Set([loopback, listen]) : [loopback];
    return Array.from(hosts, (host) => ({ name, host }));
  });
  const problems = await Promise.all(
    places.map(async ({ name, host }) => [
      await listenProblem(host, ports[name]),
      listensOnUdp(name) ? await bindProblem(host, ports[name]) : undefined,
    ]),
  );
  return places.filter((_, index) => problems[index]?.some((problem) => problem !== undefined));
}

/** Code of the error with which nobody can listen there, over TCP; undefined when one can. */
export function listenProblem(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

/** The same over UDP. */
function bindProblem(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
    socket.once("error", (error: NodeJS.ErrnoException) => socket.close(() => resolve(error.code ?? error.message)));
    socket.bind(port, host, () => socket.close(() => resolve(undefined)));
  });
}
