import { isIP } from "node:net";

/** Where something listens or is dialled. */
export interface Endpoint {
  /** Name or address; an IPv6 address without its brackets. */
  readonly host: string;
  readonly port: number;
}

/** Reads `host:port`, an IPv6 address in brackets; throws for text that has no port or brackets that do not close. */
export function endpointOf(text: string): Endpoint {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^[\]:]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new Error(`${text} is not host:port`);
  return { host: match[1] ?? match[2] ?? "", port };
}

const hostName = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$/i;

/** Reads one that others dial; throws besides for port 0 and for what is neither an address nor a name. */
export function dialledEndpointOf(text: string): Endpoint {
  const { host, port } = endpointOf(text);
  if (port === 0 || (isIP(host) === 0 && !hostName.test(host))) throw new Error(`${text} is no host:port to dial`);
  return { host, port };
}

/** Reads several, of which there must be one at least; the first one stands for all where only one can. */
export function endpointsOf(texts: readonly string[]): readonly [Endpoint, ...Endpoint[]] {
  const [first, ...others] = texts.map(endpointOf);
  if (first === undefined) throw new Error("no host:port is given");
  return [first, ...others];
}

/** Pure: the text that endpointOf reads. */
export function endpointText(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
