import { isIP, connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { EgressFailure } from "./egress-failure.ts";
import { type GuardDeps, lookupOf, tlsSocketOptions, type TlsOptions, vettedAddresses } from "./guarded-connector.ts";

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
