import type { BackupReaderDeps } from "@holdfast/common/backup/backup-reader.ts";
import { partNumber, partsFrom } from "@holdfast/common/backup/object-names.ts";
import type { BackupFacet } from "../engines/backup-facet.ts";
import type { Instance } from "../engines/engine-driver.ts";
import type { AgentLink } from "./agent-link.ts";
import type { StoredBackup } from "./job.ts";
import type { StoreClient } from "./store-client.ts";
import type { PresignedUrlCache } from "./presigned-url-cache.ts";

/** Dependencies of a job. */
export interface JobContext {
  readonly instance: Instance;
  readonly facet: BackupFacet;
  readonly store: StoreClient;
  readonly urls: PresignedUrlCache;
  readonly link: AgentLink;
  readonly now: () => number;
  /** The last failure of the store; undefined while it works. */
  readonly storeFailure: () => string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Parts read between two requests for URLs. Each request covers twice as many, so URLs are available while it is in
 * flight.
 */
const partsPerRequest = 16;

/** Dependencies that open a stored backup. */
export function readerOf(
  { location, key, manifestSha256 }: StoredBackup,
  { store, urls, signal }: Pick<JobContext, "store" | "urls" | "signal">,
): BackupReaderDeps {
  const secret = Buffer.from(key.secret, "base64");
  /** Prefetches URLs; the parts of a stream are read in order. */
  function prefetch(object: string): void {
    const number = partNumber(object);
    if (number !== undefined && (number - 1) % partsPerRequest === 0)
      urls.prefetch("GET", partsFrom(object, 2 * partsPerRequest), signal);
  }
  return {
    location,
    key: { id: key.id, secret },
    manifestSha256,
    get(object) {
      prefetch(object);
      return store.get(object, signal);
    },
  };
}
