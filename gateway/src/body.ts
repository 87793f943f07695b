import { HoldfastError } from "@holdfast/common/errors.ts";
import { type HttpRequest, headerOf } from "./exchange.ts";

/** How long a client may take for its body. */
const bodyTimeoutMs = 30_000;

const none = new Uint8Array();

/** False when the request says that it has none. */
export function hasBody(request: HttpRequest): boolean {
  if ("stream" in request) return !request.stream.endAfterHeaders;
  const length = request.headers["content-length"];
  return (length !== undefined && length !== "0") || request.headers["transfer-encoding"] !== undefined;
}

/** Reads the body; throws BODY_TOO_LARGE past the limit, UNSUPPORTED_MEDIA_TYPE for one that is not JSON. */
export async function readBody(request: HttpRequest, limit: number): Promise<Uint8Array> {
  if (Number(headerOf(request, "content-length") ?? 0) > limit) throw tooLarge(limit);
  const bytes = await collect(request, limit);
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

function collect(request: HttpRequest, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const timer = setTimeout(() => request.destroy(new Error("the body took too long")), bodyTimeoutMs);
    const finish = (act: () => void) => {
      clearTimeout(timer);
      request.off("data", onData);
      act();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limit) chunks.push(chunk);
      else finish(() => reject(tooLarge(limit)));
    };
    request.on("data", onData);
    request.once("end", () =>
      finish(() => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))),
    );
    request.once("error", (error: Error) => finish(() => reject(cutShort(error))));
    request.once("close", () => finish(() => reject(cutShort(undefined))));
  });
}

function tooLarge(limit: number): HoldfastError {
  return new HoldfastError("BODY_TOO_LARGE", `The body is larger than the ${limit} bytes that this method takes.`);
}

/** Nobody is there to read it; it only ends the work. */
function cutShort(cause: unknown): HoldfastError {
  return new HoldfastError("INVALID_REQUEST", "The body ended before it was whole.", { cause });
}
