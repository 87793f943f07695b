import { connect as connectPlain, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { buildConnector } from "undici";
import type { AddressPolicy } from "./address-policy.ts";
import { EgressFailure } from "./egress-failure.ts";
import type { ResolveName } from "./resolve-name.ts";

export interface GuardDeps {
  readonly policy: AddressPolicy;
  readonly resolve: ResolveName;
}

/** TLS options of a target that differ from the defaults. All are PEM. */
export interface TlsOptions {
  /** Trusted authorities instead of the public ones. */
  readonly ca?: string;
  /** Client certificate, with its key. */
  readonly certificate?: string;
  readonly privateKey?: string;
  /** Expected name in the target's certificate; the URL's host by default. */
  readonly serverName?: string;
  /** Accepts any certificate. */
  readonly unverified?: boolean;
}

/** Options of a target's connections that differ from the defaults. */
export interface ConnectorOptions {
  readonly tls?: TlsOptions | undefined;
  /** Addresses of the target that need neither a lookup nor the policy. */
  readonly addresses?: readonly string[] | undefined;
}

/**
 * Resolves a host and checks its addresses. Throws EgressFailure if any of them is refused, since a connection may use
 * each of them.
 */
export async function vettedAddresses(
  host: string,
  port: number,
  { policy, resolve }: GuardDeps,
  signal: AbortSignal,
): Promise<string[]> {
  const addresses = isIP(host) === 0 ? await resolve(host, signal) : [host];
  const refusals = await Promise.all(addresses.map((address) => policy.refusal(address, port)));
  if (refusals.some((refusal) => refusal !== undefined))
    throw new EgressFailure("not allowed", "The target is not allowed.");
  return addresses;
}

/**
 * Creates undici's connector. Without known addresses the name is resolved once, and the socket connects to exactly the
 * checked addresses, so that a second lookup cannot return others (DNS rebinding).
 */
export function createGuardedConnector(
  deps: GuardDeps,
  connectMs: number,
  { tls, addresses: known }: ConnectorOptions = {},
): buildConnector.connector {
  return (options, callback) => {
    const host = options.hostname.replace(/^\[(.*)\]$/, "$1");
    const port = Number(options.port || (options.protocol === "https:" ? 443 : 80));
    const checked =
      known === undefined
        ? vettedAddresses(host, port, deps, AbortSignal.timeout(connectMs))
        : Promise.resolve([...known]);
    checked.then(
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

/** The options by Node's names. */
function tlsSocketOptions({ ca, certificate, privateKey, unverified }: TlsOptions) {
  return {
    ...(unverified === true && { rejectUnauthorized: false }),
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(privateKey !== undefined && { key: privateKey }),
  };
}

/** A lookup function that returns the checked addresses for any name. */
function lookupOf(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => {
    if (options.all === true) callback(null, all);
    else callback(null, all[0]?.address ?? "", all[0]?.family);
  };
}

/** Target of a raw connection, for protocols other than HTTP. */
export interface SocketTarget {
  /** Host name, or IP address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Absent for a plain connection; `{}` for TLS that verifies the certificate for the host's name. */
  readonly tls?: TlsOptions | undefined;
  /** Time in milliseconds for resolving, connecting and the handshake. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** Connects to one of the checked addresses. Throws EgressFailure, or the signal's reason. */
export async function openGuardedSocket(target: SocketTarget, deps: GuardDeps): Promise<Socket> {
  const { host, port, tls, deadlineMs, signal } = target;
  signal.throwIfAborted();
  const deadline = AbortSignal.timeout(deadlineMs);
  const ending = AbortSignal.any([signal, deadline]);
  try {
    const addresses = await vettedAddresses(host, port, deps, ending);
    const options = { host, port, lookup: lookupOf(addresses), autoSelectFamily: true, keepAlive: true };
    if (tls === undefined) return await connected(connectPlain(options), "connect", ending);
    const name = tls.serverName ?? (isIP(host) === 0 ? host : undefined);
    const secured = connectTls({
      ...options,
      ...tlsSocketOptions(tls),
      ...(name !== undefined && { servername: name }),
    });
    return await connected(secured, "secureConnect", ending);
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.aborted) throw new EgressFailure("timeout", `No connection within ${deadlineMs / 1_000} s.`);
    throw EgressFailure.from(error);
  }
}

function connected<S extends Socket>(socket: S, event: string, signal: AbortSignal): Promise<S> {
  const { promise, resolve, reject } = Promise.withResolvers<S>();
  const abort = () => socket.destroy(new Error("the connection was aborted"));
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  socket.once("error", reject);
  socket.once(event, () => {
    socket.off("error", reject);
    resolve(socket);
  });
  return promise.finally(() => signal.removeEventListener("abort", abort));
}
