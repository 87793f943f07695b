import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";

const loopback = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** Is it one of the client's, to the letter? On loopback any port is the same (RFC 8252 section 7.3). */
export function isRegistered({ redirectUris }: Pick<Client, "redirectUris">, uri: string): boolean {
  if (redirectUris.includes(uri)) return true;
  const portless = withoutPort(uri);
  return portless !== undefined && redirectUris.some((known) => withoutPort(known) === portless);
}

/** Undefined for what is not plain HTTP on loopback, or is written in another way than it is read. */
function withoutPort(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (url === null || url.protocol !== "http:" || !loopback.has(url.hostname)) return undefined;
  if (url.username !== "" || url.password !== "" || url.hash !== "" || url.href !== uri) return undefined;
  return `${url.hostname}${url.pathname}${url.search}`;
}
