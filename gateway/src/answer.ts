import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { KeptAnswer } from "@holdfast/common/call.ts";
import { rulesOf } from "./json/field-rules.ts";
import type { Encode } from "./json/encode.ts";
import type { ApiMethod, RestRule } from "./method.ts";

/** Turns what a handler answers into status, headers and body. A frozen answer never changes and is encoded once. */
export type BuildAnswer = (output: object) => KeptAnswer;

type Members = Readonly<Record<string, unknown>>;

export function compileAnswer(method: ApiMethod, rest: RestRule, encode: Encode): BuildAnswer {
  const { output } = method.description;
  const secret = hasSecret(output, new Set());
  const location = rest.location === undefined ? undefined : compileLocation(rest.location, output);
  const statuses = rest.also.map((also) => {
    const field = fieldOf(output, also.field);
    const wanted = new Set(
      also.in.map((text) => field.enum?.values.find((value) => value.jsonName === text)?.number ?? text),
    );
    return { name: field.localName, wanted: wanted as ReadonlySet<unknown>, status: also.http };
  });
  const kept = new WeakMap<object, KeptAnswer>();
  return (value) => {
    const known = kept.get(value);
    if (known !== undefined) return known;
    const answer = answerOf(value);
    if (Object.isFrozen(value)) kept.set(value, answer);
    return answer;
  };

  function answerOf(value: object): KeptAnswer {
    const status = statuses.find(({ name, wanted }) => wanted.has((value as Members)[name]))?.status ?? rest.status;
    const headers: Record<string, string> = {};
    if (location !== undefined && status !== 200) headers.location = location(value as Members);
    if (status === 204) return { status, headers, body: "", secret };
    headers["content-type"] = "application/json";
    return { status, headers, body: encode(value), secret };
  }
}

/** Compiles "/managed-services/{id}" into a path made of fields of the answer. */
function compileLocation(template: string, output: DescMessage): (value: Members) => string {
  const parts = template.split(/\{([^}]*)\}/).map((text, index) => (index % 2 === 0 ? text : fieldOf(output, text)));
  return (value) =>
    parts.map((part) => (typeof part === "string" ? part : encodeURIComponent(textOf(value[part.localName])))).join("");
}

function fieldOf(message: DescMessage, name: string): DescField {
  const field = message.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${message.typeName} has no field ${name}`);
  return field;
}

function hasSecret(message: DescMessage, seen: Set<DescMessage>): boolean {
  if (seen.has(message)) return false;
  seen.add(message);
  return message.fields.some(
    (field) => rulesOf(field).sensitive || (field.message !== undefined && hasSecret(field.message, seen)),
  );
}

/** A field of a path is a text. */
function textOf(value: unknown): string {
  if (typeof value !== "string") throw new Error("a field of a location is not a text");
  return value;
}
