import { readFileSync } from "node:fs";
import { serve } from "@holdfast/common/call.ts";
import { list, text, type ValuesOf } from "@holdfast/common/config.ts";
import { parseAccount, periodOf } from "@holdfast/common/inference/accounts.ts";
import { type Catalog, readCatalog, shippedCatalog } from "@holdfast/common/inference/catalog.ts";
import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import { InferenceService, PutInferenceProviderRequestSchema } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { organizationKind } from "#access/organization/organization.ts";
import { quotasPart } from "#access/organization/quotas.ts";
import { egressPart } from "#egress-system.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { feeds } from "#fleet/running-fleet.ts";
import type { Use, UseLater } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import { type Contribution, definePart } from "#kernel/part.ts";
import { certificateNames } from "#kernel/pki/local-identities.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { System } from "#kernel/system.ts";
import { inferenceAccountKind } from "./account/inference-account.ts";
import { createLedger, type Ledger } from "./account/ledger.ts";
import type { InferenceApiDeps } from "./inference-api-deps.ts";
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

const inferenceSettings = {
  inferenceCatalog: text(
    "HOLDFAST_INFERENCE_CATALOG",
    "JSON file with additional providers of models, their URLs and prices; empty: only the built-in providers",
    "",
  ),
  inferenceNames: list(
    "HOLDFAST_INFERENCE_NAMES",
    "Names and addresses in the certificate of the inference proxy, besides localhost",
  ),
  inferenceAddresses: list(
    "HOLDFAST_INFERENCE_ADDRESSES",
    "Addresses of the inference proxy for the DNS name inference in the platform's zone; empty: no name",
  ),
} as const;

export type InferenceConfig = ValuesOf<typeof inferenceSettings>;

const eventData = {
  period: { type: "string", meaning: "the month in UTC, such as 2026-11" },
  spent_cents: { type: "number", meaning: "cost of the month so far" },
  monthly_cost_limit_cents: { type: "number", meaning: "the limit of the month" },
} as const;

const eventExample = { period: "2026-11", spent_cents: 4012.5, monthly_cost_limit_cents: 5000 };

/** The events of an organization's inference. */
const inferenceEventDefinitions = {
  "inference.budget_warning": {
    when: "the month has cost alert_pct of its limit, once a month",
    data: eventData,
    example: eventExample,
  },
  "inference.circuit_opened": {
    when: "the month's limit is used up; further calls are refused",
    data: eventData,
    example: { ...eventExample, spent_cents: 5000 },
  },
  "inference.usage_above_reservation": {
    when: "a provider reported more tokens than a call had reserved, at most once a day; it is charged as reported",
    data: { ...eventData, model: { type: "string", meaning: "the model, as provider/name" } },
    example: { ...eventExample, model: "provider_c/large" },
  },
  "inference.circuit_closed": {
    when: "a reset closed the circuit, while the cost was below the limit",
    data: eventData,
    example: { ...eventExample, spent_cents: 5000, monthly_cost_limit_cents: 8000 },
  },
} as const satisfies Record<string, EventDefinition>;

/** Parts that the feed and the RPCs share. */
interface InferenceParts {
  /** The stream that proxy processes follow. */
  readonly feed: ServedFeed;
  readonly ledger: Ledger;
  readonly usage: UsageStore;
  readonly catalog: Catalog;
  readonly isFollowing: (process: InferenceProcess) => boolean;
}

const inferencePart = definePart<InferenceParts>("inference");

const hourMs = 3_600_000;
const nameTtlS = 60;

/**
 * Inference: one endpoint for the models of several providers, with limits per organization and key. The proxy is a
 * separate process (inference/); this system stores its configuration and its accounts. Proxy processes follow a
 * controller by a stream (`feed-service.ts`), which sends settings and keys, grants and recalls quota leases
 * (`ledger.ts`), and adds settlements of ended calls to accounts and usage.
 */
export const inferenceSystem = declareSystem({
  name: "inference",
  settings: inferenceSettings,
  scopes: { inference: { verbs: ["manage"], completeFrom: "admin" } },
  events: inferenceEventDefinitions,
  audited: {
    "holdfast.v1.InferenceService": "inference-settings",
    "holdfast.admin.v1.InferenceProcessService": "inference-process",
  },
  contribute: contributeInferenceFeed,
  open: openInferenceSystem,
});

