import { isIPv6 } from "node:net";
import { join } from "node:path";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { ConfigFile, Listener } from "../engine-driver.ts";
import {
  configName,
  type Front,
  type FrontBackend,
  type FrontListener,
  type HttpCheck,
  type HttpRules,
  listsOf,
  type NextFront,
} from "./front.ts";

/** HAProxy's configuration, and the lists of addresses and members that it names. */
export function frontFiles(front: Front): ConfigFile[] {
  const lists = listsOf(front).map(({ file, entries }) => ({
    name: file,
    content: entries.map((entry) => `${entry}\n`).join(""),
    mode: 0o640,
  }));
  return [{ name: configName(front), content: frontConfig(front), mode: 0o640 }, ...lists];
}

/**
 * HAProxy checks the client's address before the TLS handshake and, where it terminates TLS, after it too: the list may
 * change during the handshake.
 */
function frontConfig(front: Front): string {
  const { nodeId, commandSocket, connectionLimit, vcpu, idleComment, listeners, backends } = front;
  return `# Written by the agent of ${nodeId}: changes made here are lost.
global
  stats socket ${commandSocket} mode 660 level admin
  maxconn ${connectionLimit}
  nbthread ${Math.min(Math.max(Math.floor(vcpu / 2), 1), 4)}
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
  # ${idleComment}
  timeout client 24d
  timeout client-hs 10s
  timeout server 24d
${listeners.map((listener) => frontendOf(front, listener)).join("")}${Object.entries(backends)
  .map(([name, backend]) => backendOf(name, backend, hasRequests(front, name)))
  .join("")}`;
}

// A client that neither sends nor receives for a minute has lost its network, and would take a connection of the limit.
const httpTimeouts = ["timeout http-request 30s", "timeout http-keep-alive 60s", "timeout client 60s"];

function frontendOf(front: Front, listener: FrontListener): string {
  const { name, addresses, forwardedSocket, allows, connectionLimit, backend } = listener;
  const tls = tlsOptions(front, listener);
  return linesOf(`frontend ${name}`, [
    ...(httpOf(listener) === undefined ? [] : ["mode http", ...httpTimeouts]),
    ...(connectionLimit === undefined ? [] : [`maxconn ${connectionLimit}`]),
    ...addresses.map((address) => `bind ${endpointOf(address)}${tls}${takesClientAddress(listener) ? proxied : ""}`),
    ...(forwardedSocket === undefined ? [] : [`bind unix@${forwardedSocket} mode 600${tls}${proxied}`]),
    ...checksOf(listener).map((stage) => `tcp-request ${stage} reject unless ${conditionOf(front, allows)}`),
    ...(httpOf(listener)?.rules ?? []),
    ...unavailableOf(front, listener),
    `default_backend ${backend}`,
  ]);
}

const unavailable = (backend: string): string => `${backend}-unavailable`;

/** A connection is passed on as bytes while the engine serves; otherwise HAProxy answers its requests. */
function unavailableOf({ backends }: Front, { backend }: FrontListener): string[] {
  const of = lookUp(backends, backend);
  if (of === undefined || !("address" in of) || of.check === undefined) return [];
  // The state may change between the rules, so it is read once.
  const isUnavailable = "if { var(txn.unavailable) -m bool }";
  return [
    `tcp-request content set-var(txn.unavailable) bool(true) if { nbsrv(${backend}) eq 0 }`,
    `tcp-request content switch-mode http ${isUnavailable}`,
    `use_backend ${unavailable(backend)} ${isUnavailable}`,
  ];
}

const retryAfterSeconds = 2;

function refusingBackend(name: string, { refusal }: HttpCheck): string {
  const headers = `hdr Retry-After ${retryAfterSeconds} hdr Connection close`;
  return linesOf(`backend ${unavailable(name)}`, [
    "mode http",
    `http-request return status 503 content-type application/json ${headers} string '${refusal}'`,
  ]);
}

const proxied = " accept-proxy";

function takesClientAddress(listener: FrontListener): boolean {
  return listener.mode === "pass" && listener.takesClientAddress === true;
}

function httpOf(listener: FrontListener): HttpRules | undefined {
  return listener.mode === "terminate" ? listener.http : undefined;
}

/** True if a listener forwards requests to this backend, by default or by a rule. */
function hasRequests({ listeners }: Front, backend: string): boolean {
  return listeners.some((listener) => {
    const http = httpOf(listener);
    return (
      http !== undefined &&
      (listener.backend === backend || http.rules.some((rule) => rule.startsWith(`use_backend ${backend} `)))
    );
  });
}

function tlsOptions({ certificateFile }: Front, { mode, allows }: FrontListener): string {
  if (mode === "pass") return "";
  const clients = allows.by === "certificate" ? ` ca-file ${allows.authorityFile} verify required` : "";
  return ` ssl crt ${certificateFile}${clients}`;
}

/** `connection` is evaluated before TLS and before a forwarded client's address is read, `session` after both. */
function checksOf({ mode, allows, forwardedSocket }: FrontListener): readonly string[] {
  if (allows.by === "certificate") return ["session"];
  if (forwardedSocket !== undefined) return ["session"];
  return mode === "pass" ? ["connection"] : ["connection", "session"];
}

function conditionOf({ configDirectory }: Front, { by, file }: FrontListener["allows"]): string {
  return `{ ${by === "certificate" ? "ssl_c_s_dn(CN)" : "src"} -f ${join(configDirectory, file)} }`;
}

function backendOf(name: string, backend: FrontBackend, isHttp: boolean): string {
  const mode = isHttp ? ["mode http"] : [];
  if ("socket" in backend) return linesOf(`backend ${name}`, [...mode, `server ${name} unix@${backend.socket}`]);
  if ("fronts" in backend)
    return linesOf(`backend ${name}`, ["option srvtcpka", ...mode, ...backend.fronts.map(nextFrontOf)]);
  const { address, tls, check } = backend;
  const options =
    tls === undefined ? "" : ` ssl crt ${tls.certificateFile} ca-file ${tls.authorityFile} verify required`;
  const server = `server ${name} ${endpointOf(address)}${options}`;
  if (check === undefined) return linesOf(`backend ${name}`, [...mode, server]);
  const lines = [...mode, "option httpchk", `http-check send meth GET uri ${check.path}`, "timeout check 5s"];
  return `${linesOf(`backend ${name}`, [...lines, `${server} ${checked} disabled`])}${refusingBackend(name, check)}`;
}

// One answer that is late or refused is no fault yet.
const checked = "check inter 2s fastinter 250ms downinter 250ms fall 3 rise 1";

function nextFrontOf({ name, at, isInUse }: NextFront): string {
  const target =
    "socket" in at ? `unix@${at.socket}` : `${endpointOf(at.address)} source ${sourceOf(at.sourceAddress)}`;
  return `server ${name} ${target} send-proxy-v2${isInUse ? "" : " disabled"}`;
}

function sourceOf(address: string): string {
  return isIPv6(address) ? `[${address}]` : address;
}

function endpointOf({ address, port }: Listener): string {
  return `${sourceOf(address)}:${port}`;
}

function linesOf(head: string, lines: readonly string[]): string {
  return `${head}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}
