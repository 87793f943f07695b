import type { PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import type { InstanceKind } from "@holdfast/compute/compute-provider.ts";

/** The offer of an installation as data. An operator can replace it by a file of the same shape. */
export interface CatalogData {
  readonly currency: string;
  readonly plans: readonly PlanData[];
  /** Storage tiers; the first is the default. */
  readonly storageTiers: readonly StorageTierData[];
  readonly zones: readonly { readonly zone: string; readonly title: string }[];
  readonly limits: {
    readonly storageSizeGbMin: number;
    readonly storageSizeGbMax: number;
    readonly ttlHoursMin: number;
    readonly ttlHoursMax: number;
    readonly allowedCidrsMax: number;
    readonly tagsMax: number;
  };
}

export interface PlanData {
  readonly planName: string;
  readonly vcpu: number;
  readonly memoryGb: number;
  /**
   * Size of a machine's root disk, if it has one: the image (half a GB) and all data outside of the data disk. Logs,
   * journal and samples are on another volume, survive a change of the image, and are bounded independently of the plan
   * (docs/operate/hosts.md).
   */
  readonly rootGb: number;
  /** Type of the plan's machines. */
  readonly kind: InstanceKind;
  /** Integer cents per month. */
  readonly monthlyCents: number;
}

export interface StorageTierData {
  readonly storageTier: string;
  readonly medium: string;
  readonly use: string;
  /** Integer cents per month and GB. */
  readonly monthlyCentsPerGb: number;
}

// biome-ignore format: a table, aligned so that it reads as one
export const defaultCatalog: CatalogData = {
  currency: "EUR",
  plans: [
    { planName: "tier-1",  vcpu: 1,  memoryGb: 2,  rootGb: 4,  kind: "container", monthlyCents: 1_500 },
    { planName: "tier-2",  vcpu: 2,  memoryGb: 4,  rootGb: 4,  kind: "container", monthlyCents: 3_000 },
    { planName: "tier-4",  vcpu: 4,  memoryGb: 8,  rootGb: 8,  kind: "container", monthlyCents: 6_000 },
    { planName: "tier-8",  vcpu: 8,  memoryGb: 16, rootGb: 8,  kind: "container", monthlyCents: 12_000 },
    { planName: "tier-16", vcpu: 16, memoryGb: 32, rootGb: 16, kind: "container", monthlyCents: 24_000 },
  ],
  storageTiers: [
    { storageTier: "maxiops",  medium: "NVMe SSD", use: "production databases", monthlyCentsPerGb: 20 },
    { storageTier: "standard", medium: "HDD",      use: "archival, low I/O",    monthlyCentsPerGb: 6 },
  ],
  zones: [{ zone: "local", title: "This machine" }],
  limits: { storageSizeGbMin: 1, storageSizeGbMax: 16_384, ttlHoursMin: 1, ttlHoursMax: 720, allowedCidrsMax: 256, tagsMax: 50 },
};

/**
 * Resources of a plan with a disk of this size, from which an engine's settings are derived; undefined for an unknown
 * plan.
 */
export function planSizeOf({ plans }: CatalogData, planName: string, storageSizeGb: number): PlanSize | undefined {
  const plan = plans.find((offered) => offered.planName === planName);
  return plan && { vcpu: plan.vcpu, memoryBytes: plan.memoryGb * gib, storageBytes: storageSizeGb * gib };
}

const gib = 1024 ** 3;

/**
 * The catalog with an additional plan `<plan>-vm`, of virtual machines, for each of these plans. Throws for an unknown
 * plan.
 */
export function withVirtualMachines(catalog: CatalogData, planNames: readonly string[]): CatalogData {
  const virtual = planNames.map((planName): PlanData => {
    const plan = catalog.plans.find((offered) => offered.planName === planName);
    if (plan === undefined) {
      const offeredNames = catalog.plans.map((offered) => offered.planName).join(", ");
      throw new Error(`HOLDFAST_VM_PLANS: ${planName} is not one of ${offeredNames}`);
    }
    return asVirtualMachine(plan);
  });
  return { ...catalog, plans: [...catalog.plans, ...virtual] };
}

function asVirtualMachine(plan: PlanData): PlanData {
  return { ...plan, planName: `${plan.planName}-vm`, kind: "virtual_machine" };
}

/** The catalog with only these storage tiers; the first is the default. Throws for an unknown tier. */
export function catalogWith(catalog: CatalogData, tiers: readonly string[]): CatalogData {
  const storageTiers = tiers.map((name) => {
    const tier = catalog.storageTiers.find(({ storageTier }) => storageTier === name);
    if (tier === undefined) {
      const offeredNames = catalog.storageTiers.map(({ storageTier }) => storageTier).join(", ");
      throw new Error(`HOLDFAST_STORAGE_TIERS: ${name} is not one of ${offeredNames}`);
    }
    return tier;
  });
  return { ...catalog, storageTiers };
}

/**
 * The plan of this name. Throws for an unknown plan, because requests were checked before. A service retains its `-vm`
 * plan when virtual machines are no longer offered.
 */
export function planOf({ plans }: CatalogData, planName: string): PlanData {
  const plan = [...plans, ...plans.map(asVirtualMachine)].find((candidate) => candidate.planName === planName);
  if (plan === undefined) throw new Error(`the catalog has no plan ${planName}`);
  return plan;
}
