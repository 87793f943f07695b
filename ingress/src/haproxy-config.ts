import { acmeChallengePath } from "@holdfast/common/acme-challenge-path.ts";
import { endpointOf, endpointText } from "@holdfast/common/endpoint.ts";
import { ingressProbePath } from "@holdfast/common/ingress-probe-path.ts";
import { appHeader, loginCookie, loginPath } from "./login-server.ts";
import { challengesOf, hostsOf, loginsOf, type RouteTable, serversMax } from "./route-table.ts";

export interface HaproxySettings {
  /** Each host:port to listen on. */
  readonly listen: readonly string[];
  /** Each host:port at which requests are redirected to HTTPS. */
  readonly redirectListen: readonly string[];
  /** Maximum number of connections of clients at a time. */
  readonly connections: number;
  readonly certificateFile: string;
  /** List of the certificates of domains of users. */
  readonly certificateListFile: string;
  readonly hostsFile: string;
  readonly loginsFile: string;
  readonly challengesFile: string;
  /** host:port of a server for challenges of other hosts, such as that of the API; empty: none. */
  readonly challengesServer: string;
  /** Socket of the login form. */
  readonly loginSocket: string;
  /** Socket for commands. */
  readonly socket: string;
}

/** Bytes of a request's headers, beyond which the response is 431; 400 if the buffer does not have space for them. */
const requestHeadersMax = 24 << 10;
/** Size of a buffer, which has the whole head of a request or a response. The front of a machine has the same. */
const bufferBytes = 32 << 10;
/** Bytes of a response's headers that fit a buffer, beside the space for added ones. */
const responseHeadersMax = 30 << 10;
/** The host of a request, which is a key of the map of hosts. A name may end with a dot. */
const requestedHost = "req.hdr(host),host_only,lower,rtrim(.)";

/**
 * Names of headers by which proxies report clients and original requests. Programs trust them, and servers such as WSGI
 * read a name with an underscore as the one with a hyphen.
 */
const proxyHeaders = [
  "forwarded",
  "x-forwarded",
  "x-forwarded-.*",
  "x-original-.*",
  "x-rewrite-url",
  "x-(real|client|cluster-client|remote|proxyuser|true-client)-ip",
  "x-remote-addr",
  "x-(url-)?scheme",
  "x-host",
  "x-http-host-override",
  "x-envoy-.*",
  "x-azure-.*ip",
  "x-appengine-.*ip",
  "x-nf-client-connection-ip",
  "(true-)?client-ip",
  "(cf-connecting|fastly-client|fly-client)-ip(v6)?",
  "front-end-https",
  // CGI programs read it as the variable HTTP_PROXY (httpoxy).
  "proxy",
];
const proxyHeaderPattern = `^(${proxyHeaders.join("|").replaceAll("-", "[-_]")})$`;

/** Address of a server that gets no requests; a command replaces it. */
const noAddress = "127.0.0.1:9";

/** Backends of one app: the second one speaks HTTP/2 to its servers, which gRPC requires. */
export const backendKinds = ["app", "grpc"] as const;

export function backendName(kind: (typeof backendKinds)[number], number: number): string {
  return `${kind}${number}`;
}

export function serverName(number: number): string {
  return `node${number}`;
}

/** The lines of the map from a host to the number of its backends. */
export function hostLines(table: RouteTable): string {
  return [...hostsOf(table)].map(([host, number]) => `${host} ${number}\n`).join("");
}

/** The lines of the map from the number of an app's backends to its login form. */
export function loginLines(table: RouteTable): string {
  return [...loginsOf(table)].map(([number, login]) => `${number} ${login}\n`).join("");
}

/** The lines of the map from the path of a challenge to its response. */
export function challengeLines(table: RouteTable): string {
  return [...challengesOf(table)].map(([path, response]) => `${path} ${response}\n`).join("");
}

/**
 * The configuration of HAProxy with the addresses of the table, so that a start needs no commands. Headers of
 * clients about forwarding are removed, so that an app may trust those of the ingress.
 */
