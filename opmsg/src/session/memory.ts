import {
  type Capacity,
  type CapacityRequest,
  createCapacityQueue,
} from "@holdfast/common/concurrency/capacity-queue.ts";
import type { Access } from "../commands.ts";
import { messageBytesMax } from "../protocol/message.ts";

/** Memory that the machine needs for a byte of a message, with the copies of PostgreSQL, FerretDB and this process. */
const copies = { request: 8, reply: 6, sentReply: 2 } as const;
/** Requests, and replies of an expected size, up to this one do not count, and so wait for no large ones. */
export const smallBytes = 64 << 10;
/** Max size of a batch of documents in a reply. */
export const replyBytesMax = 17 << 20;

export interface MemoryOptions {
  /** Memory of the machine for large requests in progress, at least that of one request. */
  readonly requestMemoryBytes: number;
  /** Memory of the machine for replies in progress, at least that of one reply for each process of the engine. */
  readonly replyMemoryBytes: number;
}

/** The machine's memory for messages in progress, which requests and replies of all connections share. */
export interface Memory {
  /** Waits for the memory of a request of this size. */
  request(size: number, signal: AbortSignal): Promise<Capacity>;
  /** The memory of a reply of this size, if it is free. One process leaves a reply of maximum size to the other. */
  tryReply(size: number, access: Access): ReplyMemory | undefined;
  /** Waits for the memory of a reply. */
  reply(size: number, access: Access, signal: AbortSignal): Promise<ReplyMemory>;
}

export interface ReplyMemory extends Pick<Capacity, "release"> {
  /** Releases what PostgreSQL had: it has ended, and this size is on its way to the client. */
  sending(size: number): void;
}

/** A request holds its memory while it waits for that of its reply, never the other way round. */
export function createMemory(options: MemoryOptions): Memory {
  const queue = createCapacityQueue();
  const largestReply = replyBytesMax * copies.reply;
  const requestsMax = Math.max(options.requestMemoryBytes, messageBytesMax * copies.request);
  const repliesMax = Math.max(options.replyMemoryBytes, 2 * largestReply);
  return {
    request: (size, signal) =>
      queue.acquire({ amount: size * copies.request, limits: [{ key: "requests", max: requestsMax }] }, signal),
    tryReply(size, access) {
      const capacity = queue.tryAcquire(replyRequest(size, access));
      return capacity && replyMemory(capacity);
    },
    reply: async (size, access, signal) => replyMemory(await queue.acquire(replyRequest(size, access), signal)),
  };

  function replyRequest(size: number, access: Access): CapacityRequest {
    return {
      amount: Math.min(size, replyBytesMax) * copies.reply,
      limits: [
        { key: "replies", max: repliesMax },
        { key: access, max: repliesMax - largestReply },
      ],
    };
  }
}

function replyMemory(capacity: Capacity): ReplyMemory {
  return {
    sending: (size) => capacity.shrink(size * copies.sentReply),
    release: () => capacity.release(),
  };
}
