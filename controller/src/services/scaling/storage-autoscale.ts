import type { FieldFault } from "@holdfast/common/errors.ts";

/** May a service's storage grow by itself, and how far? */
export interface StorageAutoscale {
  readonly enabled: boolean;
  /** Null as long as nobody chose it. */
  readonly maxGb: number | null;
}

/** What is asked for; what is left out stays as it is. */
export interface AutoscaleChoice {
  readonly enabled?: boolean | undefined;
  readonly maxGb?: number | undefined;
}

/** The last growth that was begun, or refused, at `at` in milliseconds since 1970. */
export interface AutoscaleMemory {
  readonly toGb: number;
  readonly at: number;
  /** Why it was not even begun. */
  readonly refused?: string;
}

/** Pure: the service's, off as long as nobody asked for it. */
export function autoscaleOf({ storageAutoscale }: { readonly storageAutoscale?: StorageAutoscale }): StorageAutoscale {
  return storageAutoscale ?? { enabled: false, maxGb: null };
}

/** Pure: what the service's is after the request; undefined where there is nothing to keep. */
export function chosenAutoscale(
  spec: { readonly storageAutoscale?: StorageAutoscale },
  choice: AutoscaleChoice | undefined,
): StorageAutoscale | undefined {
  if (choice === undefined) return spec.storageAutoscale;
  const { enabled, maxGb } = autoscaleOf(spec);
  return { enabled: choice.enabled ?? enabled, maxGb: choice.maxGb ?? maxGb };
}

/** Pure: why storage of this size cannot grow so; undefined where it can. */
export function autoscaleFault(
  { enabled, maxGb }: StorageAutoscale,
  storageSizeGb: number,
): (FieldFault & { readonly pointer: string }) | undefined {
  const fault = { field: "storage_autoscale.max_gb", pointer: "/storage_autoscale/max_gb" };
  if (enabled && maxGb === null)
    return { ...fault, code: "required", detail: "must say how large the storage may become" };
  if (enabled && maxGb !== null && maxGb < storageSizeGb)
    return { ...fault, code: "too_small", detail: `must be at least ${storageSizeGb}, which the service has` };
  return undefined;
}
