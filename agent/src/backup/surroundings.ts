import type { BackupReaderDeps } from "@holdfast/common/backup/backup-reader.ts";
import { partNumber, partsFrom } from "@holdfast/common/backup/object-names.ts";
import type { BackupFacet } from "../engines/backup-facet.ts";
import type { Instance } from "../engines/engine-driver.ts";
import type { AgentLink } from "./agent-link.ts";
import type { StoredBackup } from "./job.ts";
import type { StoreClient } from "./store-client.ts";
import type { UrlPurse } from "./url-purse.ts";

/** What a job works with. */
export interface JobSurroundings {
  readonly instance: Instance;
  readonly facet: BackupFacet;
  readonly store: StoreClient;
  readonly purse: UrlPurse;
  readonly link: AgentLink;
  readonly now: () => number;
  /** Why the store does not do what it should; undefined while it does. */
  readonly trouble: () => string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Parts that are read between two requests for URLs. Each request is for twice as many: there are URLs for all that are
 * read while it is under way.
 */
const partsARequest = 16;

/** What opens a backup in the store. */
export function readerOf(
  { place, key, manifestSha256 }: StoredBackup,
  { store, purse, signal }: Pick<JobSurroundings, "store" | "purse" | "signal">,
): BackupReaderDeps {
  const secret = Buffer.from(key.secret, "base64");
  /** Parts of a stream are read one after the other. */
  function askAhead(object: string): void {
    const number = partNumber(object);
    if (number !== undefined && (number - 1) % partsARequest === 0)
      purse.fetchAhead("GET", partsFrom(object, 2 * partsARequest), signal);
  }
  return {
    place,
    key: { id: key.id, secret },
    manifestSha256,
    get(object) {
      askAhead(object);
      return store.get(object, signal);
    },
  };
}
