import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** Consecutive items of one request, with the encoded text of each. */
export interface Piece<I> {
  readonly items: readonly I[];
  readonly texts: readonly string[];
}

/** Number of items that are encoded before the function yields to the event loop. */
const batchSize = 250;

/** Splits items in order into pieces within the limits of items and bytes; a larger item gets a separate piece. */
export async function piecesOf<I>(
  items: readonly I[],
  textOf: (item: I) => string,
  { itemsMax, bytesMax }: { readonly itemsMax: number; readonly bytesMax: number },
): Promise<readonly Piece<I>[]> {
  const pieces: { items: I[]; texts: string[]; bytes: number }[] = [];
  for (const [index, item] of items.entries()) {
    if (index % batchSize === batchSize - 1) await setImmediate();
    const text = textOf(item);
    const bytes = Buffer.byteLength(text) + 1;
    const last = pieces.at(-1);
    if (last !== undefined && last.items.length < itemsMax && last.bytes + bytes <= bytesMax) {
      last.items.push(item);
      last.texts.push(text);
      last.bytes += bytes;
    } else pieces.push({ items: [item], texts: [text], bytes });
  }
  return pieces;
}

const compress = promisify(gzip);

/** Compresses in the thread pool, so that the event loop is not blocked. */
export function gzipped(text: string): Promise<Buffer> {
  return compress(text, { level: 5 });
}

/** The parsed JSON of a response; undefined for invalid JSON. */
export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}
