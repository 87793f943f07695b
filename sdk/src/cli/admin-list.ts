import type { Client } from "../client.ts";
import { List } from "../pages.ts";
import type { Context } from "./context.ts";
import { given } from "./flag-values.ts";

/** A method of holdfast.admin.v1 that answers a list by pages. */
export interface AdminMethod {
  readonly service: string;
  readonly method: string;
  /** Member of the answer that is the list. */
  readonly plural: string;
}

/** As people see it. */
export interface AdminList extends AdminMethod {
  readonly columns: readonly string[];
}

/** Read as it is walked, by pages of so many entries. */
export function adminList<T extends object>(
  client: Client,
  { service, method, plural }: AdminMethod,
  request: object = {},
  limit = 200,
): List<T> {
  return new List(async function* () {
    let cursor: string | undefined;
    do {
      const page = { limit, ...given({ cursor }) };
      const answer = await client.admin<Record<string, unknown>>(service, method, { ...request, page });
      cursor = (answer.nextCursor as string | undefined) || undefined;
      yield { entries: (answer[plural] ?? []) as T[], nextCursor: cursor ?? null };
    } while (cursor !== undefined);
  });
}

/** Page by page up to the limit, past which it says that there is more. */
export async function showAdminList(
  { person, output }: Context,
  list: AdminList,
  request: object,
  limit: number,
): Promise<void> {
  const found: object[] = [];
  let more = false;
  for await (const page of adminList(await person(), list, request, Math.min(limit, 200)).pages()) {
    found.push(...page.entries);
    more = page.nextCursor !== null || found.length > limit;
    if (found.length >= limit) break;
  }
  output.list(found.slice(0, limit), list.columns);
  if (more) output.say(`These are the first ${limit}; --limit shows more.`);
}
