import { valkeyClients } from "@holdfast/common/engine-catalog/valkey.ts";
import { listenersOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { otherMembers } from "../members.ts";
import { certificateFile, engineSocket, frontProgram, keyFile, listenerSocket } from "./layout.ts";
import { authorityFile, peerPort } from "./replication/peer-port.ts";

/** Connections reserved for other members, retries included. */
const reservedPeers = 16;

/**
 * The front of Valkey, which itself has no allow-list of addresses. Valkey listens on no TCP port, so no program on the
 * host can bypass the allow-list. Members connect to a separate port with client certificates.
 */
export function frontOf(instance: Instance): Front {
  const { spec, paths } = instance;
  const clients = valkeyClients(planOf(spec));
  return {
    nodeId: spec.nodeId,
    program: frontProgram(paths.software),
    configDirectory: paths.config,
    commandSocket: listenerSocket(instance),
    certificateFile: certificateFile(instance),
    keyFile: keyFile(instance),
    vcpu: spec.vcpu,
    connectionLimit: clients + reservedPeers,
    idleComment: `Valkey ends idle sessions (parameter "timeout").`,
    listeners: [
      {
        name: "listener",
        mode: "terminate",
        addresses: listenersOf(instance),
        connectionLimit: clients,
        allows: { by: "network", file: "allowed.lst", cidrs: spec.allowedCidrs },
        backend: "engine",
      },
      {
        name: "peers",
        mode: "terminate",
        addresses: [{ address: spec.address, port: peerPort(instance) }],
        allows: {
          by: "certificate",
          file: "members.lst",
          commonNames: otherMembers(instance).map(({ nodeId }) => nodeId),
          authorityFile: authorityFile(instance),
        },
        backend: "engine",
      },
    ],
    backends: { engine: { socket: engineSocket(instance) } },
  };
}
