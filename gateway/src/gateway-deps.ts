import type { Authenticator, RefusedCall, ServedService } from "@holdfast/common/call.ts";
import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ConsoleFiles } from "./console/console.ts";
import type { StoredResponses } from "./idempotency.ts";
import type { Mount } from "./mounts.ts";
import type { OwnerPath } from "./owner-paths.ts";
import type { SchemaRule } from "./openapi/schema-rules.ts";
import type { ConcurrencyLimits } from "./concurrency-limit.ts";
import type { PublicRateLimit } from "./public-rate-limit.ts";
import type { RateLimitOptions } from "./rate-limit.ts";

/** Dependencies of the gateway. */
export interface GatewayDeps {
  readonly services: readonly ServedService[];
  /** Kinds of owners of machines that have separate paths; none if absent. */
  readonly ownerPaths?: readonly OwnerPath[];
  readonly authenticator: Authenticator;
  /** Requests per second of one credential; no limit if absent. */
  readonly rateLimit?: RateLimitOptions;
  /** Limits of concurrent followed lists, expensive calls and waits for a revision; each has a default. */
  readonly concurrencyLimits?: {
    readonly followers?: ConcurrencyLimits;
    readonly expensiveCalls?: ConcurrencyLimits;
    readonly waits?: ConcurrencyLimits;
  };
  /** Finds the client's address behind trusted proxies; the peer's address is used if absent. */
  readonly clients?: Pick<ClientAddresses, "addressOf">;
  /** Throws STORE_UNAVAILABLE if the store is full. Called before methods that can grow the store. */
  readonly admitGrowth?: () => void;
  /** Limits pages, health, reflection and public methods by source address; no limit if absent. */
  readonly publicRateLimit?: PublicRateLimit;
  /** Called with each change that was refused before its handler ran, for the audit log. */
  readonly refused?: (refused: RefusedCall) => void;
  readonly storedResponses: StoredResponses;
  /** The `webhooks` object of /openapi.json: requests that the platform sends. */
  readonly webhooks?: Readonly<Record<string, unknown>>;
  /** JSON Schema keywords for limits that handlers check themselves, for /openapi.json. */
  readonly schemaRules?: readonly SchemaRule[];
  /** Resolves when reads include this revision of the store; rejects with STORE_UNAVAILABLE after timeoutMs. */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
  /**
   * Resolves when reads include all but the newest changes of other processes; undefined if they do. Called before each
   * call and each page of a stream; throws STORE_UNAVAILABLE, such as after a cut of the network.
   */
  readonly requireCurrent?: () => Promise<void> | undefined;
  /** True while this process can serve calls; reported by /healthz and grpc.health.v1. */
  ready(): boolean;
  /** Public base URL without a trailing slash, such as "https://data.example.com:8443". */
  readonly baseUrl: string;
  /** Time in which a request body must arrive, in milliseconds; 30 s if absent. */
  readonly bodyTimeoutMs?: number;
  /** Returns the files of the console, built at the first call; if absent, no console is served. */
  readonly console?: () => Promise<ConsoleFiles>;
  /** Additional mounts, which are matched first. */
  readonly mounts?: readonly Mount[];
  readonly log: Log;
  readonly clock: Clock;
  /** Creates the UUID of a request. */
  newId(): string;
}
