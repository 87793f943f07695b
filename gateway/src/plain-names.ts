import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { fieldOf, type Faults, type Place } from "./json/faults.ts";

/** Notes names and tags of an input that are not what they look like. */
export type CheckNames = (message: Message, faults: Faults) => void;

type Check = (value: never, place: Place, faults: Faults) => void;

/** Fields that people read in lists, mails and terminals, and may write. */
export const nameForm = /^(name|names|title|tags|[a-z_]+_name)$/;

/** The pattern of JSON Schema for them. */
export const plainPattern = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*$";

/** Control characters, separators of lines, and marks that turn the direction of what follows. */
const hidden = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;

/**
 * Compiles the check of an input, without these fields: those of a path name what exists, and an engine's users and databases
 * may have any name. Faults of `parameters` have no pointer.
 */
export function compileNameCheck(
  input: DescMessage,
  without: readonly DescField[],
  parameters: readonly DescField[] = [],
): CheckNames {
  const compiled = new Map<string, [DescField, Check][]>();

  function checksOf(message: DescMessage): [DescField, Check][] {
    const known = compiled.get(message.typeName);
    if (known !== undefined) return known;
    // A message may contain itself: its list is there before its fields are compiled.
    const checks: [DescField, Check][] = [];
    compiled.set(message.typeName, checks);
    for (const field of message.fields) {
      const check = without.includes(field) ? undefined : checkOf(field);
      if (check !== undefined) checks.push([field, check]);
    }
    return checks;
  }

  function checkOf(field: DescField): Check | undefined {
    const { message } = field;
    if (message?.typeName.startsWith("google.") === true || field.enum !== undefined) return undefined;
    const one: Check | undefined =
      message !== undefined ? inside(checksOf(message)) : nameForm.test(field.name) ? checkText : undefined;
    if (one === undefined) return undefined;
    if (field.fieldKind === "list")
      return (items: readonly never[], parent, faults) => {
        for (const [key, item] of items.entries()) one(item, { parent, key }, faults);
      };
    if (field.fieldKind !== "map") return one;
    return (entries: object, parent, faults) => {
      for (const [key, item] of Object.entries(entries)) {
        checkText(key as never, { parent, key }, faults);
        one(item as never, { parent, key }, faults);
      }
    };
  }

  const checks = checksOf(input);
  if (checks.length === 0) return () => undefined;
  const root = inside(checks);
  const names = new Set(parameters.map(({ name }) => name));
  return (message, faults) =>
    root(message as never, undefined as never, {
      ...faults,
      at: (place, code, detail) => {
        const field = fieldOf(place);
        if (names.has(field)) faults.parameter(field, code, detail);
        else faults.at(place, code, detail);
      },
    });
}

function inside(checks: readonly (readonly [DescField, Check])[]): Check {
  return (message: object, parent, faults) => {
    for (const [{ localName, name }, check] of checks) {
      const value = (message as Readonly<Record<string, unknown>>)[localName];
      if (value !== undefined) check(value as never, { parent, key: name }, faults);
    }
  };
}

function checkText(text: unknown, place: Place, faults: Faults): void {
  if (typeof text !== "string" || !hidden.test(text) || faults.covers(fieldOf(place))) return;
  faults.at(place, "invalid_text", "must not contain control characters, or marks that turn the direction of text");
}
