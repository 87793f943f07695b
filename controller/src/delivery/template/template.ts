import { parse } from "yaml";
import type { ResourceSpec } from "#resource-kind/resource-kind.ts";

/** One version of a template: a descriptor whose name is that of whoever launches it. */
export interface Template {
  readonly name: string;
  /** Such as 1.2.0. */
  readonly version: string;
  readonly title: string;
  readonly description: string;
  readonly resources: readonly TemplateResource[];
  readonly dependencies: Readonly<Record<string, readonly string[]>>;
  /** Whoever launches it has a provider of models. */
  readonly needsProvider: boolean;
}

export interface TemplateResource {
  readonly name: string;
  readonly kind: string;
  readonly spec: ResourceSpec;
  /** What a service of a pipeline is for. */
  readonly role?: string;
  /** Extensions that its first database has. */
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

/** Reads a template; throws with what is wrong. Specs are checked when it is asked for: by then it is known what there is. */
export function parseTemplate(name: string, version: string, text: string): Template {
  const fail = (why: string) => new Error(`template ${name} ${version}: ${why}`);
  const written = parse(text) as WrittenTemplate | null;
  if (typeof written?.title !== "string" || typeof written.description !== "string")
    throw fail("needs a title and a description");
  if (!Array.isArray(written.resources) || written.resources.length === 0) throw fail("needs resources");
  const resources = written.resources.map((resource: WrittenResource): TemplateResource => {
    const { logical_name: logicalName, kind, spec = {}, role, extensions = [] } = resource;
    if (typeof logicalName !== "string" || typeof kind !== "string")
      throw fail("each resource has a logical_name and a kind");
    return { name: logicalName, kind, spec, extensions, ...(role !== undefined && { role }) };
  });
  const { title, description, dependencies = {}, requirements } = written;
  const needsProvider = requirements?.inference_provider === true;
  return { name, version, title, description, resources, dependencies, needsProvider };
}

/** Pure: as a descriptor that is named so; `added` are members of specs that the template does not have. */
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
