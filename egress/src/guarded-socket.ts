import { isIP, connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { EgressFailure } from "./egress-failure.ts";
import { type GuardDeps, lookupOf, tlsSocketOptions, type TlsOptions, vettedAddresses } from "./guarded-connector.ts";

/** Where a raw connection leads, for protocols that are not HTTP. */
export interface SocketTarget {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Absent for a plain connection; `{}` for TLS as usual, with the certificate verified by the host's name. */
  readonly tls?: TlsOptions | undefined;
  /** For all of it: resolving, connecting, the handshake. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** A connection to one of the addresses that were judged. Throws EgressFailure, or the reason of the signal. */
export async function openGuardedSocket(target: SocketTarget, deps: GuardDeps): Promise<Socket> {
  const { host, port, tls, deadlineMs, signal } = target;
  signal.throwIfAborted();
  const deadline = AbortSignal.timeout(deadlineMs);
  const ending = AbortSignal.any([signal, deadline]);
  try {
    const addresses = await vettedAddresses(host, port, deps, ending);
    const way = { host, port, lookup: lookupOf(addresses), autoSelectFamily: true, keepAlive: true };
    if (tls === undefined) return await opened(connectPlain(way), "connect", ending);
    const name = tls.serverName ?? (isIP(host) === 0 ? host : undefined);
    const secured = connectTls({ ...way, ...tlsSocketOptions(tls), ...(name !== undefined && { servername: name }) });
    return await opened(secured, "secureConnect", ending);
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.aborted) throw new EgressFailure("timeout", `No connection within ${deadlineMs / 1_000} s.`);
    throw EgressFailure.from(error);
  }
}

function opened<S extends Socket>(socket: S, event: string, signal: AbortSignal): Promise<S> {
  const { promise, resolve, reject } = Promise.withResolvers<S>();
  const abort = () => socket.destroy(new Error("the connection was given up"));
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  socket.once("error", reject);
  socket.once(event, () => {
    socket.off("error", reject);
    resolve(socket);
  });
  return promise.finally(() => signal.removeEventListener("abort", abort));
}
