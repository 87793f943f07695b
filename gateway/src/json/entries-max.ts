import { type DescField, type DescMessage, getOption, type Message } from "@bufbuild/protobuf";
import { lookUp } from "@holdfast/common/look-up.ts";
import { field as fieldConstraints } from "@holdfast/proto/buf/validate/validate_pb.ts";
import type { Faults, ValuePath } from "./faults.ts";

/**
 * Maximum number of entries of a list or map whose proto has no rule. `test/conformance/lists.test.ts` requires a rule
 * for each input of the API.
 */
const defaultMax = 1_000;

/** Maximum number of entries of a list or map. */
export function entriesMaxOf(field: DescField): number {
  const { case: kind, value } = getOption(field, fieldConstraints).type;
  const max = kind === "repeated" ? value.maxItems : kind === "map" ? value.maxPairs : 0n;
  return max === 0n ? defaultMax : Number(max);
}

/** Adds the fault of a too long list or map, with protovalidate's code and text. */
export function addTooLong(field: DescField, max: number, path: ValuePath | undefined, faults: Faults): void {
  if (field.fieldKind === "list") faults.at(path, "repeated_max_items", `must contain no more than ${max} item(s)`);
  else faults.at(path, "map_max_pairs", `map must be at most ${max} entries`);
}

/** Adds a fault for each too long list or map of a decoded message, without checking its entries. */
export type CheckEntries = (value: Message, faults: Faults) => void;

type CheckAt = (value: Message, path: ValuePath | undefined, faults: Faults) => void;

/** Checks messages that the gRPC library decoded; decode.ts checks while it decodes. */
export function createEntryChecks(): (message: DescMessage) => CheckEntries {
  const compiled = new Map<string, CheckAt>();

  function checkOf(message: DescMessage): CheckAt {
    const cached = compiled.get(message.typeName);
    if (cached !== undefined) return cached;
    let checks: CheckAt[] = [];
    const check: CheckAt = (value, path, faults) => {
      for (const each of checks) each(value, path, faults);
    };
    // A message may contain itself, so it is registered before its fields are compiled.
    compiled.set(message.typeName, check);
    checks = message.fields.flatMap((field) => checkOfField(field) ?? []);
    return check;
  }

  function checkOfField(field: DescField): CheckAt | undefined {
    const { message } = field;
    // The content of google.protobuf types is bounded by the size of the body.
    const inner = message === undefined || message.typeName.startsWith("google.") ? undefined : checkOf(message);
    const max = entriesMaxOf(field);
    const counted = field.fieldKind === "list" || field.fieldKind === "map";
    if (!counted && inner === undefined) return undefined;
    return (value, parent, faults) => {
      const member = lookUp(value as object, field.localName);
      if (member === undefined) return;
      const path = { parent, key: field.name };
      if (!counted) return inner?.(member as Message, path, faults);
      const keys = Array.isArray(member) ? undefined : Object.keys(member as object);
      const size = keys?.length ?? (member as unknown[]).length;
      if (size > max) return addTooLong(field, max, path, faults);
      if (inner === undefined) return;
      if (keys === undefined) {
        for (const [key, item] of (member as Message[]).entries()) inner(item, { parent: path, key }, faults);
      } else {
        for (const key of keys) inner(lookUp(member as object, key) as Message, { parent: path, key }, faults);
      }
    };
  }

  return (message) => {
    const check = checkOf(message);
    return (value, faults) => check(value, undefined, faults);
  };
}
