import type { FieldFault } from "@holdfast/common/errors.ts";
import { HoldfastError, pointerOf } from "@holdfast/common/errors.ts";
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import { isReservedName, prefixOf } from "#resource-kind/environment-of.ts";
import type { Attachment, ResourceSpec } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import { cycleOf } from "./dependency-order.ts";
import { descriptorBytesMax, descriptorSchema } from "./descriptor-schema.ts";
import type { DesiredMember } from "./desired-member.ts";

/** A descriptor without faults. */
export interface Descriptor {
  readonly name: string;
  readonly members: readonly DesiredMember[];
}

/** As users write it, once its shape is right. */
interface WrittenDescriptor {
  readonly name: string;
  readonly resources: readonly { readonly logical_name: string; readonly kind: string; readonly spec?: ResourceSpec }[];
  readonly dependencies?: Readonly<Record<string, readonly string[]>>;
}

/** Reads descriptors of projects, and those inside of templates. */
export interface DescriptorReader {
  /**
   * Throws INVALID_DESCRIPTOR with all faults, KIND_NOT_AVAILABLE for a kind that is still to come, and NOT_POSSIBLE for a
   * resource that cannot be had here.
   */
  read(text: string): Descriptor;
  /** The same of a value, where what cannot be had here is passed over: `unavailable` tells of it. */
  readValue(value: unknown): Descriptor;
  /** Why it cannot be had here; undefined when it can. */
  unavailable(descriptor: Descriptor): string | undefined;
}

export function createDescriptorReader(kinds: ResourceKinds): DescriptorReader {
  const schema = descriptorSchema(kinds);
  const validate = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, strictRequired: false }).compile(
    schema,
  );

  function readValue(value: unknown): Descriptor {
    if (!validate(value)) throw invalidDescriptor((validate.errors ?? []).flatMap(faultOf));
    const written = value as WrittenDescriptor;
    const toCome = written.resources.filter(({ kind }) => kinds.isToCome(kind));
    const members = written.resources.flatMap((resource) => desired(resource, written));
    const faults = [...namesFaults(written), ...members.flatMap((member) => memberFaults(member, members, written))];
    if (faults.length > 0) throw invalidDescriptor(faults);
    const [missing] = toCome;
    if (missing !== undefined) {
      const detail = `${missing.logical_name}: this installation has no resources of kind ${missing.kind}.`;
      throw new HoldfastError("KIND_NOT_AVAILABLE", detail, { members: { kind: missing.kind } });
    }
    const cycle = cycleOf(members);
    if (cycle !== undefined) throw invalidDescriptor([cycleFault(cycle)]);
    return { name: written.name, members };
  }

  function desired(
    { logical_name: name, kind: writtenKind, spec = {} }: WrittenDescriptor["resources"][number],
    { dependencies = {} }: WrittenDescriptor,
  ): DesiredMember[] {
    const named = kinds.named(writtenKind);
    if (named === undefined) return [];
    const { kind, implied } = named;
    const normalized = kind.normalize({ ...implied, ...spec });
    const attachments = kind.consumer?.attachmentsOf(normalized) ?? [];
    const declared = Object.hasOwn(dependencies, name) ? (dependencies[name] ?? []) : [];
    const needs = [...new Set([...declared, ...attachments.map((each) => each.name)])].toSorted();
    return [{ name, kind: kind.kind, writtenKind, spec: normalized, needs, attachments }];
  }

  function memberFaults(
    member: DesiredMember,
    members: readonly DesiredMember[],
    written: WrittenDescriptor,
  ): readonly FieldFault[] {
    const at = `resources[${written.resources.findIndex(({ logical_name: name }) => name === member.name)}]`;
    const kind = kinds.of(member.kind);
    const spec = kind.faults(member.spec).map((fault) => below(`${at}.spec`, fault));
    return [...spec, ...attachmentFaults(member, members, `${at}.spec`)];
  }

  function attachmentFaults(
    { name, kind, spec, attachments }: DesiredMember,
    members: readonly DesiredMember[],
    at: string,
  ): readonly FieldFault[] {
    const consumer = kinds.of(kind).consumer;
    if (consumer === undefined) return [];
    const prefixes = attachments.map(prefixOfAttachment);
    const twice = prefixes.filter((prefix, index) => prefixes.indexOf(prefix) !== index);
    const missing = attachments.filter(
      (each) => each.name === name || !members.some((member) => member.name === each.name),
    );
    for (const { name: target } of attachments) requireOpenPort(members.find((member) => member.name === target));
    return [
      ...[...new Set(twice)].map((prefix) =>
        fault(`${at}.attachments`, "prefix_collision", `two attachments have the prefix ${prefix}`),
      ),
      ...missing.map((each) =>
        fault(
          `${at}.attachments`,
          "unknown",
          each.name === name ? "names itself" : `${each.name} is no other resource here`,
        ),
      ),
      ...consumer
        .variablesOf(spec)
        .filter((variable) => isReservedName(variable, prefixes))
        .map((variable) => fault(`${at}.env.${variable}`, "env_name_reserved", "is set by the platform")),
    ];
  }

  function requireOpenPort(target: DesiredMember | undefined): void {
    if (target === undefined || kinds.of(target.kind).portOf?.(target.spec) !== 80) return;
    throw new HoldfastError("PORT_80_RESERVED", `${target.name} listens on port 80, which others cannot reach.`);
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

/** The prefix of the variables of an attachment. */
function prefixOfAttachment({ name, prefix }: Attachment): string {
  return prefix ?? prefixOf(name);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidDescriptor([fault("descriptor", "invalid_json", "is no JSON")]);
  }
}

