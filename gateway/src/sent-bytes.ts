import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";

const sentKey = createContextKey<{ bytes: number }>({ bytes: 0 }, { description: "the size of a call's message" });

/** Bytes of a call's message that the client has sent, as they came. */
export function sentBytes({ values }: HandlerContext): number {
  return values.get(sentKey).bytes;
}

/** The same request, whose body is counted as it is read. */
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
