import { type Dispatcher, request } from "undici";
import { HostUnreachable } from "../compute-failure.ts";
import { localHostId } from "../router/hosts-provider.ts";
import { otherCertificate } from "./incus-address.ts";

/** An error response of Incus, with its message. */
export class IncusError extends Error {
  override readonly name = "IncusError";
  /** HTTP status: 404 not found, 409 exists, 400 for a failed operation, 410 for an operation that Incus lost. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** True if a resource exists already, which an operation reports only by its message. */
export function isAlreadyExists(error: unknown): boolean {
  return (
    error instanceof IncusError && (error.status === 409 || /already exists|UNIQUE constraint/i.test(error.message))
  );
}

/** Resolves when the resource was created or exists already. */
export async function ignoreExisting(creation: Promise<unknown>): Promise<void> {
  try {
    await creation;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/**
 * True if Incus restarted during the operation. The result is then unknown and must be observed; the request may have
 * succeeded.
 */
export function isOperationLost(error: unknown): boolean {
  return error instanceof IncusError && error.status === 410;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Envelope of every response of Incus. */
export interface IncusResponse<T> {
  readonly type: "sync" | "async" | "error";
  /** Path of the started operation. */
  readonly operation: string;
  readonly error_code: number;
  readonly error: string;
  readonly metadata: T;
}

/**
 * Sends one request to Incus's REST API. Throws IncusError for an error response, and HostUnreachable without a
 * response: the request may have taken effect.
 */
export type IncusTransport = <T>(
  method: Method,
  path: string,
  signal: AbortSignal,
  body?: object | AsyncIterable<Uint8Array>,
) => Promise<IncusResponse<T>>;

/** An Incus daemon, and the installation's project in it; nothing else of the daemon is used. */
export interface IncusEndpoint {
  /** Origin of the daemon's URLs. */
  readonly origin: string;
  readonly project: string;
  readonly dispatcher: Dispatcher;
}

/** URL of a path in the project, unless the path names another one. */
export function incusUrl(path: string, { origin, project }: IncusEndpoint): URL {
  const url = new URL(path, origin);
  if (!url.searchParams.has("project")) url.searchParams.set("project", project);
  return url;
}

export function createIncusTransport(endpoint: IncusEndpoint): IncusTransport {
  return async <T>(method: Method, path: string, signal: AbortSignal, body?: object | AsyncIterable<Uint8Array>) => {
    const content = body === undefined ? null : isStream(body) ? body : JSON.stringify(body);
    const type = isStream(body) ? "application/octet-stream" : "application/json";
    const envelope = await withTypedErrors(async () => {
      const response = await request(incusUrl(path, endpoint), {
        dispatcher: endpoint.dispatcher,
        method,
        signal,
        headers: { "content-type": type },
        body: content as Dispatcher.DispatchOptions["body"] & string,
      });
      return (await response.body.json()) as IncusResponse<T>;
    });
    if (envelope.type === "error") throw new IncusError(envelope.error_code, envelope.error);
    return envelope;
  };
}

/** Error codes that leave open whether the daemon runs, and what it did. */
const unreachableCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENOENT",
  "EPIPE",
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_SOCKET",
]);

/** The peer is not the pinned daemon, or cannot prove it any more. No request was sent. */
export class DaemonIdentityMismatch extends HostUnreachable {}

/** OpenSSL's error codes for a certificate that is neither the pinned one nor signed by it. */
const foreignCertificateCodes = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  otherCertificate,
]);

async function withTypedErrors<T>(send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (foreignCertificateCodes.has(code))
      throw new DaemonIdentityMismatch(localHostId, `its Incus presents another certificate. ${ifRenewed}`);
    if (code === "CERT_HAS_EXPIRED")
      throw new DaemonIdentityMismatch(localHostId, `the certificate of its Incus has expired. ${ifRenewed}`);
    if (!unreachableCodes.has(code)) throw error;
    throw unreachable(code);
  }
}

const ifRenewed =
  "If it was renewed, copy its server.crt to HOLDFAST_INCUS_SERVER_CERT and start the controller again.";

/** The daemon of this host does not respond. */
export function unreachable(reason: string): HostUnreachable {
  return new HostUnreachable(localHostId, `its Incus cannot be reached (${reason}).`);
}

function isStream(body: object | undefined): body is AsyncIterable<Uint8Array> {
  return body !== undefined && Symbol.asyncIterator in body;
}
