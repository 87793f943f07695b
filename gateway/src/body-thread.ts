import { createWorkerThread } from "@holdfast/common/worker-thread.ts";
import { bodyOf, type ParsedBody } from "./input.ts";
import type { BodyShape } from "./json/body-shape.ts";
import type { JsonObject } from "./json/json-node.ts";
import type { BodyFault } from "./json/parse-json.ts";

export interface BodyRequest {
  readonly bytes: Uint8Array;
  readonly shape: BodyShape;
  /** True if the hash of the body is needed, for an Idempotency-Key. */
  readonly keyed: boolean;
}

export type ThreadBody = { readonly value: JsonObject; readonly hash?: string } | BodyFault;

/** Parses large bodies in a worker thread: on the event loop they would delay the renewal of leases. */
export interface BodyThread {
  /** Parses a body like `parseBody`, but only the members of the shape; the bytes are transferred to the thread. */
  parse(request: BodyRequest): Promise<ParsedBody>;
}

/** Sufficient for a text of 27 MiB with half a million values. */
const memoryMb = 1_024;

export function createBodyThread(): BodyThread {
  const thread = createWorkerThread<BodyRequest, ThreadBody>(new URL("./body-worker.ts", import.meta.url), {
    memoryMb,
  });
  return {
    async parse({ bytes, ...rest }) {
      const { buffer } = bytes;
      const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength;
      const read = await thread.request({ bytes, ...rest }, isOwn ? [buffer] : []);
      return { text: "", ...bodyOf(read) };
    },
  };
}
