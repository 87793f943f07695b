import { useLive } from "../live/use-live.ts";
import { account, refusalOf } from "../session/account.ts";
import { type OwnersByKind, ownerPath } from "./owner-path.ts";

const maxOwners = 200;

/** The function from the id of a service, a files service or an app to the path of its page. */
export function useOwnerPaths(): (id: string) => readonly string[] {
  const { apps, files } = account.value.client;
  const live = useLive<OwnersByKind>("owners", async (signal) => {
    const first = async (list: { pages(): AsyncIterable<{ entries: readonly { id: string }[] }> }) => {
      for await (const { entries } of list.pages()) return entries.map(({ id }) => id);
      return [];
    };
    const options = { signal, limit: maxOwners };
    const [ofApps, ofFiles] = await Promise.all([
      refusalOf("apps:read") === undefined ? first(apps.list(options)) : [],
      refusalOf("files:read") === undefined ? first(files.list({}, options)) : [],
    ]);
    return { apps: ofApps, files: ofFiles };
  });
  return (id) => ownerPath(id, live.data);
}
