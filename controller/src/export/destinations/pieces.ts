import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** Some items in a row, and what each is in a body. */
export interface Piece<I> {
  readonly items: readonly I[];
  readonly texts: readonly string[];
}

/** So many at a time: others of the process are served between. */
const atOnce = 250;

/** In order, each piece with so many items and bytes at most; an item that is larger by itself is a piece of its own. */
export async function piecesOf<I>(
  items: readonly I[],
  textOf: (item: I) => string,
  { itemsMax, bytesMax }: { readonly itemsMax: number; readonly bytesMax: number },
): Promise<readonly Piece<I>[]> {
  const pieces: { items: I[]; texts: string[]; bytes: number }[] = [];
  for (const [index, item] of items.entries()) {
    if (index % atOnce === atOnce - 1) await setImmediate();
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

/** In the thread pool: the event loop goes on meanwhile. */
export function gzipped(text: string): Promise<Buffer> {
  return compress(text, { level: 5 });
}

/** JSON of an answer; undefined when it is none. */
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
