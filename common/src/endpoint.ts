import { isIP } from "node:net";

/** An address and port to listen on or to dial. */
export interface Endpoint {
  /** Host name or IP address; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Parses `host:port` with an IPv6 address in brackets. Throws if there is no port or a bracket is missing. */
export function endpointOf(text: string): Endpoint {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^[\]:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new Error(`${text} is not host:port`);
  return { host: match[1] ?? match[2] ?? "", port };
}

const hostName = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$/i;

/**
 * Parses an endpoint that others dial. Throws also for port 0 and for a host that is neither an IP address nor a name.
 */
export function dialableEndpointOf(text: string): Endpoint {
  const { host, port } = endpointOf(text);
  if (port === 0 || (isIP(host) === 0 && !hostName.test(host))) throw new Error(`${text} is not a host:port to dial`);
  return { host, port };
}

/** Parses one or more endpoints. The first one is used where only one is possible. */
export function endpointsOf(texts: readonly string[]): readonly [Endpoint, ...Endpoint[]] {
  const [first, ...rest] = texts.map(endpointOf);
  if (first === undefined) throw new Error("a host:port is required");
  return [first, ...rest];
}

/** Formats an endpoint for `endpointOf`. */
export function endpointText(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
