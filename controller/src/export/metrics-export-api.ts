import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createTokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import {
  MetricsExportSchema,
  MetricsExportService,
  type UpdateMetricsExportRequest,
} from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import { auditOf, mayTouch, organizationOf, requireScope, requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { Organization } from "#access/organization/organization.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { changedConfiguration, newConfiguration } from "./configuration/changed-configuration.ts";
import { type CheckedConfiguration, checkTargets } from "./configuration/check-configuration.ts";
import { openConfiguration, splitConfiguration, sealSecrets } from "./configuration/secrets.ts";
import type { VendorUrls } from "./destinations/destination.ts";
import { destinationOf } from "./destinations/destinations.ts";
import type { ProbeDestination } from "./export-sender.ts";
import {
  configurationFaults,
  configurationOf,
  intervalFaults,
  refuse,
  requireSupportedDataType,
  defaultIntervalSeconds,
} from "./export-request.ts";
import { newRunState, type RunState, type RunStates } from "./export-run-state.ts";
import {
  carriesLogs,
  type Configuration,
  metricsExportKind,
  type MetricsExportObject,
  type MetricsExportSpec,
  scopeName,
} from "./metrics-export.ts";
import { dataTypeName, destinationTypeName, metricsExportMessage } from "./metrics-export-message.ts";
import type { OwnServices } from "./own-services.ts";

export interface MetricsExportApiDeps {
  readonly begin: () => UnitOfWork;
  readonly auditedActs: Pick<AuditedActs, "act">;
  readonly exports: Collection<MetricsExportObject>;
  readonly organizations: Pick<Collection<Organization>, "untilRevision">;
  readonly quotas: Pick<Quotas, "claim">;
  readonly owners: Pick<MonitoredOwners, "get" | "mayRead" | "require">;
  readonly states: Pick<RunStates, "read" | "clear">;
  readonly egress: Pick<EgressClient, "check">;
  readonly vendors: VendorUrls;
  readonly ownServices: OwnServices;
  readonly probe: ProbeDestination;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: () => string;
}

type Answer = MessageInitShape<typeof MetricsExportSchema>;

const defaultLimit = 50;
/** Rate of tests per integration, on each controller. */
const testRate = { burst: 10, perSecond: 10 / 60 };

/** The RPCs of exports; the ticker (export-ticker.ts) exports. */
export function createMetricsExportApi(deps: MetricsExportApiDeps): ServedService {
  const { exports, clock, sealer, states } = deps;
  const tests = createTokenBuckets(testRate, () => clock.monotonicMs());
  const kind = metricsExportKind;

  function isVisible({ metadata, spec }: MetricsExportObject, call: Call): boolean {
    if (metadata.organizationId !== organizationOf(call)) return false;
    return mayTouch(call, kind.name, metadata.id) || (spec.serviceId !== null && mayTouchOwner(call, spec.serviceId));
  }

  /** The integrations of a deleted owner are removed soon, and until then are those of a service. */
  function mayTouchOwner(call: Call, id: string): boolean {
    return deps.owners.mayRead({ kind: deps.owners.get(id)?.owner.kind ?? "managed-service", id }, call);
  }

  function require(id: string, call: Call): Stored<MetricsExportObject> {
    const found = exports.get(id);
    if (found === undefined || !isVisible(found.object, call))
      throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such integration in the organization.");
    return found;
  }

  const message = (integration: MetricsExportObject, state: RunState = newRunState) =>
    metricsExportMessage(integration, state, { sealer, nowMs: clock.now() });
  const stateOf = async (id: string) => (await states.read([id])).get(id);

  /** Exports need the scopes to read the data: `services:data` for logs, and `org:write` for a global integration. */
  function requireRights({ serviceId, ...spec }: Pick<MetricsExportSpec, "serviceId" | "dataType">, call: Call): void {
    if (carriesLogs(spec)) requireScope(call, "services:data");
    if (serviceId === null) requireScope(call, "org:write");
  }

  const see = [deps.organizations, exports];

  /** The error of a commit: a scope has one integration of a type, so a taken name means DESTINATION_EXISTS. */
  function destinationExists(error: unknown, spec: Pick<MetricsExportSpec, "serviceId" | "destinationType">): Error {
    if (!(error instanceof HoldfastError) || error.key !== "NAME_TAKEN") return error as Error;
    const whose = spec.serviceId === null ? "The organization has a global" : "The service has an";
    return new HoldfastError("DESTINATION_EXISTS", `${whose} integration of type ${spec.destinationType}.`, {
      cause: error,
    });
  }

  /**
   * Changes an integration and returns its message. Its run state is read first: a change whose response would fail is
   * not made.
   */
  async function change(
    id: string,
    call: Call,
    verb: string,
    next: (before: MetricsExportObject) => MetricsExportSpec | Promise<MetricsExportSpec>,
    name?: string,
  ): Promise<Answer> {
    let changed: MetricsExportSpec | undefined;
    return mutate(deps, call, { action: `metrics-export.${verb}`, kind: kind.name, visibleIn: see }, async (unit) => {
      const before = require(id, call);
      requireRights(before.object.spec, call);
      const spec = await next(before.object);
      changed = spec;
      const state = await stateOf(id);
      const metadata = { ...nextMetadata(before.object.metadata, clock.now()), ...(name !== undefined && { name }) };
      const after: MetricsExportObject = { metadata, spec, status: {} };
      const response = create(MetricsExportSchema, message(after, state));
      unit.update(kind, before, after);
      const { organizationId } = metadata;
      const [from, to] = [scopeName(before.object.spec), scopeName(spec)];
      if (from !== to) {
        unit.claimName(kind, organizationId, to, id);
        unit.releaseName(kind, organizationId, from);
      }
      return { id, response };
    }).catch((error: unknown) => {
      throw changed === undefined ? error : destinationExists(error, changed);
    });
  }

  const handlers: Handlers<typeof MetricsExportService> = {
    async createMetricsExport(request, call) {
      requireUnlimited(call);
      const destinationType = destinationTypeName(request.destinationType);
      const destination = destinationOf(destinationType);
      const checked = newConfiguration(destination, configurationOf(request.configuration));
      const configuration = requireConfiguration(checked, intervalFaults(request.exportIntervalSeconds));
      const organizationId = organizationOf(call);
      const serviceId = request.serviceId ?? null;
      const dataType = dataTypeName(request.dataType);
      if (serviceId !== null) deps.owners.require(serviceId, call);
      requireRights({ serviceId, dataType }, call);
      requireSupportedDataType({ dataType }, destination);
      await checkTargets({ destination, configuration, organizationId }, deps, call.signal);
      return mutate(deps, call, { action: "metrics-export.create", kind: kind.name, visibleIn: see }, async (unit) => {
        const id = deps.newId();
        const split = splitConfiguration(destination, configuration);
        const now = clock.now();
        const spec: MetricsExportSpec = {
          serviceId,
          destinationType,
          dataType,
          intervalSeconds: request.exportIntervalSeconds ?? defaultIntervalSeconds,
          configuration: split.configuration,
          sealedSecrets: sealSecrets(id, destination, split, sealer),
          isEnabled: true,
          disabledReason: null,
          since: now,
        };
        const metadata = newMetadata(id, now, { name: request.name, organizationId });
        const integration: MetricsExportObject = { metadata, spec, status: {} };
        const response = create(MetricsExportSchema, message(integration));
        unit.create(kind, integration);
        unit.claimName(kind, organizationId, scopeName(spec), id);
        await deps.quotas.claim(unit, organizationId, { exports: 1 });
        return { id, response };
      }).catch((error: unknown) => {
        throw destinationExists(error, { serviceId, destinationType });
      });
    },

    async listMetricsExports(request, call) {
      const { limit = defaultLimit, offset = 0, serviceId, isEnabled } = request;
      const type = request.destinationType === undefined ? undefined : destinationTypeName(request.destinationType);
      const page = { after: undefined, limit: Number.POSITIVE_INFINITY, organizationId: organizationOf(call) };
      const { items } = exports.page(
        (each) =>
          isVisible(each, call) &&
          (serviceId === undefined || each.spec.serviceId === serviceId) &&
          (type === undefined || each.spec.destinationType === type) &&
          (isEnabled === undefined || each.spec.isEnabled === isEnabled),
        page,
        { maxScanned: Number.POSITIVE_INFINITY },
      );
      const pageItems = items.slice(offset, offset + limit).map(({ object }) => object);
      const pageStates = await states.read(pageItems.map(({ metadata }) => metadata.id));
      const integrations = pageItems.map((each) => message(each, pageStates.get(each.metadata.id)));
      return { integrations, total: items.length, limit, offset };
    },

    async getMetricsExport({ id }, call) {
      const { object } = require(id, call);
      return message(object, await stateOf(id));
    },

    updateMetricsExport(request, call) {
      const paths = new Set(request.updateMask?.paths.map((path) => path.split(".")[0] ?? ""));
      refuse(maskFaults(request, paths));
      return change(request.id, call, "update", (before) => updated(before, request, paths, call), request.name);
    },

    deleteMetricsExport: ({ id }, call) =>
      mutate(deps, call, { action: "metrics-export.delete", kind: kind.name, visibleIn: [exports] }, async (unit) => {
        const before = require(id, call);
        const { metadata, spec } = before.object;
        if (spec.serviceId === null) requireScope(call, "org:write");
        unit.remove(kind, before);
        unit.releaseName(kind, metadata.organizationId, scopeName(spec));
        return { id, result: {} };
      }),

    disableMetricsExport: ({ id }, call) =>
      change(id, call, "disable", ({ spec }) => ({ ...spec, isEnabled: false, disabledReason: null })),

    enableMetricsExport: ({ id }, call) =>
      change(id, call, "enable", async ({ spec }) => {
        await states.clear(id);
        return { ...spec, isEnabled: true, disabledReason: null };
      }),

    async testMetricsExport({ id }, call) {
      const { object } = require(id, call);
      const { waitS } = tests.take(id, 1);
      if (waitS > 0)
        throw new HoldfastError("RATE_LIMITED", "An integration is tested ten times a minute at most.", {
          retryAfterS: Math.ceil(waitS),
        });
      const destination = destinationOf(object.spec.destinationType);
      const configuration = openConfiguration(object, destination, sealer);
      const target = { destination, configuration, organizationId: object.metadata.organizationId };
      const error = await deps.auditedActs.act(auditOf(call, "metrics-export.test", kind.name, id), () =>
        deps.probe(target, object.spec.dataType, call.signal),
      );
      return { success: error === undefined, ...(error !== undefined && { error }) };
    },
  };

  /** The changed spec. Throws the same errors as a creation. */
  async function updated(
    { metadata, spec }: MetricsExportObject,
    request: UpdateMetricsExportRequest,
    paths: ReadonlySet<string>,
    call: Call,
  ): Promise<MetricsExportSpec> {
    const destinationType =
      request.destinationType === undefined ? spec.destinationType : destinationTypeName(request.destinationType);
    const destination = destinationOf(destinationType);
    const requestedConfiguration = configurationOf(request.configuration);
    const storedConfiguration = openConfiguration({ metadata, spec }, destinationOf(spec.destinationType), sealer);
    const checked =
      destinationType === spec.destinationType
        ? changedConfiguration(destination, storedConfiguration, requestedConfiguration)
        : newConfiguration(destination, requestedConfiguration);
    const configuration = requireConfiguration(checked, intervalFaults(request.exportIntervalSeconds));
    const serviceId = paths.has("service_id") ? (request.serviceId ?? null) : spec.serviceId;
    const dataType = request.dataType === undefined ? spec.dataType : dataTypeName(request.dataType);
    if (serviceId !== null && serviceId !== spec.serviceId) deps.owners.require(serviceId, call);
    requireRights({ serviceId, dataType }, call);
    requireSupportedDataType({ dataType }, destination);
    const { organizationId } = metadata;
    if (paths.has("configuration"))
      await checkTargets({ destination, configuration, organizationId }, deps, call.signal);
    const split = splitConfiguration(destination, configuration);
    const isElsewhere = destinationType !== spec.destinationType || serviceId !== spec.serviceId;
    return {
      ...spec,
      serviceId,
      destinationType,
      dataType,
      intervalSeconds: request.exportIntervalSeconds ?? spec.intervalSeconds,
      configuration: split.configuration,
      sealedSecrets: sealSecrets(metadata.id, destination, split, sealer),
      since: isElsewhere ? clock.now() : spec.since,
    };
  }

  return serve(MetricsExportService, handlers);
}

function requireConfiguration(checked: CheckedConfiguration, others: ReturnType<typeof intervalFaults>): Configuration {
  refuse([...others, ...(checked.ok ? [] : configurationFaults(checked.faults))]);
  return checked.ok ? checked.configuration : {};
}

/** The faults of a change's mask: fields that cannot be changed here or cleared. */
function maskFaults(request: UpdateMetricsExportRequest, paths: ReadonlySet<string>) {
  const values: Readonly<Record<string, unknown>> = {
    name: request.name,
    destination_type: request.destinationType,
    data_type: request.dataType,
    export_interval_seconds: request.exportIntervalSeconds,
    configuration: request.configuration,
  };
  const cleared = Object.entries(values).flatMap(([field, value]) =>
    paths.has(field) && value === undefined ? [field] : [],
  );
  const detail = "cannot be changed here: POST .../enable and POST .../disable do that";
  return [
    ...cleared.map((field) => ({ field, code: "not_clearable", detail: "must not be null" })),
    ...(paths.has("is_enabled") ? [{ field: "is_enabled", code: "not_changeable", detail }] : []),
  ];
}
