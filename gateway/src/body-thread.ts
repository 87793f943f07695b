import { createWorkerThread } from "@holdfast/common/worker-thread.ts";
import { bodyOf, type ParsedBody } from "./input.ts";
import type { BodyShape } from "./json/body-shape.ts";
import type { JsonObject } from "./json/json-node.ts";
import type { BodyFault } from "./json/read-json.ts";

export interface BodyQuestion {
  readonly bytes: Uint8Array;
  readonly shape: BodyShape;
  /** Whether the body's hash is asked for too. */
  readonly keyed: boolean;
}

export type ThreadBody = { readonly value: JsonObject; readonly hash?: string } | BodyFault;

/** Reads bodies that would hold the event loop for longer than a lease can wait. */
export interface BodyThread {
  /** As `parseBody`, for bodies of this shape; the bytes are transferred to the thread. */
  parse(question: BodyQuestion): Promise<ParsedBody>;
}

/** Text of 27 MiB, and half a million values of it. */
const memoryMb = 1_024;

export function createBodyThread(): BodyThread {
  const thread = createWorkerThread<BodyQuestion, ThreadBody>(new URL("./body-worker.ts", import.meta.url), {
    memoryMb,
  });
  return {
    async parse({ bytes, ...rest }) {
      const { buffer } = bytes;
      const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength;
      const read = await thread.ask({ bytes, ...rest }, isOwn ? [buffer] : []);
      return { text: "", ...bodyOf(read) };
    },
  };
}
