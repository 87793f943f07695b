import { endpointOf, endpointText } from "@holdfast/common/endpoint.ts";
import { ingressProbePath } from "@holdfast/common/ingress-probe-path.ts";
import { hostsOf, type RouteTable, serversMax } from "./route-table.ts";

export interface HaproxySettings {
  /** Each host:port to listen on. */
  readonly listen: readonly string[];
  /** Maximum number of connections of clients at a time. */
  readonly connections: number;
  readonly certificateFile: string;
  /** List of the certificates of domains of users. */
  readonly certificateListFile: string;
  readonly hostsFile: string;
  /** Socket for commands. */
  readonly socket: string;
}

/** Address of a server that gets no requests; a command replaces it. */
const noAddress = "127.0.0.1:9";

export function backendName(number: number): string {
  return `app${number}`;
}

export function serverName(number: number): string {
  return `node${number}`;
}

/** The lines of the map from a host to its backend. */
export function hostLines(table: RouteTable): string {
  return [...hostsOf(table)].map(([host, number]) => `${host} ${backendName(number)}\n`).join("");
}

/**
 * The configuration of HAProxy with the addresses of the table, so that a start needs no commands. A client's own
 * headers about forwarding are replaced: an app may trust them.
 */
export function haproxyConfig({ backends }: RouteTable, settings: HaproxySettings): string {
  const { listen, connections, certificateFile, certificateListFile, hostsFile, socket } = settings;
  const certificates = `crt ${certificateFile} crt-list ${certificateListFile}`;
  const binds = listen
    .map(endpointOf)
    .map(({ host, port }) => `  bind ${endpointText(host, port)} ssl ${certificates} alpn h2,http/1.1\n`);
  return `# Written by the ingress: changes made here are lost.
global
  stats socket ${socket} mode 600 level admin
  maxconn ${connections}
  hard-stop-after 10m
  ssl-default-bind-options ssl-min-ver TLSv1.2
  log stdout format raw local0 warning
defaults
  mode http
  log global
  option dontlog-normal
  option redispatch 1
  retries 3
  timeout connect 2s
  timeout queue 5s
  timeout client 60s
  timeout http-request 10s
  timeout http-keep-alive 60s
  timeout server 5m
  # Connections that were upgraded, such as WebSockets.
  timeout tunnel 24h
  default-server check inter 1s fall 2 rise 1
frontend https
${binds.join("")}  http-request set-var(txn.app) req.hdr(host),host_only,lower,map_str(${hostsFile})
  http-request return status 421 content-type text/plain string "No app has this host.\\n" unless { var(txn.app) -m found }
  http-request return status 204 if { path ${ingressProbePath} }
  http-request del-header Forwarded
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto https
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  use_backend %[var(txn.app)]
${backends.map(({ servers }, number) => backendLines(number, servers)).join("")}`;
}

function backendLines(number: number, servers: readonly (string | undefined)[]): string {
  const lines = Array.from({ length: serversMax }, (_, at) => {
    const address = servers[at];
    return `  server ${serverName(at)} ${address ?? noAddress}${address === undefined ? " disabled" : ""}\n`;
  });
  return `backend ${backendName(number)}\n${lines.join("")}`;
}
