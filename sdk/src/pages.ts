import { type CallOptions, type RequestOptions, type Transport } from "./transport.ts";

/** One page of a list. */
export interface Page<T> {
  readonly entries: readonly T[];
  /** Cursor of the next page; null after the last. */
  readonly nextCursor: string | null;
}

/** Page size and start of a list. */
export interface ListOptions extends CallOptions {
  /** Number of entries per page, 1 to 200. */
  readonly limit?: number | undefined;
  /** `nextCursor` of an earlier page; the list starts after it. */
  readonly cursor?: string | undefined;
}

/**
 * A list that is read during iteration: `for await` over its entries, or over `pages()`. Each iteration requests the
 * pages again.
 */
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

  /** All entries, in memory. */
  async toArray(): Promise<T[]> {
    const all: T[] = [];
    for await (const { entries } of this.#pages()) all.push(...entries);
    return all;
  }
}

/**
 * A list of the API with its entries in the member `plural`. A page may have fewer than `limit` entries; the list ends
 * at a page without a cursor.
 */
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
      // Lists that can be followed always have a cursor and the member has_more. Other lists end with null or "".
      next = page.has_more === false ? null : (page.next_cursor as string | null | undefined) || null;
      yield { entries: (Object.hasOwn(page, plural) ? page[plural] : []) as T[], nextCursor: next };
    } while (next !== null);
  });
}
