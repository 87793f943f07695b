import { readFileSync } from "node:fs";
import { serve } from "@holdfast/common/call.ts";
import { list, text, type ValuesOf } from "@holdfast/common/config.ts";
import { type Catalog, readCatalog, shippedCatalog } from "@holdfast/common/inference/catalog.ts";
import { periodOf, parseAccount } from "@holdfast/common/inference/accounts.ts";
import type { Egress } from "@holdfast/egress/create-egress.ts";
import { InferenceService } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { organizationKind } from "#access/organization/organization.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { inferenceAccountKind } from "./account/inference-account.ts";
import { createLedger, type Ledger } from "./account/ledger.ts";
import type { InferenceApiDeps } from "./inference-api-deps.ts";
import { inferenceEventDefinitions } from "./inference-event-definitions.ts";
import { inferenceKeyKind } from "./key/inference-key.ts";
import { createKeyHandlers } from "./key/key-handlers.ts";
import { createFeedService, type ServedFeed } from "./process/feed-service.ts";
import { type InferenceProcess, inferenceProcessKind } from "./process/inference-process.ts";
import { createProcessApi } from "./process/process-api.ts";
import { inferenceSettingsKind } from "./settings/inference-settings.ts";
import { createProviderHandlers } from "./settings/provider-handlers.ts";
import { createSettingsHandlers } from "./settings/settings-handlers.ts";
import { createUsageHandlers } from "./usage/usage-handlers.ts";
import { createUsageStore, type UsageStore } from "./usage/usage-store.ts";
import { inferenceForms } from "./inference-forms.ts";

const inferenceSettings = {
  inferenceCatalog: text(
    "HOLDFAST_INFERENCE_CATALOG",
    "JSON file of providers of models that are added to the shipped ones, with URLs and prices; empty for none",
    "",
  ),
  inferenceAddresses: list(
    "HOLDFAST_INFERENCE_ADDRESSES",
    "Addresses of the inference proxy, which the zone has at the name inference; empty for no name",
  ),
} as const;

export type InferenceSettings = ValuesOf<typeof inferenceSettings>;

interface Ahead {
  /** The stream that processes of the proxy follow. */
  readonly inferenceFeed: ServedFeed;
  readonly inferenceParts: {
    readonly ledger: Ledger;
    readonly usage: UsageStore;
    readonly catalog: Catalog;
    readonly isFollowing: (process: InferenceProcess) => boolean;
  };
}

interface BelowInference extends Ahead {
  readonly egress: Pick<Egress, "users">;
  readonly quotas: Quotas;
  readonly ownListeners: () => readonly string[];
  readonly fleet: Pick<FleetSystem, "loopbackBlock" | "machines" | "zone" | "domain">;
}

const hourMs = 3_600_000;
const nameTtlS = 60;

/** Models of other providers behind one endpoint, with limits that hold. The proxy itself is a process of its own. */
export const inferenceSystem = declareSystem({
  name: "inference",
  settings: inferenceSettings,
  scopes: { inference: { rights: ["manage"], wholeFrom: "admin" } },
  events: inferenceEventDefinitions,
  audited: {
    "holdfast.v1.InferenceService": "inference-settings",
    "holdfast.admin.v1.InferenceProcessService": "inference-process",
  },
  seams: createSeams,
  open: openInferenceSystem,
});

