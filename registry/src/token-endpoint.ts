import type { AccessResponse } from "@holdfast/proto/holdfast/registry/v1/registry_pb.ts";
import { type AccessTokens, type RepositoryAccess, tokenSeconds } from "./access-token.ts";
import { type Answer, refusal } from "./answer.ts";
import { Unavailable } from "./controller-feed.ts";

export interface TokenEndpointDeps {
  readonly tokens: Pick<AccessTokens, "sign">;
  readonly accessOf: (authorization: string, source: string) => Promise<AccessResponse>;
  readonly now: () => number;
}

/** A request for a token: the query of its URL, and its Authorization header. */
export interface TokenRequest {
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly source: string;
}

const maxScopes = 20;
const maxAuthorization = 4_096;
const repositoryName = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)+$/;
const maxNameLength = 255;

/**
 * Responds to `GET /auth/token` by the token authentication specification of docker-registry: the caller proves who it
 * is, and gets a token for those of the requested repositories that are its organization's. As the specification has
 * it, a caller without access to a repository gets a token without it, which the registry then refuses.
 */
export async function tokenAnswer(request: TokenRequest, deps: TokenEndpointDeps): Promise<Answer> {
  const { query, authorization = "", source } = request;
  if (authorization === "" || authorization.length > maxAuthorization)
    return unauthorized("sign in with an API key, a user name and password, or the user name token and a token");
  let access: AccessResponse;
  try {
    access = await deps.accessOf(authorization, source);
  } catch (error) {
    if (error instanceof Unavailable) return refusal(503, "UNAVAILABLE", error.message);
    throw error;
  }
  if (access.refusal !== "") return unauthorized(access.refusal);
  const token = deps.tokens.sign({ sub: access.subject, access: grantedOf(query.getAll("scope"), access) });
  const issuedAt = new Date(deps.now()).toISOString();
  const body = { token, access_token: token, expires_in: tokenSeconds, issued_at: issuedAt };
  return { status: 200, headers: {}, body };
}

/** The part of the requested scopes, "repository:<name>:<actions>" each, that the caller may have. */
function grantedOf(
  scopes: readonly string[],
  { namespace, actions }: Pick<AccessResponse, "namespace" | "actions">,
): RepositoryAccess[] {
  const requested = scopes.flatMap((each) => each.split(" ")).slice(0, maxScopes);
  return requested.flatMap((scope) => {
    const [type, name = "", requestedActions = ""] = scope.split(":");
    const isOwn = name.length <= maxNameLength && name.startsWith(`${namespace}/`) && repositoryName.test(name);
    const granted = actions.filter((action) => requestedActions.split(",").includes(action));
    return type === "repository" && isOwn && granted.length > 0 ? [{ type, name, actions: granted }] : [];
  });
}

function unauthorized(message: string): Answer {
  const { status, headers, body } = refusal(401, "UNAUTHORIZED", message);
  return { status, headers: { ...headers, "www-authenticate": 'Basic realm="holdfast"' }, body };
}
