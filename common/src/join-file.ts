import { dialableEndpointOf } from "./endpoint.ts";
import { lookUp } from "./look-up.ts";

/**
 * File that an operator copies to a computer to make it a host of the installation: the authority to trust and a
 * single-use token.
 */
export interface JoinFile {
  readonly installation_id: string;
  /** Name of the host, which its certificate will contain. */
  readonly host_id: string;
  /** host:port at which controllers dial the host. */
  readonly address: string;
  /** host:port of each controller's agent listener. */
  readonly controllers: readonly string[];
  /** SHA-256 of the authority's certificate in DER, as hex. */
  readonly ca_fingerprint: string;
  readonly token: string;
  /** Expiry of the token, ISO 8601. */
  readonly expires_at: string;
  /** First two octets of the address blocks of other hosts, such as "10.64". */
  readonly taken_blocks: readonly string[];
}

/** Throws an error that names the missing or invalid field, without its content. */
export function parseJoinFile(text: string): JoinFile {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error("it is not JSON");
  }
  if (typeof parsed !== "object" || parsed === null) throw new Error("it is not a JSON object");
  const fields = parsed as Record<string, unknown>;
  const textOf = (name: string) => {
    const value = lookUp(fields, name);
    if (typeof value !== "string" || value === "") throw new Error(`it has no ${name}`);
    return value;
  };
  const textsOf = (name: string) => {
    const value = lookUp(fields, name);
    if (!Array.isArray(value) || !value.every((each) => typeof each === "string")) throw new Error(`it has no ${name}`);
    return value as string[];
  };
  const file = {
    installation_id: textOf("installation_id"),
    host_id: textOf("host_id"),
    address: textOf("address"),
    controllers: textsOf("controllers"),
    ca_fingerprint: textOf("ca_fingerprint").replaceAll(":", "").toLowerCase(),
    token: textOf("token"),
    expires_at: textOf("expires_at"),
    taken_blocks: textsOf("taken_blocks"),
  };
  if (file.controllers.length === 0) throw new Error("it names no controllers");
  for (const address of [file.address, ...file.controllers]) dialableEndpointOf(address);
  return file;
}
