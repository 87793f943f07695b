import { isAscii, isUtf8 } from "node:buffer";
import type { HttpRequest } from "@holdfast/https/request-handler.ts";

/** Bytes of bodies that a process reads and keeps at a time, shared out among organizations. */
export interface BodyRoom {
  /** Takes room for so much more; false when there is none. */
  take(organizationId: string, bytes: number): boolean;
  give(organizationId: string, bytes: number): void;
}

export const bodyMax = 10 << 20;
const byteOrderMark = "\ufeff";
const allMax = 256 << 20;
const organizationMax = allMax / 4;

export function createBodyRoom(): BodyRoom {
  let all = 0;
  const each = new Map<string, number>();
  return {
    take(organizationId, bytes) {
      const mine = each.get(organizationId) ?? 0;
      if (all + bytes > allMax || mine + bytes > organizationMax) return false;
      all += bytes;
      each.set(organizationId, mine + bytes);
      return true;
    },
    give(organizationId, bytes) {
      all -= bytes;
      const left = (each.get(organizationId) ?? 0) - bytes;
      if (left <= 0) each.delete(organizationId);
      else each.set(organizationId, left);
    },
  };
}

export type ReadBody =
  | { readonly kind: "body"; readonly text: string; readonly bytes: number }
  | { readonly kind: "too large" | "no room" | "gone" | "no text" };

/** The whole body; its bytes keep their room until they are given back. What is refused is read on and thrown away by the server. */
export async function readBody(request: HttpRequest, organizationId: string, room: BodyRoom): Promise<ReadBody> {
  if (Number(request.headers["content-length"] ?? 0) > bodyMax) return { kind: "too large" };
  const chunks: Buffer[] = [];
  let bytes = 0;
  // An iterator that is left would end the connection, and the answer with it.
  const kind = await new Promise<"body" | "too large" | "no room" | "gone">((resolve) => {
    const take = (chunk: Buffer) => {
      const isLarge = bytes + chunk.length > bodyMax;
      if (isLarge || !room.take(organizationId, chunk.length)) {
        request.off("data", take);
        return resolve(isLarge ? "too large" : "no room");
      }
      bytes += chunk.length;
      chunks.push(chunk);
    };
    request.on("data", take);
    request.once("end", () => resolve("body"));
    request.once("error", () => resolve("gone"));
    request.once("close", () => resolve(request.complete ? "body" : "gone"));
  });
  const text = kind === "body" ? textOf(whole(chunks)) : undefined;
  if (text !== undefined) return { kind: "body", text, bytes };
  room.give(organizationId, bytes);
  return { kind: kind === "body" ? "no text" : kind };
}

function whole(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
}

function textOf(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString("latin1");
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString();
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}
