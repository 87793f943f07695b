import { HoldfastError } from "@holdfast/common/errors.ts";
import { headerOf } from "./exchange.ts";
import type { HttpRequest } from "@holdfast/https/request-handler.ts";

const none = new Uint8Array();

/** False when the request says that it has none. */
export function hasBody(request: HttpRequest): boolean {
  if ("stream" in request) return !request.stream.endAfterHeaders;
  const length = request.headers["content-length"];
  return (length !== undefined && length !== "0") || request.headers["transfer-encoding"] !== undefined;
}

/** A body over this size is large: few of them are held at a time. */
const largeBodyBytes = 1 << 20;

/**
 * Reads the body; throws BODY_TOO_LARGE past the limit, UNSUPPORTED_MEDIA_TYPE when it is not JSON, and errors of
 * `onLarge`, which is called once for a body over `largeBodyBytes`.
 */
export async function readBody(request: HttpRequest, limit: number, onLarge = () => {}): Promise<Uint8Array> {
  const told = Number(headerOf(request, "content-length") ?? 0);
  if (told > limit) throw tooLarge(limit);
  const bytes = await collect(request, { told, limit, onLarge });
  if (bytes.length === 0) return none;
  const type = (headerOf(request, "content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new HoldfastError(
      "UNSUPPORTED_MEDIA_TYPE",
      `The body is ${type === "" ? "of no type" : type}, not application/json.`,
    );
  }
  const encoding = headerOf(request, "content-encoding") ?? "identity";
  if (encoding !== "identity") {
    throw new HoldfastError(
      "UNSUPPORTED_MEDIA_TYPE",
      `The body has the content encoding ${encoding}; send it as it is.`,
    );
  }
  return bytes;
}

interface Bounds {
  /** The length that the request declares. */
  readonly told: number;
  readonly limit: number;
  readonly onLarge: () => void;
}

function collect(request: HttpRequest, { told, limit, onLarge }: Bounds): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    /** Of a large body: copied all at once when it ends, it would hold the event loop. */
    let whole: Buffer | undefined;
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
          if (told >= size) whole = put(Buffer.allocUnsafeSlow(told), chunks.splice(0), 0);
        }
        if (whole === undefined) chunks.push(chunk);
        else put(whole, [chunk], size - chunk.length);
      } catch (error) {
        finish(() => reject(error));
      }
    };
    request.on("data", onData);
    request.once("end", () =>
      finish(() => {
        if (whole === undefined) resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
        // What was never written to holds what was there before.
        else if (size === told) resolve(whole);
        else reject(cutShort(undefined));
      }),
    );
    request.once("error", (error: Error) => finish(() => reject(cutShort(error))));
    request.once("close", () => finish(() => reject(cutShort(undefined))));
  });
}

function put(whole: Buffer, chunks: readonly Buffer[], from: number): Buffer {
  let at = from;
  for (const chunk of chunks) at += chunk.copy(whole, at);
  return whole;
}

function tooLarge(limit: number): HoldfastError {
  return new HoldfastError("BODY_TOO_LARGE", `The body is larger than the ${limit} bytes that this method takes.`);
}

/** The client is gone and reads no answer; the error only ends the work. */
function cutShort(cause: unknown): HoldfastError {
  return new HoldfastError("INVALID_REQUEST", "The body ended before it was whole.", { cause });
}
