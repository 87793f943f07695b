import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { parse } from "yaml";
import type { CatalogData } from "#catalog/catalog.ts";
import type { Descriptor, DescriptorReader } from "#composition/descriptor.ts";
import type { ResourceSpec } from "#resource-kind/resource-kind.ts";

/** One version of a template: a descriptor whose name is chosen at the launch. */
export interface Template {
  readonly name: string;
  /** Version, such as `1.2.0`. */
  readonly version: string;
  readonly title: string;
  readonly description: string;
  readonly resources: readonly TemplateResource[];
  readonly dependencies: Readonly<Record<string, readonly string[]>>;
  /** True if a launch needs an enabled provider of models. */
  readonly needsProvider: boolean;
}

interface TemplateResource {
  readonly name: string;
  readonly kind: string;
  readonly spec: ResourceSpec;
  /** Role of a pipeline's service, such as `vector-store`. */
  readonly role?: string;
  /** Extensions to create in the first database of the service. */
  readonly extensions: readonly string[];
}

interface WrittenTemplate {
  readonly title?: unknown;
  readonly description?: unknown;
  readonly requirements?: { readonly inference_provider?: unknown };
  readonly resources?: unknown;
  readonly dependencies?: Readonly<Record<string, readonly string[]>>;
}

interface WrittenResource {
  readonly logical_name?: unknown;
  readonly kind?: unknown;
  readonly spec?: ResourceSpec;
  readonly role?: string;
  readonly extensions?: readonly string[];
}

/**
 * Parses a template; throws an error that names the fault. Specs are validated by each launch, because the available
 * kinds and sizes may change.
 */
export function parseTemplate(name: string, version: string, text: string): Template {
  const fail = (reason: string) => new Error(`template ${name} ${version}: ${reason}`);
  const written = parse(text) as WrittenTemplate | null;
  if (typeof written?.title !== "string" || typeof written.description !== "string")
    throw fail("title and description are required");
  if (!Array.isArray(written.resources) || written.resources.length === 0) throw fail("resources are required");
  const resources = written.resources.map((resource: WrittenResource): TemplateResource => {
    const { logical_name: logicalName, kind, spec = {}, role, extensions = [] } = resource;
    if (typeof logicalName !== "string" || typeof kind !== "string")
      throw fail("logical_name and kind of each resource are required");
    return { name: logicalName, kind, spec, extensions, ...(role !== undefined && { role }) };
  });
  const { title, description, dependencies = {}, requirements } = written;
  const needsProvider = requirements?.inference_provider === true;
  return { name, version, title, description, resources, dependencies, needsProvider };
}

/** The template as a descriptor with this name; `added` returns additional values for the spec of a resource. */
function descriptorOf(
  { resources, dependencies }: Template,
  name: string,
  added: (resource: TemplateResource) => ResourceSpec = () => ({}),
) {
  return {
    name,
    resources: resources.map((resource) => ({
      logical_name: resource.name,
      kind: resource.kind,
      spec: { ...resource.spec, ...added(resource) },
    })),
    dependencies,
  };
}

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
