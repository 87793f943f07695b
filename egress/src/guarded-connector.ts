import { isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import type { AddressJudge } from "./address-judge.ts";
import { EgressFailure } from "./egress-failure.ts";
import type { ResolveName } from "./resolve-name.ts";

export interface GuardDeps {
  readonly judge: AddressJudge;
  readonly resolve: ResolveName;
}

/** How TLS to a target differs from the usual: all of it is PEM. */
export interface TlsOptions {
  /** Authorities in place of the public ones. */
  readonly ca?: string;
  /** The certificate that is shown to the target, with its key. */
  readonly certificate?: string;
  readonly privateKey?: string;
  /** The name that the target's certificate has to have; the host of the URL unless given. */
  readonly serverName?: string;
  /** Whatever certificate the target shows is taken. */
  readonly unverified?: boolean;
}

/** The addresses of the host that may be connected to. Throws EgressFailure if any of them may not: a name means all of its addresses. */
export async function vettedAddresses(
  host: string,
  port: number,
  { judge, resolve }: GuardDeps,
  signal: AbortSignal,
): Promise<string[]> {
  const addresses = isIP(host) === 0 ? await resolve(host, signal) : [host];
  if (addresses.some((address) => judge.refusal(address, port) !== undefined))
    throw new EgressFailure("not allowed", "The target is not allowed.");
  return addresses;
}

/**
 * Makes undici's connections: the name is resolved once, here, and the socket gets exactly those addresses that were
 * judged, so that no second look-up can say something else.
 */
export function createGuardedConnector(deps: GuardDeps, connectMs: number, tls?: TlsOptions): buildConnector.connector {
  return (options, callback) => {
    const host = options.hostname.replace(/^\[(.*)\]$/, "$1");
    const port = Number(options.port || (options.protocol === "https:" ? 443 : 80));
    vettedAddresses(host, port, deps, AbortSignal.timeout(connectMs)).then(
      (addresses) => {
        const connect = buildConnector({
          ...(tls && tlsSocketOptions(tls)),
          lookup: lookupOf(addresses),
          timeout: connectMs,
          allowH2: false,
          maxCachedSessions: 0,
          keepAlive: true,
        });
        const name = tls?.serverName ?? (isIP(host) === 0 ? host : undefined);
        connect({ ...options, hostname: host, ...(name !== undefined && { servername: name }) }, callback);
      },
      (error: unknown) => callback(EgressFailure.from(error), null),
    );
  };
}

/** As Node names them. */
export function tlsSocketOptions({ ca, certificate, privateKey, unverified }: TlsOptions) {
  return {
    ...(unverified === true && { rejectUnauthorized: false }),
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(privateKey !== undefined && { key: privateKey }),
  };
}

/** Answers the addresses that were judged, whatever name is asked for. */
export function lookupOf(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => {
    if (options.all === true) callback(null, all);
    else callback(null, all[0]?.address ?? "", all[0]?.family);
  };
}
