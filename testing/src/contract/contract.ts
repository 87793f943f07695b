import type { DescService } from "@bufbuild/protobuf";
import type { SdkCalls } from "./sdk-calls.ts";

/**
 * Facts about an API that tests of the whole platform compare with the code. The contract of `<r>-api.ts` is the
 * default export of `<r>.conformance.ts` beside it; `contracts.ts` finds it there. Tables of several contracts are
 * merged, and an entry in two of them is refused.
 */
export interface Contract {
  /** An authorization case for each RPC. */
  readonly authorization?: readonly AuthorizationCases[];
  /** Creates the objects that the cases name. */
  readonly existing?: (maker: ObjectMaker) => Promise<Partial<Existing>>;
  /** Creates objects that no case names, and whose names contain the marker. */
  readonly marked?: (maker: ObjectMaker) => Promise<unknown>;
  /** Each RPC as the SDK calls it, with every field. */
  readonly sdk?: readonly SdkCalls[];
  /** True if the SDK's types of requests equal the protos'; `sameInputs` does not compile otherwise. */
  readonly sdkInputs?: true;
  /** Repeated fields of responses without pages, and their bounds: `holdfast.v1.App.domains`. */
  readonly listBounds?: Readonly<Record<string, string>>;
  /** Stored kinds whose objects no quota counts, and the counted thing that limits their number. */
  readonly kindBounds?: Readonly<Record<string, string>>;
  /** Files of the contract's folder that reject or claim a name, and the scope in which that name is unique. */
  readonly nameScopes?: Readonly<Record<string, string>>;
  /**
   * Secrets that requests provide, and why none of them can follow a changed destination. `bound`:
   * `kernel/secrets/destined-secret.ts` encrypts it for its destination, and a change of the destination requires the
   * secret again.
   */
  readonly sentSecrets?: Readonly<Record<string, string>>;
  /** Fields of any shape in requests: their secrets are fields of kind `secret`, which are bound. */
  readonly shapelessFields?: Readonly<Record<string, string>>;
}

/** Objects of an organization that every contract may name in its requests. */
export interface BaseObjects {
  readonly serviceId: string;
  readonly operationId: string;
  readonly machineId: string;
  readonly controllerId: string;
  readonly organizationId: string;
}

/** Objects of an organization that other organizations must not access. A contract adds the ids of its objects. */
export interface Existing extends BaseObjects {}

/** Creates objects over REST as the owner of the organization. */
export interface ObjectMaker {
  /** Part of the names of all objects. */
  readonly marker: string;
  readonly existing: BaseObjects;
  /** Posts the body and returns the response; throws unless the call succeeds. */
  make<T = { readonly id: string }>(path: string, body?: object): Promise<T>;
  get<T>(path: string): Promise<T>;
}

/** Requests to one method by callers who may not call it. */
export interface AuthorizationCase {
  /** A request that would succeed for the owner, in the API's own JSON. */
  readonly request: (existing: Existing) => Record<string, unknown>;
  /**
   * Result for an owner of another organization: the object does not exist, or the caller's own object, or a missing
   * scope.
   */
  readonly outsider: "not found" | "own" | "no scope";
}

/** Cases by full name of the method. */
export type AuthorizationCases = Readonly<Record<string, AuthorizationCase>>;

/** Cases of a service's methods, by the names of its handlers. */
export function casesOf<S extends DescService>(
  service: S,
  cases: { readonly [K in keyof S["method"]]?: AuthorizationCase },
): AuthorizationCases {
  const entries = Object.entries<AuthorizationCase>(cases as Record<string, AuthorizationCase>);
  return Object.fromEntries(
    entries.map(([name, each]) => [`${service.typeName}.${service.method[name]?.name ?? name}`, each]),
  );
}

/** A request that names no object: each caller gets what belongs to their organization or user. */
export const callerScoped = (request: AuthorizationCase["request"]): AuthorizationCase => ({
  request,
  outsider: "own",
});
/** A request that names an object, which does not exist for other organizations. */
export const objectScoped = (request: AuthorizationCase["request"]): AuthorizationCase => ({
  request,
  outsider: "not found",
});
/** A request of operators: organizations lack the scope. */
export const platformScoped = (request: AuthorizationCase["request"]): AuthorizationCase => ({
  request,
  outsider: "no scope",
});

/** Cases that several contracts have. */
export const ofService = objectScoped(({ serviceId }) => ({ service_id: serviceId }));
export const ofOrganization = objectScoped(({ organizationId }) => ({ org_id: organizationId }));
export const ofPlatform = platformScoped(() => ({}));
export const ofCaller = callerScoped(() => ({}));
