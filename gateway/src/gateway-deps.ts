import type { Authenticator, RefusedCall, ServedService } from "@holdfast/common/call.ts";
import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { KeptAnswers } from "./kept-answers.ts";
import type { Mount } from "./mounts.ts";
import type { Form } from "./openapi/forms.ts";
import type { PlaceLimits } from "./places.ts";
import type { PublicPace } from "./public-pace.ts";
import type { RateLimitOptions } from "./rate-limit.ts";

/** Parts of the gateway that come from the process that it serves. */
export interface GatewayDeps {
  readonly services: readonly ServedService[];
  readonly authenticator: Authenticator;
  /** How many requests one credential may make in a second; no limit when absent. */
  readonly rateLimit?: RateLimitOptions;
  /**
   * How many lists may be followed at a time, how many dear methods be at work, and how many reads wait for a revision.
   */
  readonly places?: { readonly followers?: PlaceLimits; readonly dear?: PlaceLimits; readonly waits?: PlaceLimits };
  /** From where requests come; the peer's address when absent. */
  readonly clients?: Pick<ClientAddresses, "of">;
  /** Throws when the store has no room for additions of users; methods that end or delete something do not ask. */
  readonly admitGrowth?: () => void;
  /** Paces pages, health, reflection and public methods by source; nothing does when absent. */
  readonly publicPace?: PublicPace;
  /** Told of each change that was refused before its method saw it. */
  readonly refused?: (refused: RefusedCall) => void;
  readonly keptAnswers: KeptAnswers;
  /** What the platform sends to others, as OpenAPI describes it below `webhooks`. */
  readonly webhooks?: Readonly<Record<string, unknown>>;
  /** Limits of inputs that methods check by themselves, for the description of the API. */
  readonly forms?: readonly Form[];
  /** Resolves when reads show this revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
  /** Can this process answer now? For /healthz and grpc.health.v1. */
  ready(): boolean;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** How long a client may take for the body of a request; 30 s when absent. */
  readonly bodyMs?: number;
  /** Asked before the gateway's own mounts. */
  readonly mounts?: readonly Mount[];
  readonly log: Log;
  readonly clock: Clock;
  /** A UUID for each request. */
  newId(): string;
}