/** The fleet's listener serves the stream, so it is made before. */
function createSeams(
  kernel: Kernel,
  { inferenceCatalog }: ValuesOf<typeof inferenceSettings>,
  below: () => BelowInference,
): Ahead {
  const { collections, membership } = kernel;
  const file = inferenceCatalog === "" ? undefined : readFileSync(inferenceCatalog, "utf8");
  const catalog = file === undefined ? shippedCatalog : readCatalog(file);
  const kinds = {
    settings: collections.open(inferenceSettingsKind),
    keys: collections.open(inferenceKeyKind),
    accounts: collections.open(inferenceAccountKind),
    processes: collections.open(inferenceProcessKind),
  };
  /** Processes whose streams are here. */
  const here = new Set<string>();
  // What an earlier run of this controller wrote of streams went with it.
  const isFollowing = ({ metadata, status: { controllerId } }: InferenceProcess) =>
    controllerId === kernel.controllerId
      ? here.has(metadata.id)
      : controllerId !== null && membership.member(controllerId) !== undefined;
  const ledger = createLedger({ ...kernel, ...kinds, isFollowing });
  const usage = createUsageStore(kernel.history.sql);
  const inferenceFeed = createFeedService({
    ...kernel,
    ...kinds,
    ledger,
    usage,
    here,
    catalog: () => file ?? "{}",
    refusals() {
      const { ownListeners, fleet } = below();
      const machines = [...fleet.machines.values()].flatMap(({ object: { status } }) => [
        status.address,
        status.publicAddress,
      ]);
      const block = fleet.loopbackBlock === "" ? [] : [`${fleet.loopbackBlock}.0.0/16`];
      return {
        listeners: ownListeners(),
        networks: [...block, ...machines.filter((address) => address !== "")],
      };
    },
  });
  return { inferenceFeed, inferenceParts: { ledger, usage, catalog, isFollowing } };
}

function openInferenceSystem(
  kernel: Kernel,
  { inferenceFeed: feed, inferenceParts, egress, quotas, fleet }: BelowInference,
  { inferenceAddresses }: ValuesOf<typeof inferenceSettings>,
): System {
  const { collections, clock } = kernel;
  const organizations = collections.open(organizationKind);
  const accounts = collections.open(inferenceAccountKind);
  const processes = collections.open(inferenceProcessKind);
  const { usage } = inferenceParts;
  const deps: InferenceApiDeps = {
    ...kernel,
    ...inferenceParts,
    settings: collections.open(inferenceSettingsKind),
    keys: collections.open(inferenceKeyKind),
    accounts,
    processes,
    organizations,
    quotas,
    feed,
    egress: egress.users,
  };
  return {
    name: "inference",
    forms: inferenceForms(inferenceParts.catalog),
    rpcs: [
      serve(InferenceService, {
        ...createProviderHandlers(deps),
        ...createSettingsHandlers(deps),
        ...createKeyHandlers(deps),
        ...createUsageHandlers(deps),
      }),
      createProcessApi({ ...kernel, ...inferenceParts, processes, accounts }),
    ],
    work: [
      createPeriodic("inference-upkeep", hourMs, async (signal) => {
        await usage.keepOnly([...organizations.ids()], clock.now());
        await forgetOldAccounts(signal);
      }),
      createPeriodic("inference-name", hourMs, putName),
    ],
    metrics: [
      {
        name: "inference_processes",
        help: "Processes of the inference proxy that follow this controller",
        read: () => feed.followers,
      },
    ],
  };

  async function putName(signal: AbortSignal): Promise<void> {
    const wanted = { name: `inference.${fleet.domain}`, addresses: inferenceAddresses, ttlS: nameTtlS };
    const unit = kernel.begin();
    const owner = { kind: "inference", id: "proxy" };
    if (fleet.zone.put(unit, owner, inferenceAddresses.length === 0 ? [] : [wanted])) await unit.commit(signal);
  }

  /** Those of months before the last one: their usage is in the history. */
  async function forgetOldAccounts(signal: AbortSignal): Promise<void> {
    const last = periodOf(clock.now() - 40 * 24 * hourMs);
    const old = [...accounts.values()].filter(({ object }) => {
      const period = parseAccount(object.metadata.id)?.period ?? "";
      return period !== "" && period < last;
    });
    for (const { object, modRevision } of old) {
      const unit = kernel.begin();
      unit.remove(inferenceAccountKind, { object, modRevision });
      await unit.commit(signal).catch(() => undefined);
    }
  }
}
