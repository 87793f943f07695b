import { opensearchClients } from "@holdfast/common/engine-catalog/opensearch.ts";
import { listenersOf } from "../addresses.ts";
import { planOf } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import type { Front } from "../front/front.ts";
import { admitClients } from "../front/front-commands.ts";
import { certificateFile, certificatesOf, frontProgram, keyFile, listenerSocket, portsOf } from "./layout.ts";

const listenerName = "listener";

/** Answers 503 while the security plugin is not initialized, when the engine answers every request with a text. */
export const securityHealthPath = "/_plugins/_security/health?mode=strict";

const refusal = JSON.stringify({
  error: { type: "unavailable_exception", reason: "the member does not serve yet or does not respond" },
  status: 503,
});

/**
 * The front of OpenSearch, which itself checks no client addresses. It terminates TLS of clients and passes their bytes
 * on unchanged, by a certificate that nothing outside of this machine has. A member that does not serve yet is answered
 * for: 503.
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
        check: { path: securityHealthPath, refusal },
      },
    },
  };
}

/** Forwards clients to the engine. */
export const openFront = (instance: Instance, signal: AbortSignal): Promise<void> =>
  admitClients(frontOf(instance), "engine", signal);

/** Name of the listener for clients, whose sessions are counted. */
export const clientListener = listenerName;
