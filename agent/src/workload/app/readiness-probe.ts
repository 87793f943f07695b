import { request } from "node:http";
import { connect, type Socket } from "node:net";

/** Where a release accepts connections, and the path that responds once it is ready; empty: the port alone counts. */
export interface ProbeTarget {
  readonly address: string;
  readonly port: number;
  readonly path: string;
  /** Port on which the program has to listen in its container, at an address that is not loopback. */
  readonly programPort: number;
}

const timeoutMs = 5_000;
/** Time for the first byte after a request without a path. The next attempt connects again. */
const firstByteMs = 2_000;
/** Time that a connection stays open when a program has accepted it, on a machine that is not busy. */
const openMs = 150;
const silence = ({ programPort }: ProbeTarget) =>
  `No program responds on port ${programPort} at 0.0.0.0 (one that listens at 127.0.0.1 alone is not reached).`;
const greeting =
  "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nUser-Agent: holdfast-health-check\r\nConnection: close\r\n\r\n";

/**
 * Checks a new release once; resolves with the reason why it is not ready, or undefined if it is. An open connection
 * shows no program: the network of the container accepts each one itself, and closes it some time later if no program
 * listens, or not for seconds while the network is being set up. Any bytes do: the response of an HTTP server, or the
 * settings that an HTTP/2 server sends first.
 */
export function probeReadiness(target: ProbeTarget, signal: AbortSignal): Promise<string | undefined> {
  if (target.path !== "") return probePath(target, withTimeout(signal));
  return probePort(target, signal, (socket, end) => {
    const timer = setTimeout(end, firstByteMs, silence(target));
    socket.write(greeting);
    return timer;
  });
}

/**
 * Checks a release that serves; resolves with what is wrong with it, or undefined. A port gets no request, which the
 * program would log each time.
 */
export function probeLiveness(target: ProbeTarget, signal: AbortSignal): Promise<string | undefined> {
  if (target.path !== "") return probePath(target, withTimeout(signal));
  return probePort(target, signal, (_, end) => setTimeout(end, openMs, undefined));
}

function withTimeout(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
}

type End = (reason: string | undefined) => void;

/** Connects, and ends with the first byte, the end of the connection, or the timer of the opened connection. */
function probePort(
  target: ProbeTarget,
  signal: AbortSignal,
  opened: (socket: Socket, end: End) => NodeJS.Timeout,
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ host: target.address, port: target.port, signal: withTimeout(signal) });
  let timer: NodeJS.Timeout | undefined;
  const end: End = (reason) => {
    clearTimeout(timer);
    socket.destroy();
    resolve(reason);
  };
  socket.once("connect", () => {
    timer = opened(socket, end);
  });
  socket.once("data", () => end(undefined));
  socket.once("error", () => end(silence(target)));
  socket.once("close", () => end(silence(target)));
  return promise;
}

function probePath(target: ProbeTarget, signal: AbortSignal): Promise<string | undefined> {
  const { address, port, path } = target;
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const headers = { host: "localhost", "user-agent": "holdfast-health-check", connection: "close" };
  const probe = request({ host: address, port, path, headers, signal }, (response) => {
    const { statusCode = 0 } = response;
    response.destroy();
    resolve(statusCode >= 200 && statusCode < 400 ? undefined : `${path} responds with the status ${statusCode}.`);
  });
  probe.once("error", () => resolve(`${path} does not respond. ${silence(target)}`));
  probe.end();
  return promise;
}
