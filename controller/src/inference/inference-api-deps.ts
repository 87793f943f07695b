import type { Call } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Catalog } from "@holdfast/common/inference/catalog.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { organizationOf } from "#access/caller.ts";
import type { Organization } from "#access/organization/organization.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { InferenceAccount } from "./account/inference-account.ts";
import type { Ledger } from "./account/ledger.ts";
import type { InferenceKey } from "./key/inference-key.ts";
import type { ServedFeed } from "./process/feed-service.ts";
import type { InferenceProcess } from "./process/inference-process.ts";
import type { InferenceSettings } from "./settings/inference-settings.ts";
import type { UsageStore } from "./usage/usage-store.ts";

/** Dependencies of the RPCs of inference. */
export interface InferenceApiDeps {
  readonly begin: () => UnitOfWork;
  readonly settings: Collection<InferenceSettings>;
  readonly keys: Collection<InferenceKey>;
  readonly accounts: Collection<InferenceAccount>;
  readonly processes: Pick<Collection<InferenceProcess>, "get">;
  readonly organizations: Pick<Collection<Organization>, "untilRevision">;
  readonly quotas: Pick<Quotas, "claim">;
  readonly ledger: Pick<Ledger, "recallExcess" | "statusOf">;
  readonly usage: Pick<UsageStore, "sum">;
  readonly feed: Pick<ServedFeed, "untilServed">;
  readonly catalog: Catalog;
  readonly egress: Pick<EgressClient, "check">;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The id of the organization in the path. Throws OBJECT_NOT_FOUND unless the caller acts in it. */
export function ownOrganization(orgId: string, call: Call): string {
  if (orgId === organizationOf(call)) return orgId;
  throw new HoldfastError(
    "OBJECT_NOT_FOUND",
    "There is no such organization, or the credential does not belong to it.",
  );
}
