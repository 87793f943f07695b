import { clone, type DescField, type DescMessage, getOption, type MessageShape } from "@bufbuild/protobuf";
import { isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { field as fieldRules } from "@holdfast/proto/holdfast/v1/options_pb.ts";

/** Finds the fields that the protos mark `sensitive`. Their paths are cached by message type. */
export interface SensitiveFields {
  /**
   * A copy of the message with each sensitive string changed; the message itself if its type has no sensitive field.
   */
  map<D extends DescMessage>(schema: D, message: MessageShape<D>, change: (text: string) => string): MessageShape<D>;
}

/** Fields of one message type that are sensitive, or contain sensitive fields. */
interface SensitivePaths {
  readonly texts: readonly DescField[];
  /** Fields with messages that contain sensitive fields. */
  readonly within: readonly DescField[];
}

export function createSensitiveFields(): SensitiveFields {
  const cached = new Map<DescMessage, SensitivePaths>();

  function pathsOf(type: DescMessage): SensitivePaths {
    const found = cached.get(type);
    if (found !== undefined) return found;
    const texts = type.fields.filter((field) => getOption(field, fieldRules).sensitive);
    const within = type.fields.filter((field) => {
      const child = messageOf(field);
      return child !== undefined && !texts.includes(field) && containsSensitive(child, new Set());
    });
    const paths = { texts, within };
    cached.set(type, paths);
    return paths;
  }

  /** True if this type, or a message type in it, has a sensitive field. */
  function containsSensitive(type: DescMessage, seen: Set<DescMessage>): boolean {
    if (seen.has(type)) return false;
    seen.add(type);
    return type.fields.some((field) => {
      const child = messageOf(field);
      return getOption(field, fieldRules).sensitive || (child !== undefined && containsSensitive(child, seen));
    });
  }

  function walk(message: ReflectMessage, change: (text: string) => string): void {
    const { texts, within } = pathsOf(message.desc);
    for (const field of texts) if (message.isSet(field)) message.set(field, change(textOf(message, field)));
    for (const field of within) {
      if (message.isSet(field)) for (const child of childrenOf(message, field)) walk(child, change);
    }
  }

  return {
    map(schema, message, change) {
      const { texts, within } = pathsOf(schema);
      if (texts.length === 0 && within.length === 0) return message;
      const copy = clone(schema, message);
      walk(reflect(schema, copy), change);
      return copy;
    },
  };
}

function messageOf(field: DescField): DescMessage | undefined {
  if (field.fieldKind === "message") return field.message;
  if (field.fieldKind === "list" && field.listKind === "message") return field.message;
  if (field.fieldKind === "map" && field.mapKind === "message") return field.message;
  return undefined;
}

function textOf(message: ReflectMessage, field: DescField): string {
  const value: unknown = message.get(field);
  if (typeof value !== "string") throw new Error(`${field.toString()} is sensitive and not a string`);
  return value;
}

function childrenOf(message: ReflectMessage, field: DescField): ReflectMessage[] {
  if (field.fieldKind === "message") return [message.get(field)];
  if (field.fieldKind === "list") return [...message.get(field)].filter(isMessage);
  if (field.fieldKind === "map") return [...message.get(field).values()].filter(isMessage);
  return [];
}

function isMessage(value: unknown): value is ReflectMessage {
  return isReflectMessage(value);
}
