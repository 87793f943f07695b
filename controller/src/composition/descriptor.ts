import { type FieldFault, HoldfastError, pointerOf } from "@holdfast/common/errors.ts";
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import { isReservedName, prefixOf } from "#services/resource-kind/environment-of.ts";
import type { Attachment, ResourceSpec } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import { cycleOf, type Dependent } from "./member.ts";
import { descriptorBytesMax, descriptorSchema, resourcesMax } from "./descriptor-schema.ts";
import type { DesiredMember } from "./composition.ts";

/** A valid descriptor. */
export interface Descriptor {
  readonly name: string;
  readonly members: readonly DesiredMember[];
}

/** The readable parts of a user's descriptor, valid or not. */
interface Written {
  readonly name: string;
  readonly resources: readonly WrittenResource[];
  readonly dependencies: ReadonlyMap<string, readonly string[]>;
}

interface WrittenResource {
  /** Path in the descriptor, such as `resources[0]`. */
  readonly at: string;
  readonly name: string;
  readonly kind: string;
  readonly spec: ResourceSpec;
}

/** Parses the descriptors of projects and of templates. */
export interface DescriptorReader {
  /**
   * Throws INVALID_DESCRIPTOR with all faults, KIND_NOT_AVAILABLE for a kind that is not available yet, and
   * NOT_POSSIBLE for a resource that this installation cannot provide.
   */
  read(text: string): Descriptor;
  /**
   * Reads a descriptor from a value, without the check of `unavailable`. Throws the other errors of `read`.
   */
  readValue(value: unknown): Descriptor;
  /** Reason for which this installation cannot provide the resources; undefined if it can. */
  unavailable(descriptor: Descriptor): string | undefined;
}

export function createDescriptorReader(kinds: ResourceKinds): DescriptorReader {
  const schema = descriptorSchema(kinds);
  // `verbose` adds the value to each error, so that the message can name its type.
  const options = { allErrors: true, strict: true, strictTypes: false, strictRequired: false, verbose: true };
  const validate = new Ajv2020(options).compile(schema);

  function readValue(value: unknown): Descriptor {
    const ofShape = validate(value) ? [] : (validate.errors ?? []).flatMap(faultOf);
    const written = readable(value);
    const valid = written.resources.filter(({ at }) => !ofShape.some(({ field }) => isBelow(field, at)));
    const members = valid.flatMap((resource) => desired(resource, written));
    const cycle = cycleOf(needsOf(written, members));
    const faults = [
      ...ofShape,
      ...namesFaults(written),
      ...(cycle === undefined ? [] : [cycleFault(cycle)]),
      ...members.flatMap((member) => memberFaults(member, members, written)),
    ];
    if (faults.length > 0) throw invalidDescriptor(faults);
    for (const { name: consumer, attachments } of members)
      for (const { name } of attachments)
        requireOpenPort(
          consumer,
          members.find((member) => member.name === name),
        );
    const missing = written.resources.find(({ kind }) => kinds.isPlanned(kind));
    if (missing !== undefined) {
      const detail = `${missing.name}: this installation has no resources of kind ${missing.kind}.`;
      throw new HoldfastError("KIND_NOT_AVAILABLE", detail, { members: { kind: missing.kind } });
    }
    return { name: written.name, members };
  }

  function desired({ name, kind: writtenKind, spec }: WrittenResource, { dependencies }: Written): DesiredMember[] {
    const named = kinds.named(writtenKind);
    if (named === undefined) return [];
    const { kind, implied } = named;
    const normalized = kind.normalize({ ...implied, ...spec });
    const attachments = kind.consumer?.attachmentsOf(normalized) ?? [];
    const needs = [...new Set([...(dependencies.get(name) ?? []), ...attachments.map((each) => each.name)])].toSorted();
    return [{ name, kind: kind.kind, writtenKind, spec: normalized, needs, attachments }];
  }

  function memberFaults(
    member: DesiredMember,
    members: readonly DesiredMember[],
    { resources }: Written,
  ): readonly FieldFault[] {
    const at = resources.find(({ name }) => name === member.name)?.at ?? "resources";
    const kind = kinds.of(member.kind);
    const spec = kind.faults(member.spec).map((fault) => below(`${at}.spec`, fault));
    return [...spec, ...attachmentFaults(member, resources, `${at}.spec`)];
  }

  function attachmentFaults(
    { name, kind, spec, attachments }: DesiredMember,
    resources: readonly WrittenResource[],
    at: string,
  ): readonly FieldFault[] {
    const consumer = kinds.of(kind).consumer;
    if (consumer === undefined) return [];
    const prefixes = attachments.map(prefixOfAttachment);
    const twice = prefixes.filter((prefix, index) => prefixes.indexOf(prefix) !== index);
    const missing = attachments.filter(
      (each) => each.name === name || !resources.some((resource) => resource.name === each.name),
    );
    return [
      ...[...new Set(twice)].map((prefix) =>
        fault(`${at}.attachments`, "prefix_collision", `two attachments have the prefix ${prefix}`),
      ),
      ...missing.map((each) =>
        fault(
          `${at}.attachments`,
          "unknown",
          each.name === name ? "names itself" : `${each.name} is not another resource of the descriptor`,
        ),
      ),
      ...consumer
        .variablesOf(spec)
        .filter((variable) => isReservedName(variable, prefixes))
        .map((variable) => fault(`${at}.env.${variable}`, "env_name_reserved", "is set by the platform")),
    ];
  }

  function requireOpenPort(consumer: string, target: DesiredMember | undefined): void {
    if (target === undefined || kinds.of(target.kind).portOf?.(target.spec) !== 80) return;
    throw new HoldfastError(
      "PORT_80_RESERVED",
      `${consumer} cannot reach ${target.name}, which listens on port 80: choose another port.`,
    );
  }

  function unavailable({ members }: Descriptor): string | undefined {
    for (const { name, kind, spec } of members) {
      const reason = kinds.of(kind).unavailable(spec);
      if (reason !== undefined) return `${name}: ${reason}`;
    }
    return undefined;
  }

  return {
    readValue,
    unavailable,
    read(text) {
      if (Buffer.byteLength(text) > descriptorBytesMax)
        throw invalidDescriptor([fault("descriptor", "too_long", `has more than ${descriptorBytesMax} bytes`)]);
      const descriptor = readValue(parsed(text));
      const reason = unavailable(descriptor);
      if (reason !== undefined) throw new HoldfastError("NOT_POSSIBLE", reason);
      return descriptor;
    },
  };
}

