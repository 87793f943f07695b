import type { DescMessage, DescMethod, DescService, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { FieldFault, HoldfastError } from "./errors.ts";

/** The authenticated caller. Only the authenticator creates it, never from a header alone. */
export interface Principal {
  readonly kind: "user" | "api_key" | "token";
  /** Id of the user, key or token. */
  readonly id: string;
  /** Name in audit entries. */
  readonly name: string;
  /** Undefined for an operator without an organization. */
  readonly organizationId: string | undefined;
  readonly scopes: ReadonlySet<string>;
  /** Expiry of the credential in milliseconds since 1970; null or absent if it never expires. */
  readonly expiresAt?: number | null;
  /** Id of the session whose cookie the request presented; absent for other credentials. */
  readonly sessionId?: string;
  /** The only resources that a limited token may access; absent if it may access all of the organization. */
  readonly resources?: readonly ResourceName[];
  /**
   * True for a member of several organizations whose request named none: the principal then has no scope of any of
   * them.
   */
  readonly needsOrganization?: boolean;
  /** State of a user at authentication, to which the tokens that the user creates are bound; absent for others. */
  readonly tokenBinding?: TokenBinding;
  /**
   * The stored objects that the caller's rights rest on, at their revisions now: a change commits only while they are
   * unchanged. Throws UNAUTHENTICATED once the credential ended or lost a right since authentication. The authenticator
   * sets it; absent for callers of tests.
   */
  readonly preconditions?: () => readonly Precondition[];
}

/** State of a user at authentication. A change of either value invalidates the user's tokens. */
export interface TokenBinding {
  /** Incremented by each reset or change of the password. */
  readonly tokenGeneration: number;
  /** Creation time of the membership in the organization that the caller acts in. */
  readonly memberSince?: number;
}

/** A key of the store with the revision at which it was read. */
export interface Precondition {
  readonly key: string;
  readonly modRevision: bigint;
}

/** Reference to one object. */
export interface ResourceName {
  readonly kind: string;
  readonly id: string;
}

/** One call of the API, over REST or gRPC. */
export interface Call {
  readonly requestId: string;
  /** Undefined only for methods of scope "public". */
  readonly principal: Principal | undefined;
  /** Address the request came from. */
  readonly source: string;
  /** Header User-Agent; absent over gRPC. */
  readonly userAgent?: string | undefined;
  readonly signal: AbortSignal;
  readonly idempotency: Idempotency | undefined;
  /** Value of If-Match: the generation that the caller saw. */
  readonly ifMatch: string | undefined;
  /** Revision that the caller has seen; the response must be at least as new. */
  readonly minRevision: bigint | undefined;
  /** Kind of owner of machines that the path names, such as `board`; absent if the owner may be of any kind. */
  readonly ownerKind?: string | undefined;
  /** Sets a header of the response, such as ETag or Holdfast-Revision. */
  setHeader(name: string, value: string): void;
}

/** An Idempotency-Key with the request that it is bound to. */
export interface Idempotency {
  readonly key: string;
  /** Organization, credential, method and path; without a credential, the hash of the body. */
  readonly scope: string;
  /** Owner of the stored response's quota: kind and id of the credential, or "anonymous". */
  readonly principal: string;
  readonly organizationId: string | undefined;
  /** SHA-256 of the parsed body, and of the query where there is one; hex. */
  readonly bodyHash: string;
  /** Encodes the response to store it in the transaction of the change. */
  readonly encode: (response: AnyMessage) => StoredResponse;
}

/** A response as it was sent. It is sent again for the same Idempotency-Key. */
export interface StoredResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** True if the body contains a secret; it is then stored sealed. */
  readonly secret: boolean;
}

/** Implementation of one method. A server stream is an async iterable. */
export type Handler<M extends DescMethod> = M["methodKind"] extends "server_streaming"
  ? (input: MessageShape<M["input"]>, call: Call) => AsyncIterable<MessageInitShape<M["output"]>>
  : (input: MessageShape<M["input"]>, call: Call) => Promise<MessageInitShape<M["output"]>>;

/** Implementation of one service: each method by its local name. */
export type Handlers<S extends DescService> = { readonly [N in keyof S["method"]]: Handler<S["method"][N]> };

/**
 * Validates the parts of an input that the protos cannot express, such as a plan that is not in the catalog. It runs
 * before the handler. Its faults are returned together with the shape faults, without repeating fields that already
 * have one.
 */
export type Check<M extends DescMethod> = (input: MessageShape<M["input"]>, call: Call) => Checked;

/** A promise for a check that would block the event loop too long. */
export type Checked = readonly FieldFault[] | Promise<readonly FieldFault[]>;

/** Checks of some of a service's methods, by their local names. */
export type Checks<S extends DescService> = { readonly [N in keyof S["method"]]?: Check<S["method"][N]> };

/** A service with its implementation, without their types; `serve` creates it. */
export interface ServedService {
  readonly service: DescService;
  readonly handlers: Readonly<Record<string, (input: never, call: Call) => unknown>>;
  readonly checks: Readonly<Record<string, (input: never, call: Call) => Checked>>;
}

/** Registers a service with all of its methods. A missing method is a compile error. */
export function serve<S extends DescService>(service: S, handlers: Handlers<S>, checks: Checks<S> = {}): ServedService {
  return {
    service,
    handlers: handlers as ServedService["handlers"],
    checks: checks as ServedService["checks"],
  };
}

/** A change that was refused before its method ran, because of the caller or of the input. */
export interface RefusedCall {
  readonly method: DescMethod;
  /** Undefined if the credential was invalid. */
  readonly principal: Principal | undefined;
  readonly source: string;
  readonly requestId: string;
  readonly error: HoldfastError;
  /** The input, if it could be decoded. */
  readonly input?: object;
}

/** Turns an Authorization header or a session into a principal; throws UNAUTHENTICATED or CSRF_TOKEN_INVALID. */
export interface Authenticator {
  authenticate(credentials: PresentedCredentials): Promise<Principal>;
}

export interface PresentedCredentials {
  readonly authorization: string | undefined;
  /** Header Holdfast-Organization. */
  readonly organization: string | undefined;
  /** The session of a request by a page of this origin; absent beside an Authorization header. */
  readonly session?: PresentedSession | undefined;
  readonly source: string;
}

/** A browser's session, as a request presents it. */
export interface PresentedSession {
  /** Value of the cookie. */
  readonly secret: string;
  /** Header Holdfast-Csrf. */
  readonly csrfToken: string | undefined;
  /** True for GET and HEAD, which need no CSRF token. */
  readonly isRead: boolean;
}

/** True if the scopes contain this one, by name or as `area:*`. */
export function hasScope(scopes: ReadonlySet<string>, scope: string): boolean {
  return scopes.has(scope) || scopes.has(`${scope.split(":")[0]}:*`);
}

export type AnyMessage = MessageShape<DescMessage>;
