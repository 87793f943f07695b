import { type FieldFault, HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { CreateAppRequest, UpdateAppRequest } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { type HostObject } from "#fleet/host/host.ts";
import { imageOf } from "#fleet/host/host-images.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { isReservedName } from "#services/resource-kind/environment-of.ts";
import { openVariables, sealVariables } from "./app-workload.ts";
import type { ReleaseSettings } from "./deployment.ts";
import { appSoftware, type HostingSpec } from "./hosting.ts";
import { parseImageReference } from "./image-reference.ts";
import { platformApiPort } from "./platform-api.ts";

type Fault = Pick<FieldFault, "field" | "code" | "detail">;
export type HostingSize = Omit<HostingSpec, "deploymentId" | "deploymentNumber">;

const defaultPort = 8_080;
const defaultStorageGb = 10;
const defaultStartTimeoutSeconds = 60;
const defaultDrainSeconds = 30;
/** Maximum number of variables, as of secret ones. */
const variablesMax = 256;
/** Maximum sum of the bytes of names and values: a response has env, and a deployment is one object of the store. */
const variablesBytesMax = { env: 32 << 10, secret_env: 128 << 10 } as const;

/** Fields of a request that only a hosted app can have. */
// biome-ignore format: a table, aligned so that it reads as one
const hostedFields = [
  "port", "command", "env", "secret_env", "health_check_path", "start_timeout_seconds", "drain_seconds", "plan_name",
  "storage_size_gb", "storage_tier", "zone", "replicas", "auth",
] as const;

/** JSON Schema of a new app: these fields need an image. The empty values of the others mean that they are absent. */
export const hostedFieldRule = {
  dependentRequired: Object.fromEntries(
    hostedFields
      .filter((field) => !["command", "env", "secret_env"].includes(field))
      .map((field) => [field, ["image_ref"]]),
  ),
};

/** Throws INVALID_REQUEST for a field of hosted apps in a request without an image. */
export function refuseHostedFields(request: CreateAppRequest): void {
  const isPresent = (value: unknown) =>
    typeof value === "object" && value !== null ? Object.keys(value).length > 0 : value !== undefined;
  const values = new Map<string, unknown>(
    Object.entries(request).map(([name, value]) => [
      name.replaceAll(/[A-Z]/g, (each) => `_${each.toLowerCase()}`),
      value,
    ]),
  );
  const faults = hostedFields
    .filter((field) => isPresent(values.get(field)))
    .map((field) => ({ field, code: "image_ref_required", detail: "is only for an app with an image_ref" }));
  if (faults.length > 0) throw invalid(...faults);
}

/** Throws NOT_SUPPORTED if no host of the installation can run containers of apps, with the reason. */
export function requireHosting(registry: string, hosts: Iterable<{ readonly object: HostObject }>): void {
  const images = [...hosts].map(({ object }) => imageOf(object, appSoftware));
  if (registry !== "" && images.some((image) => image?.available === true)) return;
  const reason = images.find((image) => image?.reason !== undefined)?.reason ?? "no node image has them";
  throw new HoldfastError(
    "HOSTING_UNAVAILABLE",
    registry === ""
      ? "The installation has no registry of images. An operator sets HOLDFAST_REGISTRY_ADDRESS."
      : `No host runs containers of apps: ${reason}.`,
  );
}

type RequestedSize = Pick<CreateAppRequest, "planName" | "storageTier" | "zone" | "storageSizeGb" | "replicas">;

/** The machines of a new app. Throws INVALID_REQUEST for values that the catalog does not have. */
export function sizeOf(request: RequestedSize, catalog: CatalogData): HostingSize {
  const { size, faults } = chosenSize(request, catalog);
  if (faults.length > 0) throw invalid(...faults);
  return size;
}

/** The machines of a new app, with faults for values that the catalog does not have. */
export function chosenSize(
  request: RequestedSize,
  catalog: CatalogData,
): { readonly size: HostingSize; readonly faults: readonly Fault[] } {
  const planNames = catalog.plans.filter(({ kind }) => kind === "container").map(({ planName }) => planName);
  const tiers = catalog.storageTiers.map(({ storageTier }) => storageTier);
  const zones = catalog.zones.map(({ zone }) => zone);
  const faults: Fault[] = [];
  const choice = (field: string, value: string | undefined, offered: readonly string[]) => {
    const chosen = value ?? offered[0] ?? "";
    if (!offered.includes(chosen))
      faults.push({ field, code: "unknown", detail: `must be one of ${offered.join(", ")}` });
    return chosen;
  };
  const size = {
    planName: choice("plan_name", request.planName, planNames),
    storageTier: choice("storage_tier", request.storageTier, tiers),
    zone: choice("zone", request.zone, zones),
    storageSizeGb: request.storageSizeGb ?? defaultStorageGb,
    replicas: request.replicas ?? 1,
  };
  return { size, faults };
}

export interface SettingsContext {
  readonly appId: string;
  readonly organizationId: string;
  /** host:port of the platform's registry. */
  readonly registry: string;
  readonly sealer: Pick<Sealer, "seal" | "open">;
  /** Prefixes of the variables of the app's attachments. */
  readonly prefixes: readonly string[];
}

/** The settings of a new app's first deployment. Throws INVALID_REQUEST for an image that it cannot run. */
export function newSettings(request: CreateAppRequest, imageRef: string, context: SettingsContext): ReleaseSettings {
  const { env, secretEnv } = request;
  requireImage(imageRef, context);
  requirePort(request.port);
  requireVariables(env, secretEnv, context.prefixes);
  return {
    imageRef,
    command: request.command,
    environment: env,
    sealedEnvironment: sealVariables(context.appId, secretEnv, context.sealer),
    secretNames: Object.keys(secretEnv),
    port: request.port ?? defaultPort,
    healthCheckPath: request.healthCheckPath ?? "",
    startTimeoutSeconds: request.startTimeoutSeconds ?? defaultStartTimeoutSeconds,
    drainSeconds: request.drainSeconds ?? defaultDrainSeconds,
  };
}

/** Fields whose change is a deployment. */
// biome-ignore format: a table, aligned so that it reads as one
export const deployedFields = [
  "image_ref", "port", "command", "env", "secret_env", "health_check_path", "start_timeout_seconds", "drain_seconds",
] as const;

/** Fields that change some variables of a deployment. */
export const variableChanges = ["set_env", "unset_env", "set_secret_env", "unset_secret_env"] as const;

/** The settings after a change of these fields; each replaces the whole value, but those of `variableChanges`. */
export function changedSettings(
  before: ReleaseSettings,
  request: UpdateAppRequest,
  fields: readonly string[],
  context: SettingsContext,
): ReleaseSettings {
  const has = (field: (typeof deployedFields)[number] | (typeof variableChanges)[number]) => fields.includes(field);
  const imageRef = has("image_ref") ? (request.imageRef ?? "") : before.imageRef;
  if (has("image_ref")) requireImage(imageRef, context);
  if (has("port")) requirePort(request.port);
  const environment = changedVariables(has("env") ? request.env : before.environment, {
    set: has("set_env") ? request.setEnv : {},
    unset: has("unset_env") ? request.unsetEnv : [],
    field: "unset_env",
  });
  const areSecretsChanged = fields.some((field) => field.includes("secret_env"));
  const sealed = () => openVariables(context.appId, before.sealedEnvironment, context.sealer);
  const secrets = areSecretsChanged
    ? changedVariables(has("secret_env") ? request.secretEnv : sealed(), {
        set: has("set_secret_env") ? request.setSecretEnv : {},
        unset: has("unset_secret_env") ? request.unsetSecretEnv : [],
        field: "unset_secret_env",
      })
    : Object.fromEntries(before.secretNames.map((name) => [name, ""]));
  requireVariables(environment, secrets, context.prefixes);
  return {
    ...before,
    imageRef,
    environment,
    secretNames: Object.keys(secrets),
    ...(areSecretsChanged && { sealedEnvironment: sealVariables(context.appId, secrets, context.sealer) }),
    ...(has("port") && { port: request.port ?? defaultPort }),
    ...(has("command") && { command: request.command }),
    ...(has("health_check_path") && { healthCheckPath: request.healthCheckPath ?? "" }),
    ...(has("start_timeout_seconds") && {
      startTimeoutSeconds: request.startTimeoutSeconds ?? defaultStartTimeoutSeconds,
    }),
    ...(has("drain_seconds") && { drainSeconds: request.drainSeconds ?? defaultDrainSeconds }),
  };
}

/** The variables after a change of some. Throws INVALID_REQUEST for a removed one that is absent. */
function changedVariables(
  before: Readonly<Record<string, string>>,
  change: {
    readonly set: Readonly<Record<string, string>>;
    readonly unset: readonly string[];
    /** Name of `unset` in requests. */
    readonly field: string;
  },
): Readonly<Record<string, string>> {
  const { set, unset, field } = change;
  const absent = unset.find((name) => !Object.hasOwn(before, name));
  if (absent !== undefined) throw invalid({ field, code: "unknown", detail: `has ${absent}, which the app lacks` });
  const both = unset.find((name) => Object.hasOwn(set, name));
  if (both !== undefined) throw invalid({ field, code: "duplicate", detail: `has ${both}, which is set too` });
  const remaining = Object.entries(before).filter(([name]) => !unset.includes(name));
  const after = Object.fromEntries([...remaining, ...Object.entries(set)]);
  if (Object.keys(after).length > variablesMax)
    throw invalid({
      field: field.slice("un".length),
      code: "too_many",
      detail: `would give the app more than ${variablesMax} variables`,
    });
  return after;
}

function requireImage(imageRef: string, { organizationId, registry }: SettingsContext): void {
  const image = parseImageReference(imageRef, { organizationId, registry });
  if (typeof image === "string") throw invalid({ field: "image_ref", code: "invalid_value", detail: image });
}

/** Detail of a fault of a port at which containers reach the platform's API; undefined for another port. */
export function portFault(port: number | undefined): string | undefined {
  return port === platformApiPort ? `is in use in containers by the platform's API; choose another` : undefined;
}

function requirePort(port: number | undefined): void {
  const detail = portFault(port);
  if (detail !== undefined) throw invalid({ field: "port", code: "invalid_value", detail });
}

/** Throws INVALID_REQUEST for a variable of the app that its attachments with these prefixes set. */
export function requireNoReserved(
  names: Readonly<Record<string, readonly string[]>>,
  prefixes: readonly string[],
): void {
  const faults = Object.entries(names).flatMap(([field, all]) =>
    all
      .filter((name) => isReservedName(name, prefixes))
      .map((name) => ({ field, code: "env_name_reserved", detail: `has ${name}, which the platform sets` })),
  );
  if (faults.length > 0) throw invalid(...faults);
}

function requireVariables(
  env: Readonly<Record<string, string>>,
  secretEnv: Readonly<Record<string, string>>,
  prefixes: readonly string[],
): void {
  requireNoReserved({ env: Object.keys(env), secret_env: Object.keys(secretEnv) }, prefixes);
  const twice = Object.keys(secretEnv).find((name) => Object.hasOwn(env, name));
  if (twice !== undefined)
    throw invalid({ field: "secret_env", code: "duplicate", detail: `has ${twice}, which env has too` });
  for (const [field, variables] of [
    ["env", env],
    ["secret_env", secretEnv],
  ] as const) {
    if (Object.values(variables).some((value) => value.includes("\0")))
      throw invalid({ field, code: "invalid_value", detail: "has a value with a zero byte" });
    const detail = sizeFault(field, variables);
    if (detail !== undefined) throw invalid({ field, code: "too_long", detail });
  }
}

/** Detail of the fault of variables that are too large; undefined without one. */
export function sizeFault(
  field: keyof typeof variablesBytesMax,
  variables: Readonly<Record<string, string>>,
): string | undefined {
  const bytes = Object.entries(variables).reduce(
    (sum, [name, value]) => sum + name.length + Buffer.byteLength(value),
    0,
  );
  const max = variablesBytesMax[field];
  return bytes > max ? `has ${bytes} bytes; all names and values must have at most ${max}` : undefined;
}