/** Maximum length of a name. */
const nameMax = 63;

/** Prefix of the environment variables of an attachment. */
function prefixOfAttachment({ name, prefix }: Attachment): string {
  return prefix ?? prefixOf(name);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidDescriptor([fault("descriptor", "invalid_json", "is not JSON")]);
  }
}

function namesFaults({ resources, dependencies }: Written): readonly FieldFault[] {
  const names = new Set<string>();
  const twice = resources.flatMap(({ at, name }) => {
    if (names.has(name)) return [fault(`${at}.logical_name`, "duplicate", `${name} is the name of another resource`)];
    names.add(name);
    return [];
  });
  const unknown = [...dependencies].flatMap(([name, needs]) => [
    ...(names.has(name) ? [] : [fault(`dependencies.${name}`, "unknown", `${name} is not a resource`)]),
    ...needs.flatMap((needed, index) => {
      if (needed === name) return [fault(`dependencies.${name}[${index}]`, "own_dependency", "names itself")];
      return names.has(needed)
        ? []
        : [fault(`dependencies.${name}[${index}]`, "unknown", `${needed} is not a resource`)];
    }),
  ]);
  return [...twice, ...unknown];
}

/** The dependencies of all named resources. A resource that names itself is another fault, not a cycle. */
function needsOf({ resources, dependencies }: Written, members: readonly DesiredMember[]): readonly Dependent[] {
  const names = new Map(members.map((member) => [member.name, member.needs]));
  return resources.map(({ name }) => {
    const needs = names.get(name) ?? dependencies.get(name) ?? [];
    return { name, needs: needs.filter((needed) => needed !== name) };
  });
}

/**
 * The readable parts of any value. Too many resources are not read at all, and neither are names that are too
 * long.
 */
function readable(value: unknown): Written {
  const { name, resources, dependencies } = isObject(value) ? value : {};
  const listed = Array.isArray(resources) && resources.length <= resourcesMax ? resources : [];
  const needs = isObject(dependencies) && listed.length > 0 ? Object.entries(dependencies) : [];
  return {
    name: typeof name === "string" ? name : "",
    resources: listed.flatMap((resource: unknown, index): WrittenResource[] => {
      if (!isObject(resource)) return [];
      const { logical_name: logicalName, kind, spec } = resource;
      if (!isShort(logicalName)) return [];
      const written = { kind: typeof kind === "string" ? kind : "", spec: isObject(spec) ? spec : {} };
      return [{ at: `resources[${index}]`, name: logicalName, ...written }];
    }),
    dependencies: new Map(
      needs
        .slice(0, resourcesMax)
        .flatMap(([from, to]) =>
          Array.isArray(to) && isShort(from) ? [[from, to.slice(0, resourcesMax).filter(isShort)]] : [],
        ),
    ),
  };
}

