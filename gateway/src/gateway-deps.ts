import type { Authenticator, RefusedCall, ServedService } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { KeptAnswers } from "./kept-answers.ts";
import type { Mount } from "./mounts.ts";
import type { RateLimitOptions } from "./rate-limit.ts";

/** What the gateway is made of and takes from the process that it serves. */
export interface GatewayDeps {
  readonly services: readonly ServedService[];
  readonly authenticator: Authenticator;
  /** How many requests one credential may make in a window; none when absent. */
  readonly rateLimit?: RateLimitOptions;
  /** Told of each change that was refused before its method saw it. */
  readonly refused?: (refused: RefusedCall) => void;
  readonly keptAnswers: KeptAnswers;
  /** What the platform sends to others, as OpenAPI describes it below `webhooks`. */
  readonly webhooks?: Readonly<Record<string, unknown>>;
  /** Resolves when reads show this revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
  /** Can this process answer now? For /healthz and grpc.health.v1. */
  ready(): boolean;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Asked before the gateway's own mounts. */
  readonly mounts?: readonly Mount[];
  readonly log: Log;
  readonly clock: Clock;
  /** A UUID for each request. */
  newId(): string;
}
