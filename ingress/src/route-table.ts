import { acmeChallengePath } from "@holdfast/common/acme-challenge-path.ts";

/** The way from the hosts of an app to its machines. */
export interface Route {
  readonly appId: string;
  /** Names in lower case, without a port. */
  readonly hosts: readonly string[];
  /** host:port of each machine's front. */
  readonly nodes: readonly string[];
  /** Certificates of the hosts that the certificate of the ingress does not have. */
  readonly certificates: readonly HostCertificate[];
  /** Present: requests without a session get the login form. */
  readonly login?: RouteLogin | undefined;
  /** Open challenges of its hosts. */
  readonly challenges: readonly RouteChallenge[];
}

/** A challenge of an authority: the token in its path, and the response. */
export interface RouteChallenge {
  readonly token: string;
  readonly keyAuthorization: string;
}

/** The login form of an app. */
export interface RouteLogin {
  /** Key of its sessions, in characters of base64url. */
  readonly key: string;
  /** SHA-256 of the password, in hex. */
  readonly passwordHash: string;
}

export interface HostCertificate {
  readonly host: string;
  /** PEM, the leaf first. */
  readonly chain: string;
  /** Private key, PEM; empty: that of the ingress. */
  readonly key: string;
}

/**
 * A backend of HAProxy with the route that it serves now. HAProxy creates backends and their servers only when it
 * starts, so there are more than apps, and an app gets one that is free.
 */
export interface Backend {
  /** Undefined: free. */
  readonly route: Route | undefined;
  /** The address of each of its servers; undefined for a server that gets no requests. */
  readonly servers: readonly (string | undefined)[];
}

/** Most machines that an app has, with those that replace others. */
export const serversMax = 20;
const backendsMin = 64;

/** `backends`: by their number. */
export interface RouteTable {
  readonly backends: readonly Backend[];
}

export const emptyTable: RouteTable = { backends: [] };
const free: Backend = { route: undefined, servers: [] };

/**
 * The table with these routes. A route keeps its backend, and a machine its server, so that a change of one app is no
 * change for the requests of others. There are twice the backends if all are in use.
 */
export function withRoutes(before: RouteTable, routes: ReadonlyMap<string, Route>): RouteTable {
  const placed = new Set<string>();
  const backends = before.backends.map((backend) => {
    const route = routes.get(backend.route?.appId ?? "");
    if (route === undefined) return free;
    placed.add(route.appId);
    return { route, servers: serversOf(backend.servers, route.nodes) };
  });
  const added = [...routes.values()].filter(({ appId }) => !placed.has(appId));
  let size = Math.max(backends.length, backendsMin);
  while (size < routes.size) size *= 2;
  while (backends.length < size) backends.push(free);
  let at = 0;
  for (const route of added) {
    while (backends[at]?.route !== undefined) at += 1;
    backends[at] = { route, servers: serversOf([], route.nodes) };
  }
  return { backends };
}

function serversOf(before: readonly (string | undefined)[], nodes: readonly string[]): (string | undefined)[] {
  const servers = before.map((address) => (address !== undefined && nodes.includes(address) ? address : undefined));
  for (const node of nodes.slice(0, serversMax)) {
    if (servers.includes(node)) continue;
    const unused = servers.indexOf(undefined);
    servers[unused === -1 ? servers.length : unused] = node;
  }
  return servers;
}

/** host:port of HAProxy's name of a host, for its map: each host with the number of its backend. */
export function hostsOf({ backends }: RouteTable): Map<string, number> {
  return new Map(backends.flatMap(({ route }, number) => route?.hosts.map((host) => [host, number] as const) ?? []));
}

/** HAProxy's value for each app with a login form, by the number of its backend: its id and the key of sessions. */
export function loginsOf({ backends }: RouteTable): Map<number, string> {
  return new Map(
    backends.flatMap(({ route }, number) =>
      route?.login === undefined ? [] : [[number, `${route.appId}.${route.login.key}`] as const],
    ),
  );
}

/** The certificate of each host that has its own. */
export function certificatesOf({ backends }: RouteTable): Map<string, HostCertificate> {
  return new Map(
    backends.flatMap(
      ({ route }) => route?.certificates.map((certificate) => [certificate.host, certificate] as const) ?? [],
    ),
  );
}

/** The response to each open challenge, by its path. */
export function challengesOf({ backends }: RouteTable): Map<string, string> {
  return new Map(
    backends.flatMap(
      ({ route }) =>
        route?.challenges.map(
          ({ token, keyAuthorization }) => [`${acmeChallengePath}${token}`, keyAuthorization] as const,
        ) ?? [],
    ),
  );
}
