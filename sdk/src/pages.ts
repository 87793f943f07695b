import type { RequestOptions, Transport } from "./transport.ts";

/** All entries of a list, page by page; only a null cursor ends it. */
export async function* pages<T>(
  transport: Transport,
  path: string,
  plural: string,
  options: RequestOptions = {},
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const query = { ...options.query, cursor };
    const page = await transport.request<Record<string, unknown>>("GET", path, { ...options, query });
    yield* page[plural] as T[];
    cursor = (page.next_cursor as string | null) ?? undefined;
  } while (cursor !== undefined);
}