function namesFaults({ resources, dependencies = {} }: WrittenDescriptor): readonly FieldFault[] {
  const names = resources.map(({ logical_name: name }) => name);
  const known = new Set(names);
  const twice = names.flatMap((name, index) =>
    names.indexOf(name) === index
      ? []
      : [fault(`resources[${index}].logical_name`, "duplicate", `${name} is the name of another resource`)],
  );
  const unknown = Object.entries(dependencies).flatMap(([name, needs]) => [
    ...(known.has(name) ? [] : [fault(`dependencies.${name}`, "unknown", `${name} is no resource`)]),
    ...needs.flatMap((needed, index) => {
      if (needed === name) return [fault(`dependencies.${name}[${index}]`, "own_dependency", "names itself")];
      return known.has(needed) ? [] : [fault(`dependencies.${name}[${index}]`, "unknown", `${needed} is no resource`)];
    }),
  ]);
  return [...twice, ...unknown];
}

function cycleFault(path: readonly string[]): FieldFault {
  return fault("dependencies", "cycle", `has a cycle: ${path.join(" -> ")}`);
}

/** The faults of a keyword; what only says that another schema does not hold is told by that one. */
function faultOf({ instancePath, keyword, params, message }: ErrorObject): FieldFault[] {
  if (keyword === "if" || keyword === "propertyNames") return [];
  const unknown = keyword === "additionalProperties" ? `/${escaped(String(params["additionalProperty"]))}` : "";
  const missing = keyword === "required" ? `/${escaped(String(params["missingProperty"]))}` : "";
  const pointer = `${instancePath}${unknown}${missing}`;
  const allowed = keyword === "enum" ? `: ${(params["allowedValues"] as unknown[]).join(", ")}` : "";
  const detail =
    keyword === "additionalProperties"
      ? "is no member here"
      : keyword === "required"
        ? "is missing"
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

const codes: Readonly<Record<string, string>> = {
  additionalProperties: "unknown_field",
  required: "required",
  enum: "unknown",
  not: "conflict",
  pattern: "pattern",
};

function codeOf(keyword: string): string {
  return codes[keyword] ?? "invalid";
}

function escaped(name: string): string {
  return cut(name).replaceAll("~", "~0").replaceAll("/", "~1");
}

const detailMax = 300;

function cut(text: string): string {
  return text.length > detailMax ? `${text.slice(0, detailMax)}…` : text;
}

/** `/resources/0/spec` as `resources[0].spec`. */
function fieldOf(pointer: string): string {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path === "" ? part : `${path}.${part}`), "");
}

/** A fault of a spec, as one of the member that has the spec. */
function below(path: string, { field, pointer, ...rest }: FieldFault): FieldFault {
  return { ...rest, field: `${path}.${field}`, pointer: `/descriptor${pointerOf(path)}${pointer ?? ""}` };
}

function fault(field: string, code: string, detail: string): FieldFault {
  return { field, pointer: field === "descriptor" ? "/descriptor" : `/descriptor${pointerOf(field)}`, code, detail };
}

function invalidDescriptor(errors: readonly FieldFault[]): HoldfastError {
  const words = errors.slice(0, 5).map(({ field, detail }) => `${field} ${detail}`);
  return new HoldfastError("INVALID_DESCRIPTOR", words.join("; "), { errors });
}
