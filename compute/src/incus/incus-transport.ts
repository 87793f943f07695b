import { type Dispatcher, request } from "undici";
import { HostUnreachable } from "../compute-failure.ts";
import { localHostId } from "../router/hosts-provider.ts";
import { otherCertificate } from "./incus-address.ts";

/** What Incus answered when it did not do what was asked; the message is Incus's own. */
export class IncusError extends Error {
  override readonly name = "IncusError";
  /** As in HTTP: 404 not found, 409 there already, 400 for an operation that failed, 410 for one that Incus has forgotten. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** An operation says by words alone that what it was to make exists. */
export function isThereAlready(error: unknown): boolean {
  return (
    error instanceof IncusError && (error.status === 409 || /already exists|UNIQUE constraint/i.test(error.message))
  );
}

/** Resolves when it was made, and when it is there already. */
export async function unlessThere(made: Promise<unknown>): Promise<void> {
  try {
    await made;
  } catch (error) {
    if (!isThereAlready(error)) throw error;
  }
}

/** Incus was started anew while it worked: what came of it is for whoever looks again, and no failure of what was asked. */
export function isForgotten(error: unknown): boolean {
  return error instanceof IncusError && error.status === 410;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The frame that every answer of Incus comes in. */
export interface IncusAnswer<T> {
  readonly type: "sync" | "async" | "error";
  /** Path of the operation that was begun. */
  readonly operation: string;
  readonly error_code: number;
  readonly error: string;
  readonly metadata: T;
}

/**
 * One request to Incus's REST API. Throws IncusError for an answer that is an error, HostUnreachable when there is no answer: then
 * what was asked may have been done.
 */
export type IncusTransport = <T>(
  method: Method,
  path: string,
  signal: AbortSignal,
  body?: object | AsyncIterable<Uint8Array>,
) => Promise<IncusAnswer<T>>;

/** An Incus daemon and the project in it that is ours; everything else of it is left alone. */
export interface IncusEndpoint {
  /** Of the daemon's URLs. */
  readonly origin: string;
  readonly project: string;
  readonly dispatcher: Dispatcher;
}

/** URL of a path in the project, if the path itself does not name another. */
export function incusUrl(path: string, { origin, project }: IncusEndpoint): URL {
  const url = new URL(path, origin);
  if (!url.searchParams.has("project")) url.searchParams.set("project", project);
  return url;
}

export function createIncusTransport(endpoint: IncusEndpoint): IncusTransport {
  return async <T>(method: Method, path: string, signal: AbortSignal, body?: object | AsyncIterable<Uint8Array>) => {
    const content = body === undefined ? null : isStream(body) ? body : JSON.stringify(body);
    const type = isStream(body) ? "application/octet-stream" : "application/json";
    const answer = await answered(async () => {
      const response = await request(incusUrl(path, endpoint), {
        dispatcher: endpoint.dispatcher,
        method,
        signal,
        headers: { "content-type": type },
        body: content as Dispatcher.DispatchOptions["body"] & string,
      });
      return (await response.body.json()) as IncusAnswer<T>;
    });
    if (answer.type === "error") throw new IncusError(answer.error_code, answer.error);
    return answer;
  };
}

/** Codes of errors that leave open whether the daemon is there at all, and what it did. */
const silences = new Set([
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

/** Whoever answers is not the daemon that is known, or cannot show it any more: nothing was asked of it. */
export class NotTheDaemon extends HostUnreachable {}

/** What OpenSSL says of a certificate that is neither the known one nor signed by it. */
const strangers = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  otherCertificate,
]);

async function answered<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (strangers.has(code)) throw new NotTheDaemon(localHostId, `its Incus shows another certificate. ${ifRenewed}`);
    if (code === "CERT_HAS_EXPIRED")
      throw new NotTheDaemon(localHostId, `the certificate of its Incus has expired. ${ifRenewed}`);
    if (!silences.has(code)) throw error;
    throw unreachable(code);
  }
}

const ifRenewed =
  "Where it was renewed, copy its server.crt to HOLDFAST_INCUS_SERVER_CERT and start the controller again.";

/** The daemon of this host says nothing. */
export function unreachable(reason: string): HostUnreachable {
  return new HostUnreachable(localHostId, `its Incus cannot be reached (${reason}).`);
}

function isStream(body: object | undefined): body is AsyncIterable<Uint8Array> {
  return body !== undefined && Symbol.asyncIterator in body;
}
