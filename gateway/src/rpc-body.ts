import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import {
  createAsyncIterable,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";

const sentKey = createContextKey<{ bytes: number }>({ bytes: 0 }, { description: "the size of a call's message" });

/** Size of the received request message in bytes, before decompression. */
export function sentBytes({ values }: HandlerContext): number {
  return values.get(sentKey).bytes;
}

/** The request with a body that counts its bytes while it is read. */
export function countingBody(request: UniversalServerRequest): UniversalServerRequest {
  const sent = { bytes: 0 };
  request.contextValues?.set(sentKey, sent);
  return { ...request, body: counted(request.body as AsyncIterable<Uint8Array>, sent) };
}

async function* counted(body: AsyncIterable<Uint8Array>, sent: { bytes: number }): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    sent.bytes += chunk.length;
    yield chunk;
  }
}

/** Size in bytes above which error responses are shortened. */
const errorBytesMax = 16 * 1024;
const messageChars = 256;
const unreadableText = JSON.stringify({ code: "unknown", message: "the request could not be read" });

/**
 * Shortens errors that the Connect library creates for requests that it cannot decode, because their message repeats
 * the input. A shortened error has the code and the first 256 characters of the message.
 */
export async function boundedResponse(response: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { status, body } = response;
  const header = new Headers(response.header);
  const length = Number(header.get("content-length") ?? 0);
  if (status < 400 || body === undefined || length <= errorBytesMax) return response;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const isPlain = header.get("content-encoding") === null;
  const bounded = Buffer.from(isPlain ? shortened(Buffer.concat(chunks)) : unreadableText);
  header.delete("content-encoding");
  header.set("content-length", String(bounded.length));
  return { ...response, header, body: createAsyncIterable([bounded]) };
}

function shortened(body: Buffer): string {
  const { code, message }: { code?: unknown; message?: unknown } = JSON.parse(body.toString("utf8"));
  if (typeof code !== "string" || typeof message !== "string") return unreadableText;
  return JSON.stringify({ code, message: `${message.slice(0, messageChars).toWellFormed()}…` });
}
