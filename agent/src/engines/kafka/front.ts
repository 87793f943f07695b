import { kafkaClients } from "@holdfast/common/engine-catalog/kafka.ts";
import { listenersOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { Instance, Listener } from "../engine-driver.ts";
import { countSessions } from "../front/front-commands.ts";
import type { Front, FrontBackend } from "../front/front.ts";
import { membersAuthority, partyFile } from "./certificates.ts";
import { certificateFile, frontProgram, keyFile, listenerSocket, portsOf, privateSocket } from "./layout.ts";

/** Listeners for clients, one for each network. */
const clientListeners = ["public", "private"] as const;

/**
 * The front of Kafka, which itself checks no client addresses. It terminates TLS of clients, and connects to the broker
 * by a certificate that nothing outside of this machine has.
 */
export function frontOf(instance: Instance): Front {
  const { spec, paths } = instance;
  const ports = portsOf(instance);
  const clients = kafkaClients(planOf(spec));
  return {
    nodeId: spec.nodeId,
    program: frontProgram(paths.software),
    configDirectory: paths.config,
    commandSocket: listenerSocket(instance),
    certificateFile: certificateFile(instance),
    keyFile: keyFile(instance),
    vcpu: spec.vcpu,
    connectionLimit: clients,
    idleComment: `Idle connections are Kafka's business (its parameter "connections.max.idle.ms").`,
    listeners: clientListeners.flatMap((name) => {
      const addresses = addressesFor(instance, name);
      if (addresses.length === 0) return [];
      const allows = { by: "network" as const, file: "allowed.lst", cidrs: spec.allowedCidrs };
      return [{ name, mode: "terminate" as const, addresses, connectionLimit: clients, allows, backend: name }];
    }),
    backends: {
      public: backendOf(instance, ports.public),
      private: backendOf(instance, ports.private),
    },
  };
}

/** True if clients may connect without TLS in the private network. */
export function hasPrivateListener({ spec }: Pick<Instance, "spec">): boolean {
  return spec.listeners.some(({ name }) => name === "private");
}

/** The front of the private listener, which admits clients without TLS. It checks the same addresses. */
export function privateFrontOf(instance: Instance): Front {
  const { spec } = instance;
  const ports = portsOf(instance);
  return {
    ...frontOf(instance),
    name: "private",
    commandSocket: privateSocket(instance),
    listeners: [
      {
        name: "plain",
        mode: "pass",
        addresses: [{ address: spec.address, port: ports.privateClients }],
        allows: { by: "network", file: "private.lst", cidrs: spec.allowedCidrs },
        backend: "plain",
      },
    ],
    backends: { plain: backendOf(instance, ports.plain) },
  };
}

/** All fronts that run. */
export function frontsOf(instance: Instance): Front[] {
  return hasPrivateListener(instance) ? [frontOf(instance), privateFrontOf(instance)] : [frontOf(instance)];
}

function backendOf(instance: Instance, port: number): FrontBackend {
  return {
    address: { address: instance.spec.address, port },
    tls: { certificateFile: partyFile(instance, "front"), authorityFile: membersAuthority(instance) },
  };
}

/** An address of both networks is public: its clients resolve public names. */
function addressesFor(instance: Instance, network: (typeof clientListeners)[number]): Listener[] {
  const isPublic = (address: string) =>
    instance.spec.listeners.some((listener) => listener.audience === "public" && listener.address === address);
  return listenersOf(instance).filter(({ address }) => isPublic(address) === (network === "public"));
}

/** Number of open connections of clients. */
export async function countClients(instance: Instance, signal: AbortSignal): Promise<number> {
  const counts = await Promise.all(
    frontsOf(instance).flatMap((front) => front.listeners.map(({ name }) => countSessions(front, name, signal))),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}
