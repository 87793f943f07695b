import { invalid } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { type UpdateQuotaRequest, UpdateQuotaRequestSchema } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { defaultLimitMax, quotaField } from "#kernel/store/quota.ts";
import type { Organization } from "./organization.ts";
import type { Quotas } from "./quotas.ts";

/** Limits that an operator set, by quota name. */
type Limits = Organization["spec"]["quota"];

/** Limit and usage of each quota, by its name in the API. */
export function quotaFigures(
  quotas: Pick<Quotas, "usage" | "limits">,
  organization: Organization,
): Record<string, { readonly limit: number; readonly used: number }> {
  const usage = quotas.usage(organization.metadata.id);
  const limits = Object.entries(quotas.limits(organization));
  return Object.fromEntries(
    limits.map(([name, limit]) => [quotaField({ name }), { limit, used: lookUp(usage, name) ?? 0 }]),
  );
}

/** The members of `limits` that are quotas with a value. */
export function pickLimits(quotas: Pick<Quotas, "all">, limits: Readonly<Record<string, unknown>>): Limits {
  return Object.fromEntries(
    quotas.all().flatMap(({ name }) => {
      const limit = lookUp(limits, name);
      return typeof limit === "number" ? [[name, limit] as const] : [];
    }),
  );
}

/**
 * The limits after an update: those of fields that its mask names have its values or are absent, the others are
 * unchanged.
 * Throws INVALID_REQUEST for a name that is no quota or that the request has twice, and for a limit above the largest.
 */
export function updatedLimits(quotas: Pick<Quotas, "all">, before: Limits, request: UpdateQuotaRequest): Limits {
  const all = new Map(quotas.all().map((quota) => [quotaField(quota), quota]));
  const values: Readonly<Record<string, unknown>> = { ...request };
  const after = new Map(Object.entries(before));
  const named = new Set<string>();

  function change(field: string, name: string, limit: unknown): void {
    const quota = all.get(name);
    if (quota === undefined) {
      const detail = `names ${name}, which is not a quota; the quotas are ${[...all.keys()].join(", ")}`;
      throw invalid({ field, code: "unknown_field", detail });
    }
    if (named.has(name)) throw invalid({ field, code: "duplicate", detail: `names ${name} twice` });
    named.add(name);
    if (typeof limit !== "number") {
      after.delete(quota.name);
      return;
    }
    const { limitMax = defaultLimitMax } = quota;
    if (limit > limitMax) throw invalid({ field, code: "too_large", detail: `must be at most ${limitMax}` });
    after.set(quota.name, limit);
  }

  const paths = new Set(request.updateMask?.paths);
  const limits = paths.delete("limits") ? Object.entries(request.limits) : [];
  const defaults = paths.delete("defaults") ? request.defaults : [];
  for (const path of paths) {
    const found = UpdateQuotaRequestSchema.fields.find((field) => field.name === path && field.fieldKind === "scalar");
    if (found === undefined && all.has(path))
      throw invalid({ field: "update_mask", code: "unknown_field", detail: `names ${path}, which is set in limits` });
    change("update_mask", path, found && lookUp(values, found.localName));
  }
  for (const [name, limit] of limits) change(`limits.${name}`, name, limit);
  for (const [index, name] of defaults.entries()) change(`defaults[${index}]`, name, undefined);
  return Object.fromEntries(after);
}
