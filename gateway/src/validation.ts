import { create, type DescField, type DescMessage, getOption, type Message, ScalarType } from "@bufbuild/protobuf";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { lookUp } from "@holdfast/common/look-up.ts";
import { field as fieldConstraints, type FieldRules } from "@holdfast/proto/buf/validate/validate_pb.ts";
import { rulesOf } from "./json/field-rules.ts";
import { fieldOf, type Faults, type ValuePath } from "./json/faults.ts";

/** Checks inputs by the validation rules of the protos (protovalidate). */
export interface Validation {
  /**
   * Adds a fault for each broken rule. Faults of `parameters` have no JSON pointer. `present` are the fields with a
   * number or string in the request: messages do not distinguish 0 or "" from an absent field, but rules do.
   */
  check(
    message: DescMessage,
    value: Message,
    parameters: ReadonlySet<string>,
    faults: Faults,
    present?: ReadonlySet<string>,
  ): void;
  /** Names of the fields whose absence breaks a rule. */
  required(message: DescMessage): ReadonlySet<string>;
}

export function createValidation(): Validation {
  // The protos contain all patterns, so RegExp is safe; users cannot add one.
  const validator = createValidator({ regexMatch: (pattern, text) => new RegExp(pattern, "u").test(text) });
  const requiredOf = new Map<string, ReadonlySet<string>>();
  const shortcuts = new Map<string, Shortcut | undefined>();

  function violations(message: DescMessage, value: Message): readonly Violation[] {
    const result = validator.validate(message, value);
    if (result.kind === "error") throw result.error;
    return result.violations ?? [];
  }

  function required(message: DescMessage): ReadonlySet<string> {
    const cached = requiredOf.get(message.typeName);
    if (cached !== undefined) return cached;
    const names = new Set(violations(message, create(message)).map((violation) => nameOf(violation.field[0])));
    requiredOf.set(message.typeName, names);
    return names;
  }

  function shortcutOf(message: DescMessage): Shortcut | undefined {
    if (!shortcuts.has(message.typeName)) shortcuts.set(message.typeName, compileShortcut(message));
    return shortcuts.get(message.typeName);
  }

  return {
    required,
    check(message, value, parameters, faults, present = new Set()) {
      if (shortcutOf(message)?.(value) === true) return;
      for (const violation of violations(message, value)) {
        const path = pathOfViolation(violation);
        const field = fieldOf(path);
        if (faults.covers(field)) continue;
        const [root] = violation.field;
        const absent =
          violation.field.length === 1 &&
          required(message).has(nameOf(root)) &&
          isZero(value, root as DescField) &&
          !present.has(nameOf(root));
        const code = absent ? "required" : violation.ruleId.replaceAll(".", "_");
        const detail = absent ? "is required" : messageOf(violation);
        if (parameters.has(nameOf(root))) faults.parameter(field, code, detail);
        else faults.at(path, code, detail);
      }
    },
  };
}

type Shortcut = (value: Message) => boolean;

/**
 * A fast check for messages whose only rules are lengths of strings, such as those of most reads. It returns true for
 * messages that are certainly valid; others are checked by protovalidate. Undefined if a field has another rule.
 */
function compileShortcut(message: DescMessage): Shortcut | undefined {
  const checks: ((value: never) => boolean)[] = [];
  for (const field of message.fields) {
    const { localName } = field;
    const rules = getOption(field, fieldConstraints);
    if (isEmpty(rules) && field.message === undefined) continue;
    const within = field.fieldKind === "scalar" ? lengthCheck(field.scalar, rules) : undefined;
    if (within === undefined) return undefined;
    checks.push((value: object) => {
      const member = lookUp(value, localName);
      return member === undefined || within(member as never);
    });
  }
  return (value) => checks.every((check) => check(value as never));
}

function lengthCheck(scalar: ScalarType, rules: FieldRules): ((value: never) => boolean) | undefined {
  const { case: kind, value } = rules.type;
  if (kind === "string" && scalar === ScalarType.STRING) {
    const isLengthOnly = value.wellKnown.case === undefined && hasOnly(value, ["maxLen", "minLen", "wellKnown"]);
    // Rules count characters, of one or two UTF-16 units each; these bounds on units are sufficient for both.
    const minUnits = Number(value.minLen) * 2;
    const maxUnits = Object.hasOwn(value, "maxLen") ? Number(value.maxLen) : Number.POSITIVE_INFINITY;
    return isLengthOnly ? (text: string) => text.length >= minUnits && text.length <= maxUnits : undefined;
  }
  return undefined;
}

function hasOnly(rules: object, allowed: readonly string[]): boolean {
  return Object.entries(rules).every(
    ([key, value]) =>
      key.startsWith("$") ||
      allowed.includes(key) ||
      value === undefined ||
      (Array.isArray(value) && value.length === 0),
  );
}

function isEmpty(rules: FieldRules): boolean {
  return rules.type.case === undefined && !rules.required && rules.cel.length === 0;
}

/** protovalidate's message, with JSON names of enumeration values and readable messages for patterns. */
function messageOf({ field: path, message, ruleId }: Violation): string {
  const field = path.findLast((part) => part.kind === "field");
  if (field === undefined) return message;
  const rules = getOption(field, fieldConstraints).type;
  const { case: kind, value } = rules.case === "repeated" ? (rules.value.items?.type ?? rules) : rules;
  if (ruleId === "string.min_len" && kind === "string" && value.minLen === 1n) return "must not be empty";
  if (kind === "string" && message.includes("regex pattern")) return rulesOf(field).hint || message;
  if ((kind !== "enum" && kind !== "string") || !message.includes("in list")) return message;
  const names = value.in.map((each) =>
    typeof each === "string" ? each : field.enum?.values.find(({ number }) => number === each)?.jsonName,
  );
  return `must be one of ${names.filter((name) => name !== undefined && name !== "").join(", ")}`;
}

function nameOf(part: Violation["field"][number] | undefined): string {
  return part !== undefined && "name" in part ? part.name : "";
}

function isZero(value: Message, field: DescField): boolean {
  const member = lookUp(value as object, field.localName);
  return member === undefined || member === "" || member === 0 || member === 0n;
}

/** The path of the value in JSON, where a bare list is the message itself and has no name. */
function pathOfViolation(violation: Violation): ValuePath | undefined {
  let path: ValuePath | undefined;
  let bare = false;
  for (const part of violation.field) {
    if (part.kind === "list_sub") path = { parent: path, key: part.index };
    else if (part.kind === "map_sub") path = { parent: path, key: String(part.key) };
    else if (!bare) path = { parent: path, key: part.name };
    bare = part.kind === "field" && rulesOf(part).bare;
  }
  return path;
}
