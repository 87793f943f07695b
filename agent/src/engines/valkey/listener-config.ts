import { isIPv6 } from "node:net";
import type { Instance } from "../engine-driver.ts";
import { addressesOf } from "../addresses.ts";
import { authorityFile, membersFile, peerPort } from "./replication/peer-port.ts";
import { allowListFile, certificateFile, engineSocket, listenerSocket } from "./layout.ts";

/** Connections reserved for other members, retries included. */
const reservedPeers = 16;

/**
 * Configuration of HAProxy in front of Valkey. Valkey itself has no allow-list by address, so HAProxy checks the
 * client's address before and after the TLS handshake, terminates TLS with the machine's certificate, and forwards to
 * the Unix socket. Valkey listens on no TCP port, so nothing on the host can bypass the allow-list. Members connect to
 * a port of their own with client certificates.
 */
export function listenerConfig(instance: Instance, clients: number): string {
  const { spec } = instance;
  const binds = addressesOf(spec).map((address) => (isIPv6(address) ? `[${address}]` : address));
  const peerAddress = isIPv6(spec.address) ? `[${spec.address}]` : spec.address;
  const isMember = `{ ssl_c_s_dn(CN) -f ${membersFile(instance)} }`;
  const allowed = `{ src -f ${allowListFile(instance)} }`;
  return `# Written by the agent of ${spec.nodeId}: changes made here are lost.
global
  stats socket ${listenerSocket(instance)} mode 660 level admin
  maxconn ${clients + reservedPeers}
  nbthread ${Math.min(Math.max(Math.floor(spec.vcpu / 2), 1), 4)}
  ssl-default-bind-options ssl-min-ver TLSv1.2
  ssl-load-extra-del-ext
  hard-stop-after 200ms
  log stdout format raw local0 notice
defaults
  mode tcp
  log global
  option dontlog-normal
  option clitcpka
  timeout connect 2s
  # Idle sessions are valkey's business (its parameter "timeout").
  timeout client 24d
  timeout client-hs 10s
  timeout server 24d
frontend listener
  maxconn ${clients}
${binds.map((address) => `  bind ${address}:${spec.port} ssl crt ${certificateFile(instance)}`).join("\n")}
  tcp-request connection reject unless ${allowed}
  tcp-request session reject unless ${allowed}
  default_backend engine
frontend peers
  bind ${peerAddress}:${peerPort(instance)} ssl crt ${certificateFile(instance)} ca-file ${authorityFile(instance)} verify required
  tcp-request session reject unless ${isMember}
  default_backend engine
backend engine
  server engine unix@${engineSocket(instance)}
`;
}
