import { hash } from "node:crypto";
import { Agent, type buildConnector } from "undici";
import { createGuardedConnector, type GuardDeps, type TlsOptions } from "./guarded-connector.ts";

/** Whose connections may serve a request: never those of another organization, and never ones with other TLS options. */
export interface PoolKey {
  readonly organizationId: string;
  readonly tls?: TlsOptions | undefined;
  /** How long an idle connection is kept. */
  readonly keepMs: number;
}

export interface ConnectionPools {
  /** The pool for the key. A connection that it has was made, and its addresses were judged, at most five minutes ago. */
  of(key: PoolKey): Agent;
  /** Ends all connections, also those in use. */
  destroy(): Promise<void>;
}

interface Pool {
  readonly agent: Agent;
  readonly madeAtMs: number;
}

const connectMs = 10_000;
const headerBytesMax = 16 << 10;
export const poolAgeMaxMs = 5 * 60_000;
const sweepMs = 30_000;

/** `nowMs` is a clock that never jumps. A pool past its age ends when the last of its requests does. */
export function createConnectionPools(deps: GuardDeps, nowMs: () => number): ConnectionPools {
  const pools = new Map<string, Pool>();
  const retired = new Set<Agent>();
  const sweeping = setInterval(sweep, sweepMs);
  sweeping.unref();

  function sweep(): void {
    const now = nowMs();
    for (const [id, pool] of pools) if (isPast(pool, now)) retire(id, pool);
  }

  function retire(id: string, { agent }: Pool): void {
    pools.delete(id);
    retired.add(agent);
    agent
      .close()
      .catch(() => undefined)
      .finally(() => retired.delete(agent));
  }

  return {
    of(key) {
      const id = idOf(key);
      const now = nowMs();
      const known = pools.get(id);
      if (known !== undefined && !isPast(known, now)) return known.agent;
      if (known !== undefined) retire(id, known);
      const agent = agentOf(createGuardedConnector(deps, connectMs, key.tls), key.keepMs);
      pools.set(id, { agent, madeAtMs: now });
      return agent;
    },
    async destroy() {
      clearInterval(sweeping);
      await Promise.all([...[...pools.values()].map(({ agent }) => agent), ...retired].map((agent) => agent.destroy()));
      pools.clear();
    },
  };
}

function isPast({ madeAtMs }: Pool, now: number): boolean {
  return now - madeAtMs >= poolAgeMaxMs;
}

/** By the object that says them: who calls often has it made once. */
const digests = new WeakMap<TlsOptions, string>();

/** Keys of certificates stay out of the map: a digest tells options apart. */
function idOf({ organizationId, tls, keepMs }: PoolKey): string {
  return tls === undefined ? `${organizationId} ${keepMs}` : `${organizationId} ${keepMs} ${digestOf(tls)}`;
}

function digestOf(tls: TlsOptions): string {
  let digest = digests.get(tls);
  if (digest === undefined) {
    const { ca, certificate, privateKey, serverName, unverified = false } = tls;
    const options = JSON.stringify([ca, certificate, privateKey, serverName, unverified].map((each) => each ?? null));
    digest = hash("sha256", options, "base64");
    digests.set(tls, digest);
  }
  return digest;
}

function agentOf(connect: buildConnector.connector, keepMs: number): Agent {
  return new Agent({
    connect,
    // The deadline of the whole request is what ends it; these only see to it that nothing outlives it.
    headersTimeout: 60_000,
    bodyTimeout: 60_000,
    keepAliveTimeout: keepMs,
    keepAliveMaxTimeout: keepMs,
    maxHeaderSize: headerBytesMax,
    pipelining: 1,
    allowH2: false,
  });
}
