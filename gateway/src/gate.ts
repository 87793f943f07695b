import type { Authenticator, PresentedCredentials, Principal } from "@holdfast/common/call.ts";
import { hasScope } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ApiMethod } from "./method.ts";
import type { TellRefused } from "./refusals.ts";
import { createRateLimit, type RateLimitOptions } from "./rate-limit.ts";

/** What a request says about who sends it, over REST or gRPC. */
export interface Presented extends PresentedCredentials {
  /** Header Sec-Fetch-Site, which only browsers send. */
  readonly fetchSite: string | undefined;
  readonly requestId: string;
  /** Organization that the request itself names, as the paths below /organizations do. */
  readonly subject: string | undefined;
}

/** Lets a call through to its method, or throws the reason why not. */
export interface Gate {
  /** The caller; undefined for a method of scope "public". Headers are for the answer, whatever it will be. */
  admit(
    method: ApiMethod,
    presented: Presented,
    setHeader: (name: string, value: string) => void,
  ): Promise<Principal | undefined>;
}

export interface GateDeps {
  readonly authenticator: Authenticator;
  readonly rateLimit?: RateLimitOptions;
  readonly refused: TellRefused;
  readonly clock: Clock;
}

/** Scope of methods that every good credential may call, such as asking who one is. */
const signedIn = "signed-in";

/**
 * The checks before a request is looked at: not from another site, credential, rate, scope. The principal comes from the
 * authenticator and nothing else: no header names an identity, so none has to be stripped on the way in.
 */
export function createGate({ authenticator, rateLimit, refused, clock }: GateDeps): Gate {
  const limit = rateLimit && createRateLimit(rateLimit, clock);

  /** Who has several organizations and names none in the header acts in the one that the request is about. */
  async function callerIn(subject: string, presented: Presented): Promise<Principal> {
    return authenticator.authenticate({ ...presented, organization: subject }).catch((error: unknown) => {
      if (HoldfastError.from(error).key !== "INVALID_REQUEST") throw error;
      throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such organization of yours.");
    });
  }

  return {
    async admit(method, presented, setHeader) {
      let principal: Principal | undefined;
      try {
        if (presented.fetchSite === "cross-site") {
          throw new HoldfastError("CROSS_SITE_REQUEST", "A page of another site sent this request.");
        }
        if (method.scope === "public") return undefined;
        principal = await authenticator.authenticate(presented);
        const { subject } = presented;
        if (principal.mustChoose === true && subject !== undefined) principal = await callerIn(subject, presented);
        limit?.take(principal, setHeader);
        checkScope(method, principal);
        return principal;
      } catch (thrown) {
        refused(method, { ...presented, principal, error: HoldfastError.from(thrown) });
        throw thrown;
      }
    },
  };
}

function checkScope({ scope }: ApiMethod, { scopes, mustChoose }: Principal): void {
  if (scope === signedIn || hasScope(scopes, scope)) return;
  if (mustChoose === true && !scope.startsWith("platform:")) {
    throw new HoldfastError("ORGANIZATION_REQUIRED", "Holdfast-Organization must name one of your organizations.");
  }
  throw new HoldfastError("SCOPE_MISSING", `This needs the scope ${scope}.`, { members: { scope } });
}
