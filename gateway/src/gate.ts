import type { Authenticator, PresentedCredentials, Principal, RefusedCall } from "@holdfast/common/call.ts";
import { hasScope } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ApiMethod } from "./method.ts";
import { createRateLimit, type RateLimitOptions } from "./rate-limit.ts";

/** A request's credentials and origin, over REST or gRPC. */
export interface Presented extends PresentedCredentials {
  /** Header Sec-Fetch-Site, which only browsers send. */
  readonly fetchSite: string | undefined;
  /** Header Origin, which browsers send with changes and with requests across origins. */
  readonly origin: string | undefined;
  /** Host and port of the request, from :authority or Host. */
  readonly authority: string | undefined;
  readonly requestId: string;
  /**
   * Id of the organization in the request path, such as /organizations/{org_id}/members. "unread": a field of a gRPC
   * message has it, and the message is read after the gate. A caller that must choose an organization is then
   * authorized again with that organization.
   */
  readonly subject: string | undefined;
}

/** Authenticates, rate limits and authorizes calls before their bodies are read. */
export interface Gate {
  /**
   * Returns the caller; undefined for a method of scope "public". `setHeader` sets headers of the response, also of an
   * error response. Throws CROSS_SITE_REQUEST, UNAUTHENTICATED, RATE_LIMITED, SCOPE_MISSING or ORGANIZATION_REQUIRED.
   */
  admit(
    method: ApiMethod,
    presented: Presented,
    setHeader: (name: string, value: string) => void,
  ): Promise<Principal | undefined>;
  /** Charges the caller's rate for the size of its body before the body is parsed; throws RATE_LIMITED. */
  weigh(method: ApiMethod, principal: Principal | undefined, bodyBytes: number): void;
  /** Authorizes an admitted call again, for long calls. Throws the errors of `admit` except RATE_LIMITED. */
  reauthorize(method: ApiMethod, presented: Presented): Promise<Principal | undefined>;
}

export interface GateDeps {
  readonly authenticator: Authenticator;
  readonly rateLimit?: RateLimitOptions;
  readonly reportRefusal: ReportRefusal;
  /** Base URL of the installation; its origin is the only one that browsers may send requests from. */
  readonly baseUrl: string;
  /** Throws STORE_UNAVAILABLE if the store is full. */
  readonly admitGrowth?: () => void;
  /** Throws STORE_UNAVAILABLE if this process may miss changes of others; undefined if it has them. */
  readonly requireCurrent?: () => Promise<void> | undefined;
  readonly clock: Clock;
}

/** The scope of methods that every valid credential may call, such as GetMe. */
const signedIn = "signed-in";

/**
 * Checks run in this order: age of what this process has of the store, which the authenticator reads too, origin,
 * credential, rate, scope, space in the store. Only the authenticator determines the principal: no header names an
 * identity, so no header has to be stripped from requests.
 */
export function createGate(deps: GateDeps): Gate {
  const { authenticator, rateLimit, reportRefusal, baseUrl, admitGrowth, clock } = deps;
  const ownOrigin = new URL(baseUrl).origin;
  const limit = rateLimit && createRateLimit(rateLimit, clock);

  /** Authenticates a member of several organizations, without the header, in the organization that the path names. */
  async function callerIn(subject: string, presented: Presented): Promise<Principal> {
    return authenticator.authenticate({ ...presented, organization: subject }).catch((error: unknown) => {
      if (HoldfastError.from(error).key !== "INVALID_REQUEST") throw error;
      throw new HoldfastError(
        "OBJECT_NOT_FOUND",
        "There is no such organization, or the credential does not belong to it.",
      );
    });
  }

  async function callerOf(presented: Presented): Promise<Principal> {
    const principal = await authenticator.authenticate(presented);
    const { subject } = presented;
    return principal.needsOrganization === true && subject !== undefined && subject !== "unread"
      ? callerIn(subject, presented)
      : principal;
  }

  return {
    async reauthorize(method, presented) {
      const catchingUp = deps.requireCurrent?.();
      if (catchingUp !== undefined) await catchingUp;
      if (method.scope === "public") return undefined;
      const principal = await callerOf(presented);
      checkScope(method, principal);
      return principal;
    },
    weigh(method, principal, bodyBytes) {
      if (principal !== undefined) limit?.takeBody(principal, method, bodyBytes);
    },
    async admit(method, presented, setHeader) {
      const catchingUp = deps.requireCurrent?.();
      if (catchingUp !== undefined) await catchingUp;
      let principal: Principal | undefined;
      try {
        refuseForeign(presented, ownOrigin);
        if (method.scope === "public") return undefined;
        principal = await callerOf(presented);
        limit?.take(principal, method, setHeader);
        if (principal.needsOrganization !== true || presented.subject !== "unread") checkScope(method, principal);
        if (adds(method)) admitGrowth?.();
        return principal;
      } catch (thrown) {
        reportRefusal(method, { ...presented, principal, error: HoldfastError.from(thrown) });
        throw thrown;
      }
    },
  };
}

/**
 * Protects against cross-site request forgery. A browser adds basic credentials to requests of every page, so only
 * pages of this origin and addresses that a user typed are accepted. Programs send neither header.
 */
function refuseForeign({ origin, fetchSite, authority }: Presented, ownOrigin: string): void {
  const ownOrigins = [ownOrigin, ...(authority === undefined ? [] : [`https://${authority.toLowerCase()}`])];
  if (origin !== undefined && !ownOrigins.includes(origin))
    throw new HoldfastError("CROSS_SITE_REQUEST", "The Origin header names another site.");
  if (fetchSite !== undefined && fetchSite !== "same-origin" && fetchSite !== "none")
    throw new HoldfastError("CROSS_SITE_REQUEST", "A page of another origin sent this request.");
}

/** True for methods that can grow the store; methods of operators, and those that delete or stop, are excluded. */
function adds({ readOnly, scope, description }: ApiMethod): boolean {
  return !readOnly && !scope.startsWith("platform:") && !/^(Delete|Remove|Revoke|Stop|Cancel)/.test(description.name);
}

function checkScope(method: ApiMethod, { scopes, needsOrganization }: Principal): void {
  const required = [method.scope, ...method.additionalScopes];
  const scope = required.find((each) => each !== signedIn && !hasScope(scopes, each));
  if (scope === undefined) return;
  if (needsOrganization === true && !scope.startsWith("platform:")) {
    throw new HoldfastError("ORGANIZATION_REQUIRED", "Holdfast-Organization must name one of your organizations.");
  }
  throw new HoldfastError("SCOPE_MISSING", `This call requires the scope ${scope}.`, { members: { scope } });
}

/** Reports a call that was refused before its handler ran. Refused reads are not reported. */
export type ReportRefusal = (method: ApiMethod, refused: Omit<RefusedCall, "method">) => void;

/** Creates the reporter of refusals before handlers, which report refusals themselves. */
export function createRefusalReporter(listener: ((refused: RefusedCall) => void) | undefined): ReportRefusal {
  return (method, { principal, source, requestId, error, input }) => {
    if (method.readOnly) return;
    listener?.({ method: method.description, principal, source, requestId, error, ...(input && { input }) });
  };
}
