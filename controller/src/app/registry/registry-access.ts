import type { Authenticator, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { equalHash } from "#access/equal-hash.ts";
import { covers } from "#access/scopes.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";

/** The rights of a caller in the registry of images, or the reason why it has none. */
export type RegistryAccess =
  | { readonly subject: string; readonly namespace: string; readonly actions: readonly string[] }
  | { readonly refusal: string };

/** Decides about an Authorization header from an address. */
export type FindRegistryAccess = (authorization: string, source: string) => Promise<RegistryAccess>;

export interface RegistryAccessDeps {
  readonly authenticator: Authenticator;
  readonly sealer: Pick<Sealer, "keyedHash">;
  /** Organization of an app that runs on machines; undefined if there is none with this id. */
  readonly organizationOfApp: (appId: string) => string | undefined;
}

/** User name of a registry's client that presents an API token as its password. */
const tokenUser = "token";
const machineUser = /^app\.([0-9a-f-]{36})$/;
const machinePurpose = "registry pull";
const scope = "apps:write";

/**
 * The credential by which the machines of an app pull its organization's images. It is not stored, and valid as long as
 * the app exists.
 */
export function machineCredential(appId: string, sealer: Pick<Sealer, "keyedHash">) {
  return { username: `app.${appId}`, password: sealer.keyedHash(machinePurpose, appId) };
}

/** Repositories of an organization begin with its id, which no other organization gets: names may be used twice. */
export function createRegistryAccess(deps: RegistryAccessDeps): FindRegistryAccess {
  const { authenticator, sealer, organizationOfApp } = deps;

  function accessOfMachine(appId: string, password: string): RegistryAccess {
    // The hash is compared for unknown ids too, so that timing does not reveal which ids exist.
    const matches = equalHash(machineCredential(appId, sealer).password, password);
    const namespace = organizationOfApp(appId);
    if (!matches || namespace === undefined) return { refusal: "the app does not exist" };
    return { subject: `app:${appId}`, namespace, actions: ["pull"] };
  }

  return async (authorization, source) => {
    const [user, password] = basicOf(authorization);
    const [, appId] = machineUser.exec(user) ?? [];
    if (appId !== undefined) return accessOfMachine(appId, password);
    const presented = user === tokenUser ? `Bearer ${password}` : authorization;
    let principal: Principal;
    try {
      principal = await authenticator.authenticate({ authorization: presented, organization: undefined, source });
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      return { refusal: error.message };
    }
    const { organizationId, scopes, resources, kind, name } = principal;
    if (organizationId === undefined)
      return { refusal: "the user is not a member of exactly one organization; use an API key of one" };
    if (resources !== undefined || !covers(scopes, scope))
      return { refusal: `the credential lacks the scope ${scope}` };
    return { subject: `${kind}:${name}`, namespace: organizationId, actions: ["pull", "push", "delete"] };
  };
}

/** User name and password of a Basic header; empty texts for another one. */
function basicOf(authorization: string): readonly [user: string, password: string] {
  const [scheme = "", value = ""] = authorization.split(" ");
  const decoded = scheme.toLowerCase() === "basic" ? Buffer.from(value, "base64").toString("utf8") : "";
  const colon = decoded.indexOf(":");
  return colon < 0 ? ["", ""] : [decoded.slice(0, colon), decoded.slice(colon + 1)];
}
