import type { DescMessage, DescMethod, DescService, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { FieldFault, HoldfastError } from "./errors.ts";

/** Who calls. Made by the authenticator only, never from a header. */
export interface Principal {
  readonly kind: "user" | "api_key" | "token";
  /** Id of the user, key or token. */
  readonly id: string;
  /** How audit names it. */
  readonly name: string;
  /** Undefined for an operator without an organization. */
  readonly organizationId: string | undefined;
  readonly scopes: ReadonlySet<string>;
  /** When the credential ends; null or absent for never. */
  readonly expiresAt?: number | null;
  /** All that a limited token may touch; absent for everything of the organization. */
  readonly resources?: readonly ResourceName[];
  /** A person of several organizations who named none: no scope of any of them is there. */
  readonly mustChoose?: boolean;
}

/** One object by its kind. */
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
  readonly signal: AbortSignal;
  readonly idempotency: Idempotency | undefined;
  /** Value of If-Match: the generation that the caller saw. */
  readonly ifMatch: string | undefined;
  /** The caller has seen this revision; the answer must be at least as new. */
  readonly minRevision: bigint | undefined;
  /** Headers of the answer, such as ETag and Holdfast-Revision. */
  setHeader(name: string, value: string): void;
}

/** An Idempotency-Key with all that it is bound to. */
export interface Idempotency {
  readonly key: string;
  /** Organization, credential, method and path. Of a caller without a credential: what its body hashes to. */
  readonly scope: string;
  /** Whose room the answer takes: kind and id of the credential, or "anonymous". */
  readonly principal: string;
  readonly organizationId: string | undefined;
  /** SHA-256 of the parsed body, and of the query where there is one; hex. */
  readonly bodyHash: string;
  /** The answer as it will be sent, to be kept in the transaction that made it true. */
  readonly encode: (answer: AnyMessage) => KeptAnswer;
}

/** An answer as sent, replayed to the same Idempotency-Key. */
export interface KeptAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Holds a secret, so it is stored sealed. */
  readonly secret: boolean;
}

/** Implementation of one method; server streams answer with an async iterable. */
export type Handler<M extends DescMethod> = M["methodKind"] extends "server_streaming"
  ? (input: MessageShape<M["input"]>, call: Call) => AsyncIterable<MessageInitShape<M["output"]>>
  : (input: MessageShape<M["input"]>, call: Call) => Promise<MessageInitShape<M["output"]>>;

/** Implementation of one service: every method, by its local name. */
export type Handlers<S extends DescService> = { readonly [N in keyof S["method"]]: Handler<S["method"][N]> };

/**
 * What is wrong with the values of an input that the protos cannot say, such as a plan that is not in the catalog. It is
 * asked before the handler, and told in one answer with the faults of shape; what those name already is not told twice.
 */
export type Check<M extends DescMethod> = (input: MessageShape<M["input"]>, call: Call) => Checked;

/** A promise for what takes longer than the event loop may stand still. */
export type Checked = readonly FieldFault[] | Promise<readonly FieldFault[]>;

/** Checks of some of a service's methods, by their local names. */
export type Checks<S extends DescService> = { readonly [N in keyof S["method"]]?: Check<S["method"][N]> };

/** A service with its implementation, its types forgotten; made by `serve`. */
export interface ServedService {
  readonly service: DescService;
  readonly handlers: Readonly<Record<string, (input: never, call: Call) => unknown>>;
  readonly checks: Readonly<Record<string, (input: never, call: Call) => Checked>>;
}

/** A service with all of its methods; it does not compile while one is missing. */
export function serve<S extends DescService>(service: S, handlers: Handlers<S>, checks: Checks<S> = {}): ServedService {
  return {
    service,
    handlers: handlers as ServedService["handlers"],
    checks: checks as ServedService["checks"],
  };
}

/** A change that was refused before it came to its method: for who asks, or for what is asked. */
export interface RefusedCall {
  readonly method: DescMethod;
  /** Undefined when the credential was not good. */
  readonly principal: Principal | undefined;
  readonly source: string;
  readonly requestId: string;
  readonly error: HoldfastError;
  /** As far as it could be read. */
  readonly input?: object;
}

/** Turns an Authorization header into a principal; throws UNAUTHENTICATED. */
export interface Authenticator {
  authenticate(credentials: PresentedCredentials): Promise<Principal>;
}

export interface PresentedCredentials {
  readonly authorization: string | undefined;
  /** Header Holdfast-Organization. */
  readonly organization: string | undefined;
  readonly source: string;
}

/** True when a scope set has the scope, by name or by `area:*`. */
export function hasScope(scopes: ReadonlySet<string>, scope: string): boolean {
  return scopes.has(scope) || scopes.has(`${scope.split(":")[0]}:*`);
}

export type AnyMessage = MessageShape<DescMessage>;