function isShort(value: unknown): value is string {
  return typeof value === "string" && value.length <= nameMax;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** True if the field is equal to the path or below it. */
function isBelow(field: string, path: string): boolean {
  return field === path || field.startsWith(`${path}.`);
}

function cycleFault(path: readonly string[]): FieldFault {
  return fault("dependencies", "cycle", `has a cycle: ${path.join(" -> ")}`);
}

/** The faults of a schema error; `if` and `propertyNames` only repeat the error of another keyword. */
function faultOf({ instancePath, keyword, params, message, data }: ErrorObject): FieldFault[] {
  if (keyword === "if" || keyword === "propertyNames") return [];
  const unknown = keyword === "additionalProperties" ? `/${escaped(String(params["additionalProperty"]))}` : "";
  const missing = keyword === "required" ? `/${escaped(String(params["missingProperty"]))}` : "";
  const pointer = `${instancePath}${unknown}${missing}`;
  const allowed = keyword === "enum" ? `: ${(params["allowedValues"] as unknown[]).join(", ")}` : "";
  const detail =
    keyword === "additionalProperties"
      ? "is not a known member"
      : keyword === "required"
        ? "is missing"
        : keyword === "type"
          ? typeDetail(params["type"], data)
          : `${message ?? keyword}${allowed}`;
  return [
    {
      field: fieldOf(pointer) || "descriptor",
      pointer: `/descriptor${pointer}`,
      code: codeOf(keyword),
      detail: cut(detail),
    },
  ];
}

/** Requirements of each type in terms of YAML. No text contains the value, which may be a secret. */
const typeDetails: ReadonlyMap<unknown, string> = new Map(
  Object.entries<string>({
    string: 'must be text; a value that looks like a number or true needs quotes, as in version: "17"',
    integer: "must be a whole number, without quotes and without a unit",
    number: "must be a number, without quotes and without a unit",
    boolean: "must be true or false (not yes or no), without quotes",
    object: 'must have members: lines such as "key: value", indented below it',
    array: 'must be a list: lines that begin with "- ", below it',
  }),
);

function typeDetail(type: unknown, value: unknown): string {
  return `${typeDetails.get(type) ?? `must be ${String(type)}`}; it is ${typeName(value)}`;
}

function typeName(value: unknown): string {
  if (value === null) return "empty";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map";
  return typeof value === "string" ? "text" : `a ${typeof value}`;
}

const codes: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({
    additionalProperties: "unknown_field",
    required: "required",
    enum: "unknown",
    not: "conflict",
    pattern: "pattern",
  }),
);

function codeOf(keyword: string): string {
  return codes.get(keyword) ?? "invalid";
}

function escaped(name: string): string {
  return cut(name).replaceAll("~", "~0").replaceAll("/", "~1");
}

const detailMax = 300;

function cut(text: string): string {
  return text.length > detailMax ? `${text.slice(0, detailMax)}…` : text;
}

/** Converts a JSON pointer such as `/resources/0/spec` to a field such as `resources[0].spec`. */
function fieldOf(pointer: string): string {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path === "" ? part : `${path}.${part}`), "");
}

/** Moves a fault of a spec below the path of its member. */
function below(path: string, { field, pointer, ...rest }: FieldFault): FieldFault {
  return { ...rest, field: `${path}.${field}`, pointer: `/descriptor${pointerOf(path)}${pointer ?? ""}` };
}

function fault(field: string, code: string, detail: string): FieldFault {
  return { field, pointer: field === "descriptor" ? "/descriptor" : `/descriptor${pointerOf(field)}`, code, detail };
}

/** The error of an invalid descriptor; its detail has the first five faults. */
export function invalidDescriptor(errors: readonly FieldFault[]): HoldfastError {
  const words = errors.slice(0, 5).map(({ field, detail }) => `${field} ${detail}`);
  return new HoldfastError("INVALID_DESCRIPTOR", words.join("; "), { errors });
}
