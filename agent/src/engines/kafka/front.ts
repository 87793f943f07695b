import { kafkaClients } from "@holdfast/common/engine-catalog/kafka-sizing.ts";
import { listenersOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { Instance, Listener } from "../engine-driver.ts";
import { countSessions } from "../front/front-commands.ts";
import type { Front, FrontBackend } from "../front/front.ts";
import { membersAuthority, partyFile } from "./certificates.ts";
import { certificateFile, frontProgram, keyFile, listenerSocket, portsOf } from "./layout.ts";

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
  const backendOf = (port: number): FrontBackend => ({
    address: { address: spec.address, port },
    tls: {
      certificateFile: partyFile(instance, "front"),
      authorityFile: membersAuthority(instance),
    },
  });
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
      public: backendOf(ports.public),
      private: backendOf(ports.private),
    },
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
  const front = frontOf(instance);
  const counts = await Promise.all(clientListeners.map((name) => countSessions(front, name, signal)));
  return counts.reduce((sum, count) => sum + count, 0);
}
