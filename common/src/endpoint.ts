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
