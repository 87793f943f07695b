import { type DescEnum, type DescMessage, type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import {
  enumeration as enumerationOption,
  message as messageOption,
  rules as methodOption,
  service as serviceOption,
} from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { rulesOf } from "../json/field-rules.ts";
import { publicRegistry } from "./public-protos.ts";

/**
 * Public names of the SDK: options of the protos (`sdk_name`, `sdk_method`, `sdk_classes`). Programs of users import
 * them, so they are stable. Each table is in the order of its public names.
 */

export const prefix = "holdfast.v1.";

/** A class of the SDK whose methods are one request each. */
export interface MethodClass {
  readonly name: string;
  readonly about: string;
  /** RPCs by method name, in the order of the protos. */
  readonly methods: ReadonlyMap<string, DescMethod>;
}

/** Public names by name in the protos. */
type PublicNames = Readonly<Record<string, string>>;

interface SdkNames {
  /** Messages of responses that have a named type; others are printed inline. */
  readonly messages: PublicNames;
  /** Requests, and messages inside them, that users build. */
  readonly requests: PublicNames;
  /** Enumerations that have a named type. */
  readonly enumerations: PublicNames;
  /** Members of requests whose type has a name, as `Message.field`. */
  readonly members: PublicNames;
  /** Classes of methods. Hand-written classes extend those whose name ends in `Methods`. */
  readonly methodClasses: readonly MethodClass[];
}

export const { messages, requests, enumerations, members, methodClasses } = await sdkNames();

async function sdkNames(): Promise<SdkNames> {
  const types = [...(await publicRegistry())].filter(({ typeName }) => typeName.startsWith(prefix));
  const services = types.filter((type) => type.kind === "service");
  const described = types.filter((type) => type.kind === "message");
  const inResponses = new Set(services.flatMap((service) => service.methods).flatMap(({ output }) => within(output)));
  const nameOf = (message: DescMessage) => getOption(message, messageOption).sdkName;
  const fields = described.flatMap((message) => message.fields);
  return {
    messages: named(described.filter((message) => inResponses.has(message)).map((each) => [each, nameOf(each)])),
    requests: named(described.filter((message) => !inResponses.has(message)).map((each) => [each, nameOf(each)])),
    enumerations: named(
      types
        .filter((type): type is DescEnum => type.kind === "enum")
        .map((each) => [each, getOption(each, enumerationOption).sdkName]),
    ),
    members: named(fields.map((field) => [{ name: `${field.parent.name}.${field.name}` }, rulesOf(field).sdkName])),
    methodClasses: classesOf(services),
  };
}

/** The message and all messages in it. */
function within(message: DescMessage, seen = new Set<DescMessage>()): DescMessage[] {
  if (seen.has(message)) return [...seen];
  seen.add(message);
  for (const field of message.fields) if (field.message !== undefined) within(field.message, seen);
  return [...seen];
}

function named(entries: readonly (readonly [{ readonly name: string }, string])[]): Record<string, string> {
  const present = entries.filter(([, as]) => as !== "").toSorted(([, a], [, b]) => (a < b ? -1 : 1));
  for (const [index, [{ name }, as]] of present.entries()) {
    const before = present[index - 1];
    if (before?.[1] === as) throw new Error(`${before[0].name} and ${name} have the same sdk_name: ${as}`);
  }
  return Object.fromEntries(present.map(([{ name }, as]) => [name, as]));
}

function classesOf(services: readonly DescService[]): MethodClass[] {
  const classes = new Map<string, MethodClass & { readonly methods: Map<string, DescMethod> }>();
  for (const service of services)
    for (const { name, about } of getOption(service, serviceOption).sdkClasses) {
      if (classes.has(name)) throw new Error(`two services declare the class ${name} in sdk_classes`);
      classes.set(name, { name, about, methods: new Map() });
    }
  for (const method of services.flatMap((service) => service.methods)) {
    const { sdkMethod } = getOption(method, methodOption);
    if (sdkMethod === "") continue;
    const [className = "", name = ""] = sdkMethod.split(".");
    const found = classes.get(className);
    if (found === undefined) throw new Error(`${method}: no service declares ${className} in sdk_classes`);
    if (found.methods.has(name)) throw new Error(`two methods have the same sdk_method: ${sdkMethod}`);
    found.methods.set(name, method);
  }
  return [...classes.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
