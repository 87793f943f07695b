import type { Client } from "@holdfast/sdk/client.ts";
import { List } from "@holdfast/sdk/pages.ts";
import type { Context } from "./context.ts";
import { omitUndefined } from "./flag-values.ts";

/** A list method of holdfast.admin.v1. */
export interface AdminMethod {
  readonly service: string;
  readonly method: string;
  /** Member of the response with the entries. */
  readonly plural: string;
}

/** A list method with the columns of its table. */
export interface AdminList extends AdminMethod {
  readonly columns: readonly string[];
}

/** The list, which is read during iteration in pages of `limit` entries. */
export function adminList<T extends object>(
  client: Client,
  { service, method, plural }: AdminMethod,
  request: object = {},
  limit = 200,
): List<T> {
  return new List(async function* () {
    let cursor: string | undefined;
    do {
      const page = { limit, ...omitUndefined({ cursor }) };
      const response = await client.admin<Record<string, unknown>>(service, method, { ...request, page });
      cursor = (response.nextCursor as string | undefined) || undefined;
      yield { entries: (Object.hasOwn(response, plural) ? response[plural] : []) as T[], nextCursor: cursor ?? null };
    } while (cursor !== undefined);
  });
}

/** Shows up to `limit` entries, and a message if there are more. */
export async function showAdminList(
  { passwordClient, output }: Context,
  list: AdminList,
  request: object,
  limit: number,
): Promise<void> {
  const found: object[] = [];
  let more = false;
  for await (const page of adminList(await passwordClient(), list, request, Math.min(limit, 200)).pages()) {
    found.push(...page.entries);
    more = page.nextCursor !== null || found.length > limit;
    if (found.length >= limit) break;
  }
  output.list(found.slice(0, limit), list.columns);
  if (more) output.info(`These are the first ${limit} entries; use --limit for more.`);
}
