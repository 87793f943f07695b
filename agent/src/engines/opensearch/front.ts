import { opensearchClients } from "@holdfast/common/engine-catalog/opensearch.ts";
import { listenersOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { certificateFile, certificatesOf, frontProgram, keyFile, listenerSocket, portsOf } from "./layout.ts";

const listenerName = "listener";

/**
 * The front of OpenSearch, which itself checks no client addresses. It terminates TLS of clients and passes their bytes
 * on unchanged, by a certificate that nothing outside of this machine has.
 */
export function frontOf(instance: Instance): Front<"engine"> {
  const { spec, paths } = instance;
  const clients = opensearchClients(planOf(spec));
  const { party, membersAuthority } = certificatesOf(instance);
  return {
    nodeId: spec.nodeId,
    program: frontProgram(paths.software),
    configDirectory: paths.config,
    commandSocket: listenerSocket(instance),
    certificateFile: certificateFile(instance),
    keyFile: keyFile(instance),
    vcpu: spec.vcpu,
    connectionLimit: clients,
    idleComment: "Clients keep connections of HTTP open between requests.",
    listeners: [
      {
        name: listenerName,
        mode: "terminate",
        addresses: listenersOf(instance),
        connectionLimit: clients,
        allows: { by: "network", file: "allowed.lst", cidrs: spec.allowedCidrs },
        backend: "engine",
      },
    ],
    backends: {
      engine: {
        address: { address: spec.address, port: portsOf(instance).http },
        tls: { certificateFile: party("front"), authorityFile: membersAuthority },
      },
    },
  };
}

/** Name of the listener for clients, whose sessions are counted. */
export const clientListener = listenerName;
