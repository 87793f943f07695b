import { hash } from "node:crypto";
import { Agent, type buildConnector } from "undici";
import { type ConnectorOptions, createGuardedConnector, type GuardDeps, type TlsOptions } from "./guarded-connector.ts";

/** Key of a connection pool. Organizations, and different TLS options and known addresses, share no connections. */
export interface PoolKey extends ConnectorOptions {
  readonly organizationId: string;
  /** Time in milliseconds after which an idle connection is closed. */
  readonly idleMs: number;
}

export interface ConnectionPools {
  /** The pool for the key. Each of its connections was opened, and its addresses checked, at most five minutes ago. */
  of(key: PoolKey): Agent;
  /** Closes all connections, including those in use. */
  destroy(): Promise<void>;
}

interface Pool {
  readonly agent: Agent;
  readonly createdAtMs: number;
}

const connectTimeoutMs = 10_000;
const maxHeaderBytes = 16 << 10;
export const maxPoolAgeMs = 5 * 60_000;
const sweepIntervalMs = 30_000;

/** `nowMs` is a monotonic clock. An expired pool closes when its last request ends. */
export function createConnectionPools(deps: GuardDeps, nowMs: () => number): ConnectionPools {
  const pools = new Map<string, Pool>();
  const retired = new Set<Agent>();
  const sweepTimer = setInterval(sweep, sweepIntervalMs);
  sweepTimer.unref();

  function sweep(): void {
    const now = nowMs();
    for (const [id, pool] of pools) if (isExpired(pool, now)) retire(id, pool);
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
      const existing = pools.get(id);
      if (existing !== undefined && !isExpired(existing, now)) return existing.agent;
      if (existing !== undefined) retire(id, existing);
      const agent = agentOf(createGuardedConnector(deps, connectTimeoutMs, key), key.idleMs);
      pools.set(id, { agent, createdAtMs: now });
      return agent;
    },
    async destroy() {
      clearInterval(sweepTimer);
      await Promise.all([...[...pools.values()].map(({ agent }) => agent), ...retired].map((agent) => agent.destroy()));
      pools.clear();
    },
  };
}

function isExpired({ createdAtMs }: Pool, now: number): boolean {
  return now - createdAtMs >= maxPoolAgeMs;
}

/** Digests by the options object, so that a frequent caller's options are hashed once. */
const digests = new WeakMap<TlsOptions, string>();

/** Id of a pool. It has a digest of the TLS options, so that the map holds no private keys. */
function idOf({ organizationId, tls, addresses, idleMs }: PoolKey): string {
  const known = addresses === undefined ? "" : JSON.stringify(addresses);
  return [organizationId, idleMs, tls === undefined ? "" : digestOf(tls), known].join(" ");
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

function agentOf(connect: buildConnector.connector, idleMs: number): Agent {
  return new Agent({
    connect,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    maxHeaderSize: maxHeaderBytes,
    pipelining: 1,
    allowH2: false,
  });
}
