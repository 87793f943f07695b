import { isAscii, isUtf8 } from "node:buffer";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import type { HttpRequest } from "@holdfast/https/request-handler.ts";

/** Memory budget of request bodies, shared among organizations. */
export interface BodyBudget {
  /** Reserves bytes; false if the budget is exhausted. */
  reserve(organizationId: string, bytes: number): boolean;
  release(organizationId: string, bytes: number): void;
}

export const maxBodyBytes = 10 << 20;
const byteOrderMark = "\ufeff";
const maxTotalBytes = 256 << 20;
const maxOrganizationBytes = maxTotalBytes / 4;

export function createBodyBudget(): BodyBudget {
  const reserved = createKeyedCounter();
  const limitsOf = (organizationId: string) => [
    { key: "", max: maxTotalBytes },
    { key: organizationId, max: maxOrganizationBytes },
  ];
  return {
    reserve: (organizationId, bytes) => reserved.take(limitsOf(organizationId), bytes).exceeded === undefined,
    release(organizationId, bytes) {
      for (const { key } of limitsOf(organizationId)) reserved.add(key, -bytes);
    },
  };
}

export type ReadBody =
  | { readonly kind: "body"; readonly text: string; readonly bytes: number }
  | { readonly kind: "too large" | "over budget" | "closed" | "not text" };

/**
 * Reads the complete body, and reserves its bytes until the caller releases them. The rest of a refused body is read
 * and discarded by the server.
 */
export async function readBody(request: HttpRequest, organizationId: string, budget: BodyBudget): Promise<ReadBody> {
  if (Number(request.headers["content-length"] ?? 0) > maxBodyBytes) return { kind: "too large" };
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Without an iterator: leaving one early would close the connection before the response.
  const kind = await new Promise<"body" | "too large" | "over budget" | "closed">((resolve) => {
    const onData = (chunk: Buffer) => {
      const isLarge = bytes + chunk.length > maxBodyBytes;
      if (isLarge || !budget.reserve(organizationId, chunk.length)) {
        request.off("data", onData);
        return resolve(isLarge ? "too large" : "over budget");
      }
      bytes += chunk.length;
      chunks.push(chunk);
    };
    request.on("data", onData);
    // A cancelled HTTP/2 stream emits "end", too.
    request.once("aborted", () => resolve("closed"));
    request.once("end", () => resolve("body"));
    request.once("error", () => resolve("closed"));
    request.once("close", () => resolve(request.complete ? "body" : "closed"));
  });
  const text = kind === "body" ? textOf(concatenated(chunks)) : undefined;
  if (text !== undefined) return { kind: "body", text, bytes };
  budget.release(organizationId, bytes);
  return { kind: kind === "body" ? "not text" : kind };
}

function concatenated(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
}

function textOf(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString("latin1");
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString();
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}
