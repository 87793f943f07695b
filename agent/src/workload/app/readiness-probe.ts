import { request } from "node:http";
import { connect } from "node:net";

/** Where a release accepts connections, and the path that responds once it is ready; empty: the port alone counts. */
export interface ProbeTarget {
  readonly address: string;
  readonly port: number;
  readonly path: string;
}

const timeoutMs = 5_000;
/**
 * Time that a connection stays open when a program accepts it. The container's network accepts each connection first,
 * and closes it immediately if no program listens.
 */
const settledMs = 150;

/** Checks a release once; resolves with the reason why it is not ready, or undefined if it is. */
export function probeRelease(target: ProbeTarget, signal: AbortSignal): Promise<string | undefined> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return target.path === "" ? probePort(target, limit) : probePath(target, limit);
}

function probePort({ address, port }: ProbeTarget, signal: AbortSignal): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ host: address, port, signal });
  let settled: NodeJS.Timeout | undefined;
  const end = (reason: string | undefined) => {
    clearTimeout(settled);
    socket.destroy();
    resolve(reason);
  };
  socket.once("connect", () => {
    settled = setTimeout(end, settledMs, undefined);
  });
  socket.once("data", () => end(undefined));
  socket.once("error", () => end("The port accepts no connections."));
  socket.once("close", () => end("The port accepts no connections."));
  return promise;
}

function probePath({ address, port, path }: ProbeTarget, signal: AbortSignal): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const headers = { host: "localhost", "user-agent": "holdfast-health-check", connection: "close" };
  const probe = request({ host: address, port, path, headers, signal }, (response) => {
    const { statusCode = 0 } = response;
    response.destroy();
    resolve(statusCode >= 200 && statusCode < 400 ? undefined : `${path} responds with the status ${statusCode}.`);
  });
  probe.once("error", () => resolve(`${path} does not respond.`));
  probe.end();
  return promise;
}
