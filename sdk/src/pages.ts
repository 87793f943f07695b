import { type CallOptions, type RequestOptions, type Transport } from "./transport.ts";

/** A part of a list as the API answered it. */
export interface Page<T> {
  readonly entries: readonly T[];
  /** Where the next page begins; null after the last. */
  readonly nextCursor: string | null;
}

/** How much of a list to ask for at once. */
export interface ListOptions extends CallOptions {
  /** Entries a page, 1 to 200. */
  readonly limit?: number | undefined;
  /** Of a page read before: the list goes on after it. */
  readonly cursor?: string | undefined;
}

/** A list that is read as it is walked: `for await` over its entries, or over its pages. Each walk asks anew. */
export class List<T> implements AsyncIterable<T> {
  readonly #pages: () => AsyncGenerator<Page<T>, void, undefined>;

  constructor(pages: () => AsyncGenerator<Page<T>, void, undefined>) {
    this.#pages = pages;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const { entries } of this.#pages()) yield* entries;
  }

  pages(): AsyncGenerator<Page<T>, void, undefined> {
    return this.#pages();
  }

  /** Every entry, in memory. */
  async toArray(): Promise<T[]> {
    const all: T[] = [];
    for await (const { entries } of this.#pages()) all.push(...entries);
    return all;
  }
}

/** The list of the API that answers its entries as `plural`; a page may be short, only the lack of a cursor ends it. */
export function listOf<T>(
  transport: Transport,
  path: string,
  plural: string,
  { limit, cursor, ...call }: ListOptions = {},
  filter: RequestOptions["query"] = {},
): List<T> {
  return new List(async function* () {
    let next: string | null | undefined = cursor;
    do {
      const query: RequestOptions["query"] = { ...filter, limit, cursor: next ?? undefined };
      const page: Record<string, unknown> = await transport.request("GET", path, { ...call, query });
      // Lists that can be followed always have a cursor, and say whether anything is behind it.
      // What is always a text is empty at the end.
      next = page.has_more === false ? null : (page.next_cursor as string | null | undefined) || null;
      yield { entries: (Object.hasOwn(page, plural) ? page[plural] : []) as T[], nextCursor: next };
    } while (next !== null);
  });
}
