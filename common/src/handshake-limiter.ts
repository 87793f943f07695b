import type { Socket } from "node:net";
import { createKeyedCounter } from "./concurrency/keyed-counter.ts";
import { createSourceGroups, type SourceGroup, type SourceGroups } from "./source-groups.ts";

/**
 * Limits how many TLS handshakes run concurrently. When a fleet reconnects, handshakes that all start together would
 * end after the peers' timeouts. A waiting connection costs nothing, and one that closes while it waits never starts.
 *
 * Each source has its own queue and sources take turns, so a source that stalls handshakes delays only its own. The
 * sources of a site (an IPv4 address, or the /48 of an IPv6 address) share one turn and one limit. A load balancer has
 * no queue, since it would be one for all clients behind it.
 */
export interface HandshakeLimiter {
  /** Starts the handshake now or when its turn comes. */
  add(socket: Socket): void;
  /** Marks the handshake of this host:port as complete. */
  finish(address: string): void;
}

export interface HandshakeLimiterOptions {
  readonly maxInFlight: number;
  /** Maximum number of concurrent handshakes of one source or site; three quarters of all by default. */
  readonly maxPerSource?: number;
  /**
   * Time after which a handshake no longer counts against the limit, complete or not, so that a stalled peer blocks
   * nobody.
   */
  readonly stallTimeoutMs: number;
  /** Time within which the first byte must arrive, 10 s by default. A connection has no turn before that. */
  readonly firstByteMs?: number;
  /** Maximum time in the queue, 5 minutes by default; then the connection is closed. */
  readonly queueMs?: number;
  readonly begin: (socket: Socket) => void;
  /** Groups of an address, the site last; by default its prefixes. An address without a group never waits. */
  readonly sources?: SourceGroups;
}

/** The first TLS message has a few hundred bytes. */
const maxFirstBytes = 16 << 10;

interface SourceKey {
  readonly source: string;
  readonly site: string;
}

/** Waiting connections of a source, the oldest first. */
type WaitQueue = Map<Socket, Waiting>;

interface Waiting {
  /** Stops reading and returns the bytes read to the socket. */
  release(): void;
}

export function createHandshakeLimiter(options: HandshakeLimiterOptions): HandshakeLimiter {
  const {
    maxInFlight,
    stallTimeoutMs: stalledMs,
    firstByteMs = 10_000,
    queueMs = 300_000,
    begin,
    sources: groupsOf = createSourceGroups(),
  } = options;
  const maxPerSource = options.maxPerSource ?? Math.max(1, Math.ceil((maxInFlight * 3) / 4));
  const inFlight = new Map<string, { readonly timer: NodeJS.Timeout; readonly key: SourceKey }>();
  /** Handshakes in flight by source, and by site. */
  const counts = createKeyedCounter();
  /** Connections that sent their first bytes, by site and source; the next one to start is first. */
  const sites = new Map<string, Map<string, WaitQueue>>();

  function start(socket: Socket, key: SourceKey): void {
    const address = peerAddressOf(socket);
    for (const name of namesOf(key)) counts.add(name);
    inFlight.set(address, { timer: setTimeout(() => finish(address), stalledMs).unref(), key });
    socket.once("close", () => finish(address));
    begin(socket);
  }

  function finish(address: string): void {
    const ended = inFlight.get(address);
    if (ended === undefined) return;
    clearTimeout(ended.timer);
    inFlight.delete(address);
    for (const name of namesOf(ended.key)) counts.add(name, -1);
    startNext();
  }

  /**
   * Starts as many handshakes as the limit allows, one site after the other; a site that had a turn moves to the back.
   */
  function startNext(): void {
    for (const site of Array.from(sites.keys())) {
      if (inFlight.size >= maxInFlight) return;
      startOf(site);
    }
  }

  const hasCapacity = (name: string) => counts.of(name) < maxPerSource;

  function startOf(site: string): void {
    if (!hasCapacity(site)) return;
    const next = sites
      .get(site)
      ?.entries()
      .find(([source]) => hasCapacity(source));
    const [first] = next?.[1] ?? [];
    if (next === undefined || first === undefined) return;
    const key = { source: next[0], site };
    const [socket, { release }] = first;
    release();
    moveToBack(key);
    start(socket, key);
  }

  /** Moves the source and its site to the end of the queue, if they still have waiting connections. */
  function moveToBack({ source, site }: SourceKey): void {
    const sources = sites.get(site);
    if (sources === undefined) return;
    sites.delete(site);
    sites.set(site, sources);
    const queue = sources.get(source);
    if (queue === undefined) return;
    sources.delete(source);
    sources.set(source, queue);
  }

  function queueOf({ source, site }: SourceKey): WaitQueue {
    const sources = sites.get(site) ?? new Map<string, WaitQueue>();
    sites.set(site, sources);
    const queue = sources.get(source) ?? new Map<Socket, Waiting>();
    sources.set(source, queue);
    return queue;
  }

  function remove(socket: Socket, { source, site }: SourceKey): void {
    const sources = sites.get(site);
    const queue = sources?.get(source);
    queue?.delete(socket);
    if (queue?.size === 0) sources?.delete(source);
    if (sources?.size === 0) sites.delete(site);
  }

  /** Waits for the first bytes. Only a socket that is read reports that its peer closed. */
  function wait(socket: Socket, key: SourceKey): void {
    const received: Buffer[] = [];
    let size = 0;
    let timer = setTimeout(() => socket.destroy(), firstByteMs).unref();
    const read = () => {
      for (let part = socket.read() as Buffer | null; part !== null; part = socket.read() as Buffer | null) {
        received.push(part);
        size += part.byteLength;
      }
      if (size > maxFirstBytes) socket.destroy();
      else if (size > 0) join();
    };
    const stopWaiting = () => {
      clearTimeout(timer);
      remove(socket, key);
    };
    const waiting: Waiting = {
      release() {
        stopWaiting();
        socket.off("readable", read);
        socket.off("end", stopWaiting);
        socket.off("close", stopWaiting);
        if (size > 0) socket.unshift(Buffer.concat(received));
      },
    };
    const join = () => {
      if (sites.get(key.site)?.get(key.source)?.has(socket)) return;
      clearTimeout(timer);
      timer = setTimeout(() => socket.destroy(), queueMs).unref();
      if (key.source === "") {
        waiting.release();
        return begin(socket);
      }
      queueOf(key).set(socket, waiting);
      if (inFlight.size < maxInFlight) startOf(key.site);
    };
    socket.on("readable", read);
    socket.once("end", stopWaiting);
    socket.once("close", stopWaiting);
  }

  return {
    add: (socket) => wait(socket, sourceKeyOf(groupsOf(socket.remoteAddress ?? ""))),
    finish,
  };
}

function sourceKeyOf(sources: readonly SourceGroup[]): SourceKey {
  return { source: sources[0]?.name ?? "", site: sources.at(-1)?.name ?? "" };
}

function namesOf({ source, site }: SourceKey): readonly string[] {
  return source === site ? [source] : [source, site];
}

/** host:port of a socket's peer, in the form that grpc-js uses for a call's peer. */
export function peerAddressOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress}:${remotePort}`;
}
