import type { FieldFault } from "@holdfast/common/errors.ts";

/** Automatic growth of a service's storage. */
export interface StorageAutoscale {
  readonly enabled: boolean;
  /** Maximum storage in GB; null until a user chose it. */
  readonly maxGb: number | null;
}

/** A requested change; absent fields do not change. */
export interface AutoscaleChoice {
  readonly enabled?: boolean | undefined;
  readonly maxGb?: number | undefined;
}

/** The last growth that was started or refused; `at` is in milliseconds since 1970. */
export interface LastGrowth {
  readonly toGb: number;
  readonly at: number;
  /** Reason of the refusal; absent if the growth was started. */
  readonly refused?: string;
}

/** The service's setting, disabled by default. */
export function autoscaleOf({ storageAutoscale }: { readonly storageAutoscale?: StorageAutoscale }): StorageAutoscale {
  return storageAutoscale ?? { enabled: false, maxGb: null };
}

/** The setting after a request; undefined if nothing must be stored. */
export function chosenAutoscale(
  spec: { readonly storageAutoscale?: StorageAutoscale },
  choice: AutoscaleChoice | undefined,
): StorageAutoscale | undefined {
  if (choice === undefined) return spec.storageAutoscale;
  const { enabled, maxGb } = autoscaleOf(spec);
  return { enabled: choice.enabled ?? enabled, maxGb: choice.maxGb ?? maxGb };
}

/** Error if storage of this size cannot have the setting; undefined if it can. */
export function autoscaleFault(
  { enabled, maxGb }: StorageAutoscale,
  storageSizeGb: number,
): (FieldFault & { readonly pointer: string }) | undefined {
  const fault = { field: "storage_autoscale.max_gb", pointer: "/storage_autoscale/max_gb" };
  if (enabled && maxGb === null)
    return { ...fault, code: "required", detail: "is required: the limit to which the storage may grow" };
  if (enabled && maxGb !== null && maxGb < storageSizeGb)
    return { ...fault, code: "too_small", detail: `must be at least ${storageSizeGb}, the service's current storage` };
  return undefined;
}
