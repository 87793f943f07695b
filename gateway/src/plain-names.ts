import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { lookUp } from "@holdfast/common/look-up.ts";
import { isPlainText } from "@holdfast/common/plain-text.ts";
import { fieldOf, type Faults, type ValuePath } from "./json/faults.ts";

/** Adds a fault for each name and tag that is not plain text: hidden characters could disguise it as another name. */
export type CheckNames = (message: Message, faults: Faults) => void;

type Check = (value: never, path: ValuePath, faults: Faults) => void;

/** Names of fields that users set and that appear in lists, mails and terminals. */
export const nameField = /^(name|names|title|tags|[a-z_]+_name)$/;

/**
 * Compiles the check of an input. `without` lists fields to skip: path variables name existing objects, and users and
 * databases of an engine may have any name. Faults of `parameters` have no JSON pointer.
 */
export function compileNameCheck(
  input: DescMessage,
  without: readonly DescField[],
  parameters: readonly DescField[] = [],
): CheckNames {
  const compiled = new Map<string, [DescField, Check][]>();

  function checksOf(message: DescMessage): [DescField, Check][] {
    const cached = compiled.get(message.typeName);
    if (cached !== undefined) return cached;
    // A message may contain itself, so its list is registered before its fields are compiled.
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
    const checkItem: Check | undefined =
      message !== undefined ? inside(checksOf(message)) : nameField.test(field.name) ? checkText : undefined;
    if (checkItem === undefined) return undefined;
    if (field.fieldKind === "list")
      return (items: readonly never[], parent, faults) => {
        for (const [key, item] of items.entries()) checkItem(item, { parent, key }, faults);
      };
    if (field.fieldKind !== "map") return checkItem;
    return (entries: object, parent, faults) => {
      for (const [key, item] of Object.entries(entries)) {
        checkText(key as never, { parent, key }, faults);
        checkItem(item as never, { parent, key }, faults);
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
      at: (path, code, detail) => {
        const field = fieldOf(path);
        if (names.has(field)) faults.parameter(field, code, detail);
        else faults.at(path, code, detail);
      },
    });
}

function inside(checks: readonly (readonly [DescField, Check])[]): Check {
  return (message: object, parent, faults) => {
    for (const [{ localName, name }, check] of checks) {
      const value = lookUp(message, localName);
      if (value !== undefined) check(value as never, { parent, key: name }, faults);
    }
  };
}

function checkText(text: unknown, path: ValuePath, faults: Faults): void {
  if (typeof text !== "string" || isPlainText(text) || faults.covers(fieldOf(path))) return;
  faults.at(
    path,
    "invalid_text",
    "must not contain control characters, invisible characters or marks of text direction",
  );
}
