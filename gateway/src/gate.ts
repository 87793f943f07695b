import type { Authenticator, PresentedCredentials, Principal } from "@holdfast/common/call.ts";
import { hasScope } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ApiMethod } from "./method.ts";
import type { TellRefused } from "./refusals.ts";
import { createRateLimit, type RateLimitOptions } from "./rate-limit.ts";

/** A request's credentials and origin, over REST or gRPC. */
export interface Presented extends PresentedCredentials {
  /** Header Sec-Fetch-Site, which only browsers send. */
  readonly fetchSite: string | undefined;
  /** Header Origin, which browsers send with changes and with requests across origins. */
  readonly origin: string | undefined;
  /** Host and port that the request is for, as the client has them. */
  readonly authority: string | undefined;
  readonly requestId: string;
  /**
   * Organization that the request itself names, as the paths below /organizations do. "unread": the message names it,
   * which is read after the gate; a caller that must choose an organization is then judged again.
   */
  readonly subject: string | undefined;
}

/** Lets a call through to its method, or throws the reason why not. */
export interface Gate {
  /** The caller; undefined for a method of scope "public". Headers are for the answer, also for an error. */
  admit(
    method: ApiMethod,
    presented: Presented,
    setHeader: (name: string, value: string) => void,
  ): Promise<Principal | undefined>;
  /** Charges the admitted caller for the size of its body, before that is parsed; throws RATE_LIMITED. */
  weigh(method: ApiMethod, principal: Principal | undefined, bodyBytes: number): void;
  /** The caller as of now, for calls that were admitted a while ago. Throws as `admit` does, and counts nothing. */
  judge(method: ApiMethod, presented: Presented): Promise<Principal | undefined>;
}

export interface GateDeps {
  readonly authenticator: Authenticator;
  readonly rateLimit?: RateLimitOptions;
  readonly refused: TellRefused;
  /** Of the installation. */
  readonly baseUrl: string;
  /** Throws when users may add nothing. */
  readonly admitGrowth?: () => void;
  readonly clock: Clock;
}

/** Scope of methods that every valid credential may call, such as the one that describes the caller. */
const signedIn = "signed-in";

/**
 * The checks before a request is looked at: not from another site, credential, rate, scope. The principal comes from
 * the authenticator and nothing else: no header names an identity, so none has to be stripped on the way in.
 */
export function createGate({ authenticator, rateLimit, refused, baseUrl, admitGrowth, clock }: GateDeps): Gate {
  const ownOrigin = new URL(baseUrl).origin;
  const limit = rateLimit && createRateLimit(rateLimit, clock);

  /** A caller of several organizations that names none in the header acts in the organization of the request's path. */
  async function callerIn(subject: string, presented: Presented): Promise<Principal> {
    return authenticator.authenticate({ ...presented, organization: subject }).catch((error: unknown) => {
      if (HoldfastError.from(error).key !== "INVALID_REQUEST") throw error;
      throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such organization of yours.");
    });
  }

  async function callerOf(presented: Presented): Promise<Principal> {
    const principal = await authenticator.authenticate(presented);
    const { subject } = presented;
    return principal.mustChoose === true && subject !== undefined && subject !== "unread"
      ? callerIn(subject, presented)
      : principal;
  }

  return {
    async judge(method, presented) {
      if (method.scope === "public") return undefined;
      const principal = await callerOf(presented);
      checkScope(method, principal);
      return principal;
    },
    weigh(method, principal, bodyBytes) {
      if (principal !== undefined) limit?.takeBody(principal, method, bodyBytes);
    },
    async admit(method, presented, setHeader) {
      let principal: Principal | undefined;
      try {
        refuseForeign(presented, ownOrigin);
        if (method.scope === "public") return undefined;
        principal = await callerOf(presented);
        limit?.take(principal, method, setHeader);
        if (principal.mustChoose !== true || presented.subject !== "unread") checkScope(method, principal);
        if (adds(method)) admitGrowth?.();
        return principal;
      } catch (thrown) {
        refused(method, { ...presented, principal, error: HoldfastError.from(thrown) });
        throw thrown;
      }
    },
  };
}

/**
 * A browser adds basic credentials by itself, whatever page sends the request: only pages of this very origin, and addresses
 * that a person enters, may use them. Programs send neither header.
 */
function refuseForeign({ origin, fetchSite, authority }: Presented, ownOrigin: string): void {
  const own = [ownOrigin, ...(authority === undefined ? [] : [`https://${authority.toLowerCase()}`])];
  if (origin !== undefined && !own.includes(origin))
    throw new HoldfastError("CROSS_SITE_REQUEST", "The header Origin names a page that is not of this installation.");
  if (fetchSite !== undefined && fetchSite !== "same-origin" && fetchSite !== "none")
    throw new HoldfastError("CROSS_SITE_REQUEST", "A page of another origin sent this request.");
}

/** Operators' methods make room, and so do methods that end something: a full store refuses neither. */
function adds({ readOnly, scope, description }: ApiMethod): boolean {
  return !readOnly && !scope.startsWith("platform:") && !/^(Delete|Remove|Revoke|Stop|Cancel)/.test(description.name);
}

function checkScope({ scope }: ApiMethod, { scopes, mustChoose }: Principal): void {
  if (scope === signedIn || hasScope(scopes, scope)) return;
  if (mustChoose === true && !scope.startsWith("platform:")) {
    throw new HoldfastError("ORGANIZATION_REQUIRED", "Holdfast-Organization must name one of your organizations.");
  }
  throw new HoldfastError("SCOPE_MISSING", `This needs the scope ${scope}.`, { members: { scope } });
}