/** The fleet's listener serves the stream, so it is created before the fleet. */
function contributeInferenceFeed(
  kernel: Kernel,
  useLater: UseLater,
  { inferenceCatalog, inferenceNames }: ValuesOf<typeof inferenceSettings>,
): readonly Contribution[] {
  const [egress, fleet] = [useLater(egressPart), useLater(fleetPart)];
  const { collections, controllerRegistry } = kernel;
  const file = inferenceCatalog === "" ? undefined : readFileSync(inferenceCatalog, "utf8");
  const catalog = file === undefined ? shippedCatalog : readCatalog(file);
  const kinds = {
    settings: collections.open(inferenceSettingsKind),
    keys: collections.open(inferenceKeyKind),
    accounts: collections.open(inferenceAccountKind),
    processes: collections.open(inferenceProcessKind),
  };
  /** Ids of the processes that follow this controller. */
  const followingHere = new Set<string>();
  // A stream that an earlier run of this controller recorded has ended.
  const isFollowing = ({ metadata, status: { controllerId } }: InferenceProcess) =>
    controllerId === kernel.controllerId
      ? followingHere.has(metadata.id)
      : controllerId !== null && controllerRegistry.controller(controllerId) !== undefined;
  const ledger = createLedger({ ...kernel, ...kinds, isFollowing });
  const usage = createUsageStore(kernel.history.sql);
  const feed = createFeedService({
    ...kernel,
    ...kinds,
    ledger,
    usage,
    followingHere,
    catalog: () => file ?? "{}",
    refusals() {
      const { loopbackBlock, machines: all } = fleet();
      const machines = [...all.values()].flatMap(({ object: { status } }) => [status.address, status.publicAddress]);
      const block = loopbackBlock === "" ? [] : [`${loopbackBlock}.0.0/16`];
      return {
        listeners: egress().ownListeners(),
        networks: [...block, ...machines.filter((address) => address !== "")],
      };
    },
  });
  return [
    feeds.of({ dataPlane: "inference", service: feed }),
    certificateNames.of({ dataPlane: "inference", names: inferenceNames }),
    inferencePart.of({ feed, ledger, usage, catalog, isFollowing }),
  ];
}

function openInferenceSystem(
  kernel: Kernel,
  use: Use,
  { inferenceAddresses }: ValuesOf<typeof inferenceSettings>,
): System {
  const { collections, clock } = kernel;
  const organizations = collections.open(organizationKind);
  const accounts = collections.open(inferenceAccountKind);
  const processes = collections.open(inferenceProcessKind);
  const inference = use(inferencePart);
  const { usage, feed } = inference;
  const fleet = use(fleetPart);
  const deps: InferenceApiDeps = {
    ...kernel,
    ...inference,
    settings: collections.open(inferenceSettingsKind),
    keys: collections.open(inferenceKeyKind),
    accounts,
    processes,
    organizations,
    quotas: use(quotasPart),
    egress: use(egressPart).users,
  };
  return {
    name: "inference",
    schemaRules: inferenceSchemaRules(inference.catalog),
    rpcs: [
      serve(InferenceService, {
        ...createProviderHandlers(deps),
        ...createSettingsHandlers(deps),
        ...createKeyHandlers(deps),
        ...createUsageHandlers(deps),
      }),
      createProcessApi({ ...kernel, ...inference, processes, accounts }),
    ],
    work: [
      createPeriodic("inference-sweep", hourMs, async (signal) => {
        await usage.retainOnly([...organizations.ids()], clock.now());
        await deleteOldAccounts(signal);
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
    const record = { name: `inference.${fleet.domain}`, addresses: inferenceAddresses, ttlS: nameTtlS };
    const unit = kernel.begin();
    const owner = { kind: "inference", id: "proxy" };
    if (fleet.zone.put(unit, owner, inferenceAddresses.length === 0 ? [] : [record])) await unit.commit(signal);
  }

  /** Deletes the accounts of months before the last one; their usage is in the history. */
  async function deleteOldAccounts(signal: AbortSignal): Promise<void> {
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

/** An https URL without query and fragment. */
const baseUrlForm = { format: "uri", pattern: '^[hH][tT][tT][pP][sS]://[!"$-.0->@-\\[\\]-~][!"$->@-\\[\\]-~]*$' };

/** Restricts providers to the installation's catalog. */
function inferenceSchemaRules({ providers }: Catalog): readonly SchemaRule[] {
  return [
    [PutInferenceProviderRequestSchema.field.provider, { enum: providers.map(({ name }) => name) }],
    [PutInferenceProviderRequestSchema.field.baseUrl, baseUrlForm],
  ];
}
