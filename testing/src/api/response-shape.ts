import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { getOption, ScalarType } from "@bufbuild/protobuf";
import { isUuid } from "@holdfast/gateway/openapi/uuid-fields.ts";
import { field as fieldRules } from "@holdfast/proto/holdfast/v1/options_pb.ts";

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Faults of a JSON response, by the rules of the API and its message: every field present, `null` only where a value is
 * optional, ids as UUIDs, integers as numbers, times in UTC with Z, enumerations in the spec's spelling, nothing else.
 */
export function faultsOfResponse(message: DescMessage, json: unknown, at = "$"): string[] {
  if (!isObject(json)) return [`${at} is no object`];
  const known = new Set(message.fields.map(({ name }) => name));
  const faults = Object.keys(json)
    .filter((key) => !known.has(key))
    .map((key) => `${at}.${key} is no field of ${message.name}`);
  for (const field of message.fields) {
    const path = `${at}.${field.name}`;
    if (!(field.name in json)) faults.push(`${path} is missing`);
    else faults.push(...faultsOfField(field, json[field.name], path));
  }
  return faults;
}

function faultsOfField(field: DescField, value: unknown, at: string): string[] {
  if (field.fieldKind === "list") {
    if (!Array.isArray(value)) return [`${at} is no array`];
    return value.flatMap((item, index) => faultsOfValue(field, item, `${at}[${index}]`));
  }
  if (field.fieldKind === "map") {
    if (!isObject(value)) return [`${at} is no object`];
    return Object.entries(value).flatMap(([key, item]) => faultsOfValue(field, item, `${at}.${key}`));
  }
  if (value === null) {
    // A message without a value is null; a field without presence always has a value.
    const mayBeAbsent = field.fieldKind === "message" ? isOptional(field) : field.proto.proto3Optional;
    return mayBeAbsent ? [] : [`${at} is null`];
  }
  // Any JSON, unchanged.
  if (getOption(field, fieldRules).rawJson) return [];
  if (getOption(field, fieldRules).bare && field.message !== undefined) {
    const [inner] = field.message.fields;
    return inner === undefined ? [] : faultsOfField(inner, value, at);
  }
  return faultsOfValue(field, value, at);
}

/** Faults of the value of a field, or of an entry of a list or map. */
function faultsOfValue(field: DescField, value: unknown, at: string): string[] {
  if (isUuid(field)) return isUuidText(value) ? [] : [`${at} is ${JSON.stringify(value)}, no UUID`];
  return faultsOfOne(field.message ?? field.enum ?? field.scalar, value, at);
}

function isUuidText(value: unknown): boolean {
  return typeof value === "string" && uuid.test(value);
}

/** Messages that are declared without `optional` are always present. */
function isOptional(field: DescField): boolean {
  return field.proto.proto3Optional;
}

function faultsOfOne(type: DescMessage | DescEnum | ScalarType | undefined, value: unknown, at: string): string[] {
  if (type === undefined) return [`${at} has no type`];
  if (typeof type === "number") return faultsOfScalar(type, value, at);
  if (type.kind === "enum") {
    const names = type.values.filter(({ number }) => number !== 0).map(({ jsonName, name }) => jsonName ?? name);
    return names.some((name) => name === value)
      ? []
      : [`${at} is ${JSON.stringify(value)}, not one of ${names.join(", ")}`];
  }
  if (type.typeName === "google.protobuf.Timestamp") {
    const isTime = typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value);
    return isTime ? [] : [`${at} is ${JSON.stringify(value)}, no time in UTC with Z`];
  }
  // Data of events: an id without a value is null there as well.
  if (type.typeName === "google.protobuf.Struct" && isObject(value)) {
    const empty = Object.keys(value).filter((key) => /(^|_)id$/.test(key) && value[key] === "");
    return empty.map((key) => `${at}.${key} is "", no id`);
  }
  if (type.typeName.startsWith("google.protobuf.")) return [];
  return faultsOfResponse(type, value, at);
}

function faultsOfScalar(type: ScalarType, value: unknown, at: string): string[] {
  const fits =
    type === ScalarType.STRING || type === ScalarType.BYTES
      ? typeof value === "string"
      : type === ScalarType.BOOL
        ? typeof value === "boolean"
        : type === ScalarType.DOUBLE || type === ScalarType.FLOAT
          ? typeof value === "number"
          : Number.isSafeInteger(value);
  return fits ? [] : [`${at} is ${JSON.stringify(value)}, no ${ScalarType[type].toLowerCase()}`];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
