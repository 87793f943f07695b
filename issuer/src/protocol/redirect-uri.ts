import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";

const loopback = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** True for exactly a registered URI of the client. On loopback any port matches (RFC 8252 section 7.3). */
export function isRegistered({ redirectUris }: Pick<Client, "redirectUris">, uri: string): boolean {
  if (redirectUris.includes(uri)) return true;
  const portless = withoutPort(uri);
  return portless !== undefined && redirectUris.some((registered) => withoutPort(registered) === portless);
}

/** The URI without its port; undefined unless it is normalized plain HTTP on loopback. */
function withoutPort(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (url === null || url.protocol !== "http:" || !loopback.has(url.hostname)) return undefined;
  if (url.username !== "" || url.password !== "" || url.hash !== "" || url.href !== uri) return undefined;
  return `${url.hostname}${url.pathname}${url.search}`;
}