export function haproxyConfig({ backends }: RouteTable, settings: HaproxySettings): string {
  const { listen, connections, certificateFile, certificateListFile, hostsFile, socket } = settings;
  const { loginsFile, loginSocket } = settings;
  const certificates = `ssl crt ${certificateFile} crt-list ${certificateListFile} alpn h2,http/1.1`;
  // An address that belongs to an app is in the map too: requests at it reach the app with any host.
  const app = `  http-request set-var(txn.app) dst,map_str(${hostsFile})
  http-request set-var(txn.app) ${requestedHost},map_str(${hostsFile}) unless { var(txn.app) -m found }
  http-request return status 421 content-type text/plain string "No app has this host.\\n" unless { var(txn.app) -m found }
`;
  return `# Written by the ingress: changes made here are lost.
global
  stats socket ${socket} mode 600 level admin
  maxconn ${connections}
  hard-stop-after 10m
  tune.bufsize ${bufferBytes}
  ssl-default-bind-options ssl-min-ver TLSv1.2
  log stdout format raw local0 warning
defaults
  mode http
  log global
  option dontlog-normal
  option redispatch 1
  retries 3
  # A machine that ends closes its connections: its front, not its program, which a request could have ended.
  retry-on conn-failure empty-response
  timeout connect 2s
  timeout queue 5s
  timeout client 60s
  timeout http-request 10s
  timeout http-keep-alive 60s
  timeout server 5m
  # Connections that were upgraded, such as WebSockets.
  timeout tunnel 24h
  default-server check inter 1s fall 2 rise 1
  http-error status 502 content-type text/plain string "The app ended the connection, or its response is invalid or has more than ${responseHeadersMax} bytes of headers.\\n"
frontend https
${bindLines(listen, certificates)}${app}  http-request return status 503 if { path ${ingressProbePath} } { str(app),concat(,txn.app),nbsrv eq 0 }
  http-request return status 204 if { path ${ingressProbePath} }
  http-request return status 431 content-type text/plain string "The request has more than ${requestHeadersMax} bytes of headers.\\n" if { req.hdrs,length gt ${requestHeadersMax} }
  http-request del-header '${proxyHeaderPattern}' -m reg
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto https
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header X-Forwarded-Port %[dst_port]
  http-request set-header X-Real-IP %[src]
  http-request set-var(txn.login) var(txn.app),map_str(${loginsFile})
  http-request set-var(txn.login_key) var(txn.login),field(2,.) if { var(txn.login) -m found }
  http-request set-var(txn.now) date if { var(txn.login) -m found }
  http-request set-var(txn.login_until) req.cook(${loginCookie}),jwt_payload_query('$.exp','int') if { var(txn.login) -m found }
  acl has_login var(txn.login) -m found
  acl is_signed req.cook(${loginCookie}),jwt_verify(HS256,txn.login_key) 1
  acl is_current var(txn.login_until),sub(txn.now) gt 0
  # A repeated request of these methods has no further effect (RFC 9110, 9.2.2).
  http-request disable-l7-retry unless { method GET HEAD OPTIONS }
  acl grpc req.hdr(content-type) -m beg application/grpc
  http-request set-timeout client ${streamTimeout} if grpc
  use_backend login if has_login { path ${loginPath} }
  use_backend login if has_login !is_signed
  use_backend login if has_login !is_current
  use_backend grpc%[var(txn.app)] if grpc
  use_backend app%[var(txn.app)]
backend login
  http-request set-header ${appHeader} %[var(txn.login),field(1,.)]
  server login unix@${loginSocket}
${redirectLines(settings, app)}${backends.map(({ servers }, number) => backendLines(number, servers)).join("")}`;
}

/** Time without data after which a stream of gRPC or of server-sent events ends. */
const streamTimeout = "1h";

function bindLines(listen: readonly string[], options: string): string {
  return listen
    .map(endpointOf)
    .map(({ host, port }) => `  bind ${endpointText(host, port)} ${options}`.trimEnd())
    .map((line) => `${line}\n`)
    .join("");
}

/**
 * Redirects to the same path of the HTTPS listener, but responds to challenges of authorities. 308: the method and the
 * body remain.
 */
function redirectLines(settings: HaproxySettings, app: string): string {
  const { listen, redirectListen, hostsFile, challengesFile, challengesServer } = settings;
  if (redirectListen.length === 0) return "";
  const response = `path,map_str(${challengesFile})`;
  const isChallenge = `{ path_beg ${acmeChallengePath} }`;
  const isOther = `${isChallenge} !{ ${requestedHost},map_str(${hostsFile}) -m found }`;
  const [port = 443] = listen.map((each) => endpointOf(each).port);
  const host = `%[req.hdr(host),host_only]${port === 443 ? "" : `:${port}`}`;
  // "allow" ends the rules, and only then is the backend of the frontend used. Its server listens only while it has an
  // order, so that a check would find it down.
  const [allow, server] =
    challengesServer === ""
      ? ["", ""]
      : [
          `  http-request allow if ${isOther}\n`,
          `  default_backend challenges\nbackend challenges\n  server challenges ${challengesServer} no-check\n`,
        ];
  return `frontend http
${bindLines(redirectListen, "")}  http-request return status 200 content-type text/plain lf-string %[${response}] if ${isChallenge} { ${response} -m found }
${allow}${app}  http-request redirect code 308 location https://${host}%[capture.req.uri]
${server}`;
}

function backendLines(number: number, servers: readonly (string | undefined)[]): string {
  const lines = (options: string) =>
    Array.from({ length: serversMax }, (_, at) => {
      const address = servers[at];
      return `  server ${serverName(at)} ${address ?? noAddress}${options}${address === undefined ? " disabled" : ""}\n`;
    }).join("");
  return `backend ${backendName("app", number)}
  http-request set-timeout server ${streamTimeout} if { req.hdr(accept) -m sub text/event-stream }
${lines("")}backend ${backendName("grpc", number)}
  timeout server ${streamTimeout}
${lines(" proto h2")}`;
}
