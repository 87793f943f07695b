import { HoldfastError } from "@holdfast/common/errors.ts";
import type { HttpRequest } from "@holdfast/https/request-handler.ts";
import { headerOf } from "./exchange.ts";

const none = new Uint8Array();

/** False when the headers declare that the request has no body. */
export function hasBody(request: HttpRequest): boolean {
  if ("stream" in request) return !request.stream.endAfterHeaders;
  const length = request.headers["content-length"];
  return (length !== undefined && length !== "0") || request.headers["transfer-encoding"] !== undefined;
}

/** Default for the time in which a request body must arrive. */
export const defaultBodyTimeoutMs = 30_000;

/** Destroys a request whose body does not arrive in time, before or after its response, such as one byte per second. */
export function limitBodyTime(request: HttpRequest, timeoutMs: number): void {
  if (!hasBody(request)) return;
  // In HTTP/2 a destroyed request can leave its stream open until the client ends it.
  const source = "stream" in request ? request.stream : request;
  const timer = setTimeout(() => source.destroy(new Error("the body did not arrive in time")), timeoutMs);
  const stop = () => clearTimeout(timer);
  source.once("end", stop);
  source.once("close", stop);
}

/** Size in bytes above which a body counts against the limit of concurrent large bodies. */
const largeBodyBytes = 1 << 20;

/** Maximum number of concurrent large bodies, because each costs memory and event loop time. */
const largeBodiesMax = 8;

/** Limits concurrent requests with large bodies in a gateway. */
export interface LargeBodyLimit {
  /** The permits of one request. `take` throws RATE_LIMITED at the limit; `release` frees all of them. */
  forRequest(): { take(): void; release(): void };
}

export function createLargeBodyLimit(): LargeBodyLimit {
  let taken = 0;
  return {
    forRequest() {
      let takenByRequest = 0;
      return {
        take() {
          if (taken >= largeBodiesMax)
            throw new HoldfastError("RATE_LIMITED", `${largeBodiesMax} requests with large bodies are in progress.`, {
              retryAfterS: 1,
            });
          taken += 1;
          takenByRequest += 1;
        },
        release() {
          taken -= takenByRequest;
          takenByRequest = 0;
        },
      };
    },
  };
}

/**
 * Reads the body. Calls `onLarge` once if it exceeds 1 MiB. Throws BODY_TOO_LARGE above the limit,
 * UNSUPPORTED_MEDIA_TYPE if it is not JSON, INVALID_REQUEST if it is cut off, and errors of `onLarge`.
 */
export async function readBody(request: HttpRequest, limit: number, onLarge = () => {}): Promise<Uint8Array> {
  const declared = Number(headerOf(request, "content-length") ?? 0);
  if (declared > limit) throw tooLarge(limit);
  const bytes = await collect(request, { declared, limit, onLarge });
  if (bytes.length === 0) return none;
  const type = (headerOf(request, "content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new HoldfastError(
      "UNSUPPORTED_MEDIA_TYPE",
      `The body has ${type === "" ? "no content type" : `the content type ${type}`}, not application/json.`,
    );
  }
  const encoding = headerOf(request, "content-encoding") ?? "identity";
  if (encoding !== "identity") {
    throw new HoldfastError(
      "UNSUPPORTED_MEDIA_TYPE",
      `The body has the content encoding ${encoding}; send it without one.`,
    );
  }
  return bytes;
}

interface Bounds {
  /** Content-Length; 0 without the header. */
  readonly declared: number;
  readonly limit: number;
  readonly onLarge: () => void;
}

function collect(request: HttpRequest, { declared, limit, onLarge }: Bounds): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    /** Buffer for a large body of declared length; a concatenation at the end would block the event loop. */
    let complete: Buffer | undefined;
    let size = 0;
    const finish = (act: () => void) => {
      request.off("data", onData);
      act();
    };
    const onData = (chunk: Buffer) => {
      const wasLarge = size > largeBodyBytes;
      size += chunk.length;
      try {
        if (size > limit) throw tooLarge(limit);
        if (size > largeBodyBytes && !wasLarge) {
          onLarge();
          if (declared >= size) complete = put(Buffer.allocUnsafeSlow(declared), chunks.splice(0), 0);
        }
        if (complete === undefined) chunks.push(chunk);
        else put(complete, [chunk], size - chunk.length);
      } catch (error) {
        finish(() => reject(error));
      }
    };
    request.on("data", onData);
    // A cancelled HTTP/2 stream emits "end", too.
    request.once("aborted", () => finish(() => reject(cutOff(undefined))));
    request.once("end", () =>
      finish(() => {
        if (complete === undefined) resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
        // The buffer was allocated without zeroing: bytes that were not written are old memory and must not be read.
        else if (size === declared) resolve(complete);
        else reject(cutOff(undefined));
      }),
    );
    request.once("error", (error: Error) => finish(() => reject(cutOff(error))));
    request.once("close", () => finish(() => reject(cutOff(undefined))));
  });
}

function put(target: Buffer, chunks: readonly Buffer[], from: number): Buffer {
  let at = from;
  for (const chunk of chunks) at += chunk.copy(target, at);
  return target;
}

function tooLarge(limit: number): HoldfastError {
  return new HoldfastError("BODY_TOO_LARGE", `The body is larger than the ${limit} bytes that this method accepts.`);
}

/** The error of a client that disconnected. Nobody reads it; it only ends the work. */
function cutOff(cause: unknown): HoldfastError {
  return new HoldfastError("INVALID_REQUEST", "The body was cut off.", { cause });
}
