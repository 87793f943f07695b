import type { Socket } from "node:net";
import { createSourceGroups, type SourceGroup, type SourceGroups } from "./source-groups.ts";

/**
 * Has a few connections at a time do their handshakes. When a fleet comes back at once, whoever begins all of them ends none
 * before its peers lose patience; here those that wait cost nothing, and those that hung up meanwhile are never begun. Sources
 * wait in lines of their own and take turns, and none has all of the places: whoever stalls handshakes stalls its own. The
 * sources of a site (an IPv4 address, or the /48 of an IPv6 one) take turns within the site's turns, and have its places together.
 * A balancer has no line: it would be one for all who come through it.
 */
export interface Handshakes {
  /** Begins it now, or in its turn. */
  enter(socket: Socket): void;
  /** The handshake of this host:port is over: a call came. */
  over(address: string): void;
}

export interface HandshakesOptions {
  readonly atOnce: number;
  /** Places that one source, or one site, has at most; three quarters of all when absent. */
  readonly perSource?: number;
  /** After this a handshake makes way for the next one, whether it is over or not: a peer that stalls holds nobody up. */
  readonly waitMs: number;
  /** A peer that has not said a word by then is cut; 10 s when absent. It has no turn before it speaks. */
  readonly silentMs?: number;
  /** A connection whose turn did not come by then is cut; 5 minutes when absent. */
  readonly lineMs?: number;
  readonly begin: (socket: Socket) => void;
  /**
   * Groups that an address counts in, the site last; by default its prefixes. An address without a group never waits.
   */
  readonly sources?: SourceGroups;
}

/** A first message of TLS is a few hundred bytes. */
const largestFirstBytes = 16 << 10;

interface Place {
  readonly source: string;
  readonly site: string;
}

/** Who waits of a source, the longest first. */
type Line = Map<Socket, Waiting>;

interface Waiting {
  /** Stops reading and gives back what was read. */
  release(): void;
}

export function createHandshakes(options: HandshakesOptions): Handshakes {
  const {
    atOnce,
    waitMs,
    silentMs = 10_000,
    lineMs = 300_000,
    begin,
    sources: groupsOf = createSourceGroups(),
  } = options;
  const perSource = options.perSource ?? Math.max(1, Math.ceil((atOnce * 3) / 4));
  const underWay = new Map<string, { readonly timer: NodeJS.Timeout; readonly place: Place }>();
  /** How many of a source, and of a site, are under way. */
  const counts = new Map<string, number>();
  /** Who spoke, by site and source; the one whose turn it is stands first. */
  const sites = new Map<string, Map<string, Line>>();

  function start(socket: Socket, place: Place): void {
    const address = addressOf(socket);
    for (const name of namesOf(place)) counts.set(name, (counts.get(name) ?? 0) + 1);
    underWay.set(address, { timer: setTimeout(() => over(address), waitMs).unref(), place });
    socket.once("close", () => over(address));
    begin(socket);
  }

  function over(address: string): void {
    const ended = underWay.get(address);
    if (ended === undefined) return;
    clearTimeout(ended.timer);
    underWay.delete(address);
    for (const name of namesOf(ended.place)) {
      const left = (counts.get(name) ?? 1) - 1;
      if (left === 0) counts.delete(name);
      else counts.set(name, left);
    }
    startNext();
  }

  /** Begins as many as there are places for, a site after the other; who had a turn goes to the back and comes later. */
  function startNext(): void {
    for (const site of Array.from(sites.keys())) {
      if (underWay.size >= atOnce) return;
      startOf(site);
    }
  }

  const hasPlace = (name: string) => (counts.get(name) ?? 0) < perSource;

  function startOf(site: string): void {
    if (!hasPlace(site)) return;
    const next = sites
      .get(site)
      ?.entries()
      .find(([source]) => hasPlace(source));
    const [first] = next?.[1] ?? [];
    if (next === undefined || first === undefined) return;
    const place = { source: next[0], site };
    const [socket, { release }] = first;
    release();
    toTheBack(place);
    start(socket, place);
  }

  /** If anything of it is left. */
  function toTheBack({ source, site }: Place): void {
    const sources = sites.get(site);
    if (sources === undefined) return;
    sites.delete(site);
    sites.set(site, sources);
    const line = sources.get(source);
    if (line === undefined) return;
    sources.delete(source);
    sources.set(source, line);
  }

  function lineUp({ source, site }: Place): Line {
    const sources = sites.get(site) ?? new Map<string, Line>();
    sites.set(site, sources);
    const line = sources.get(source) ?? new Map<Socket, Waiting>();
    sources.set(source, line);
    return line;
  }

  function leave(socket: Socket, { source, site }: Place): void {
    const sources = sites.get(site);
    const line = sources?.get(source);
    line?.delete(socket);
    if (line?.size === 0) sources?.delete(source);
    if (sources?.size === 0) sites.delete(site);
  }

  /** Only a socket that is read tells that its peer is gone. */
  function wait(socket: Socket, place: Place): void {
    const early: Buffer[] = [];
    let size = 0;
    let timer = setTimeout(() => socket.destroy(), silentMs).unref();
    const read = () => {
      for (let part = socket.read() as Buffer | null; part !== null; part = socket.read() as Buffer | null) {
        early.push(part);
        size += part.byteLength;
      }
      if (size > largestFirstBytes) socket.destroy();
      else if (size > 0) join();
    };
    const forget = () => {
      clearTimeout(timer);
      leave(socket, place);
    };
    const waiting: Waiting = {
      release() {
        forget();
        socket.off("readable", read);
        socket.off("end", forget);
        socket.off("close", forget);
        if (size > 0) socket.unshift(Buffer.concat(early));
      },
    };
    const join = () => {
      if (sites.get(place.site)?.get(place.source)?.has(socket)) return;
      clearTimeout(timer);
      timer = setTimeout(() => socket.destroy(), lineMs).unref();
      if (place.source === "") {
        waiting.release();
        return begin(socket);
      }
      lineUp(place).set(socket, waiting);
      if (underWay.size < atOnce) startOf(place.site);
    };
    socket.on("readable", read);
    socket.once("end", forget);
    socket.once("close", forget);
  }

  return {
    enter: (socket) => wait(socket, placeOf(groupsOf(socket.remoteAddress ?? ""))),
    over,
  };
}

function placeOf(sources: readonly SourceGroup[]): Place {
  return { source: sources[0]?.name ?? "", site: sources.at(-1)?.name ?? "" };
}

function namesOf({ source, site }: Place): readonly string[] {
  return source === site ? [source] : [source, site];
}

/** As grpc-js names a call's peer. */
export function addressOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress}:${remotePort}`;
}
