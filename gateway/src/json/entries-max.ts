import { type DescField, type DescMessage, getOption, type Message } from "@bufbuild/protobuf";
import { field as fieldConstraints } from "@holdfast/proto/buf/validate/validate_pb.ts";
import type { Faults, Place } from "./faults.ts";

/**
 * For a list or map whose rules say nothing; `test/conformance/lists.test.ts` holds inputs of the API to rules of their
 * own.
 */
const unruledMax = 1_000;

/** How many entries a list or map may have. */
export function entriesMaxOf(field: DescField): number {
  const { case: kind, value } = getOption(field, fieldConstraints).type;
  const max = kind === "repeated" ? value.maxItems : kind === "map" ? value.maxPairs : 0n;
  return max === 0n ? unruledMax : Number(max);
}

/** Notes a list or map that is too long, in protovalidate's words. */
export function noteTooLong(field: DescField, max: number, place: Place | undefined, faults: Faults): void {
  if (field.fieldKind === "list") faults.at(place, "repeated_max_items", `must contain no more than ${max} item(s)`);
  else faults.at(place, "map_max_pairs", `map must be at most ${max} entries`);
}

/** Notes every list and map of a decoded message that is too long, and looks into none of these. */
export type CheckEntries = (value: Message, faults: Faults) => void;

type CheckAt = (value: Message, place: Place | undefined, faults: Faults) => void;

/** For messages that were decoded by others, as those of gRPC are. */
export function createEntryChecks(): (message: DescMessage) => CheckEntries {
  const compiled = new Map<string, CheckAt>();

  function checkOf(message: DescMessage): CheckAt {
    const known = compiled.get(message.typeName);
    if (known !== undefined) return known;
    let checks: CheckAt[] = [];
    const check: CheckAt = (value, place, faults) => {
      for (const each of checks) each(value, place, faults);
    };
    // A message may contain itself: the name is taken before its fields are compiled.
    compiled.set(message.typeName, check);
    checks = message.fields.flatMap((field) => checkOfField(field) ?? []);
    return check;
  }

  function checkOfField(field: DescField): CheckAt | undefined {
    const { message } = field;
    // A well-known type's content is bounded by the size of the body.
    const inner = message === undefined || message.typeName.startsWith("google.") ? undefined : checkOf(message);
    const max = entriesMaxOf(field);
    const counted = field.fieldKind === "list" || field.fieldKind === "map";
    if (!counted && inner === undefined) return undefined;
    return (value, parent, faults) => {
      const member = (value as unknown as Readonly<Record<string, unknown>>)[field.localName];
      if (member === undefined) return;
      const place = { parent, key: field.name };
      if (!counted) return inner?.(member as Message, place, faults);
      const keys = Array.isArray(member) ? undefined : Object.keys(member as object);
      const size = keys?.length ?? (member as unknown[]).length;
      if (size > max) return noteTooLong(field, max, place, faults);
      if (inner === undefined) return;
      if (keys === undefined) {
        for (const [key, item] of (member as Message[]).entries()) inner(item, { parent: place, key }, faults);
      } else {
        for (const key of keys)
          inner((member as Record<string, Message>)[key] as Message, { parent: place, key }, faults);
      }
    };
  }

  return (message) => {
    const check = checkOf(message);
    return (value, faults) => check(value, undefined, faults);
  };
}
