import { type Dispatcher, request } from "undici";

/** What Incus answered when it did not do what was asked; the message is Incus's own. */
export class IncusError extends Error {
  override readonly name = "IncusError";
  /** As in HTTP: 404 not found, 409 there already, 400 for an operation that failed. */
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

/** One request to Incus's REST API. Throws IncusError for an answer that is an error, anything else when there is no answer. */
export type IncusTransport = <T>(
  method: Method,
  path: string,
  signal: AbortSignal,
  body?: object | AsyncIterable<Uint8Array>,
) => Promise<IncusAnswer<T>>;

/** An Incus daemon and the project in it that is ours; everything else of it is left alone. */
export interface IncusEndpoint {
  /** The daemon's Unix socket. */
  readonly socket: string;
  readonly project: string;
}

/** Over a Unix socket the host of the URL is only a word. */
export const incusOrigin = "incus.invalid";

/** URL of a path in the project. */
export function incusUrl(path: string, project: string): URL {
  const url = new URL(path, `http://${incusOrigin}`);
  url.searchParams.set("project", project);
  return url;
}

export function createIncusTransport(project: string, dispatcher: Dispatcher): IncusTransport {
  return async <T>(method: Method, path: string, signal: AbortSignal, body?: object | AsyncIterable<Uint8Array>) => {
    const content = body === undefined ? null : isStream(body) ? body : JSON.stringify(body);
    const type = isStream(body) ? "application/octet-stream" : "application/json";
    const response = await request(incusUrl(path, project), {
      dispatcher,
      method,
      signal,
      headers: { "content-type": type },
      body: content as Dispatcher.DispatchOptions["body"] & string,
    });
    const answer = (await response.body.json()) as IncusAnswer<T>;
    if (answer.type === "error") throw new IncusError(answer.error_code, answer.error);
    return answer;
  };
}

function isStream(body: object | undefined): body is AsyncIterable<Uint8Array> {
  return body !== undefined && Symbol.asyncIterator in body;
}
