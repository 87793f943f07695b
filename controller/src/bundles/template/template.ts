import { parse } from "yaml";
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

export interface TemplateResource {
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
export function descriptorOf(
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
