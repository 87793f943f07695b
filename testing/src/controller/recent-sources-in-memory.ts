import type { RecentSources } from "@holdfast/controller/access/user/sign-in-guard.ts";

/** An empty list of recent sources, for tests without earlier sign-ins. */
export function createRecentSourcesInMemory(): RecentSources {
  const known = new Set<string>();
  return {
    has: (account, source) => known.has(`${account} ${source}`),
    record: (account, source) => void known.add(`${account} ${source}`),
  };
}
