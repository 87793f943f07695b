import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { Descriptor, DescriptorReader } from "#composition/descriptor.ts";
import type { ResourceSpec } from "#resource-kind/resource-kind.ts";
import { descriptorOf, type Template, type TemplateResource } from "./template.ts";

/** A template with its availability in this installation. */
export interface TemplateOffer {
  /** The descriptor that a launch deploys; undefined if a kind of resource is unavailable. */
  readonly descriptor: Descriptor | undefined;
  /** Reason for which it cannot be launched; undefined if it can. */
  readonly reason: string | undefined;
}

/** Choices of a launch besides the template. */
export interface LaunchChoice {
  readonly zone?: string | undefined;
  readonly planName?: string | undefined;
}

/** The availability of a template, by what the installation supports. */
export function offerOf(
  template: Template,
  reader: DescriptorReader,
  name = template.name,
  choice: LaunchChoice = {},
): TemplateOffer {
  const missing = template.resources.flatMap(({ extensions }) => extensions);
  try {
    const descriptor = reader.readValue(descriptorOf(template, name, (resource) => chosen(resource, choice)));
    const extension =
      missing.length > 0 ? `Extensions of services are not supported yet: ${missing.join(", ")}.` : undefined;
    return { descriptor, reason: reader.unavailable(descriptor) ?? extension };
  } catch (error) {
    if (error instanceof HoldfastError && error.key === "KIND_NOT_AVAILABLE")
      return { descriptor: undefined, reason: error.detail };
    throw error;
  }
}

/** The descriptor of a launch. Throws TEMPLATE_UNAVAILABLE with the reason. */
export function requireOffer(
  template: Template,
  reader: DescriptorReader,
  name: string,
  choice: LaunchChoice,
): Descriptor {
  const { descriptor, reason } = offerOf(template, reader, name, choice);
  if (descriptor !== undefined && reason === undefined) return descriptor;
  throw new HoldfastError("TEMPLATE_UNAVAILABLE", reason ?? "This installation cannot launch the template.");
}

/** Throws INVALID_REQUEST for a zone or plan that the catalog lacks. */
export function requireChoice({ zone, planName }: LaunchChoice, catalog: CatalogData): void {
  const zones = catalog.zones.map((each) => each.zone);
  const plans = catalog.plans.map((each) => each.planName);
  const faults = [
    ...(zone !== undefined && !zones.includes(zone)
      ? [{ field: "zone", code: "unknown", detail: `must be one of ${zones.join(", ")}` }]
      : []),
    ...(planName !== undefined && !plans.includes(planName)
      ? [{ field: "plan_name", code: "unknown", detail: `must be one of ${plans.join(", ")}` }]
      : []),
  ];
  if (faults.length > 0) throw invalid(...faults);
}

function chosen({ kind, spec }: TemplateResource, { zone, planName }: LaunchChoice): ResourceSpec {
  if (kind !== "database" && kind !== "files") return {};
  return {
    ...(zone !== undefined && !Object.hasOwn(spec, "zone") && { zone }),
    ...(planName !== undefined && { plan_name: planName }),
  };
}
