import { isIPv6 } from "node:net";
import type { Instance } from "../engine-driver.ts";
import { addressesOf } from "../engine-addresses.ts";
import { authorityFile, membersFile, peerPort } from "./replication/peer-way.ts";
import { allowListFile, certificateFile, engineSocket, listenerSocket } from "./layout.ts";

/** Sessions of other members and of what they try again. */
const reservedPeers = 16;

/**
 * HAProxy in front of valkey, which knows no addresses: it looks at where a connection comes from before TLS begins, and
 * once more when TLS is done, ends TLS with the machine's own key, and goes on through the Unix socket. With valkey on no
 * TCP port at all there is no way around the allow-list, whatever else runs on the host. Members come by a port of their own,
 * with their certificates.
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
