import { join } from "node:path";
import type { AppEndpoint } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** Loopback address of an endpoint in a container. */
const addressOf = ({ relay }: AppEndpoint) => `127.78.0.${relay}`;

/** Name of each container's host. */
export const containerHostname = "app";

/** The container's /etc/hosts: its own names, and endpoints by theirs. */
export function hostsFile(endpoints: readonly AppEndpoint[]): string {
  const lines = endpoints.map((endpoint) => `${addressOf(endpoint)} ${endpoint.host}\n`);
  return `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.0.1 ${containerHostname}\n${lines.join("")}`;
}

/**
 * Configuration of the HAProxy in a container's network, which passes connections to the relays of the machine; empty
 * without an endpoint.
 */
export function innerRelayConfig(endpoints: readonly AppEndpoint[], directory: string): string {
  if (endpoints.length === 0) return "";
  const relays = endpoints.map((endpoint) => {
    const { relay, port } = endpoint;
    const socket = join(directory, `${relay}.sock`);
    return `listen r${relay}\n  bind ${addressOf(endpoint)}:${port}\n  server machine unix@${socket}\n`;
  });
  return `global
  maxconn 2000
  nbthread 1
defaults
  mode tcp
  timeout connect 5s
  timeout client 24h
  timeout server 24h
${relays.join("")}`;
}
