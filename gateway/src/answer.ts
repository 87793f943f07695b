import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { KeptAnswer } from "@holdfast/common/call.ts";
import { rulesOf } from "./json/field-rules.ts";
import type { Encode } from "./json/encode.ts";
import type { ApiMethod, RestRule } from "./method.ts";

/** Turns a handler's output into status, headers and body. A frozen output never changes and is encoded once. */
export type BuildAnswer = (output: object) => KeptAnswer;

type Members = Readonly<Record<string, unknown>>;

export function compileAnswer(method: ApiMethod, rest: RestRule, encode: Encode): BuildAnswer {
  const { output } = method.description;
  const secret = hasSecret(output, new Set());
  const location = rest.location === undefined ? undefined : compileLocation(rest.location, output);
  const statuses = rest.also.map((also) => {
    const { last, read } = compilePath(also.field, output);
    const wanted = new Set<unknown>(
      also.in.map((text) => last.enum?.values.find((value) => value.jsonName === text)?.number ?? text),
    );
    const own = also.location === "" ? location : compileLocation(also.location, output);
    return { isSo: (value: object) => wanted.has(read(value)), status: also.http, location: own };
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
    const answered = statuses.find(({ isSo }) => isSo(value)) ?? { status: rest.status, location };
    const { status } = answered;
    const headers: Record<string, string> = {};
    if (answered.location !== undefined && status !== 200) headers.location = answered.location(value);
    if (status === 204) return { status, headers, body: "", secret };
    if (rest.text !== undefined) {
      headers["content-type"] = rest.text;
      return { status, headers, body: textOfAnswer(output, value), secret };
    }
    headers["content-type"] = "application/json";
    return { status, headers, body: encode(value), secret };
  }
}

/** The one field of an answer that is a text. */
function textOfAnswer(output: DescMessage, value: object): string {
  const text = (value as Members)[output.fields[0]?.localName ?? ""];
  if (typeof text !== "string") throw new Error(`${output.typeName} has no text`);
  return text;
}

/** Compiles "/managed-services/{id}" into a path made of fields of the answer. */
function compileLocation(template: string, output: DescMessage): (value: object) => string {
  const parts = template
    .split(/\{([^}]*)\}/)
    .map((text, index) => (index % 2 === 0 ? text : compilePath(text, output).read));
  return (value) => parts.map((part) => (typeof part === "string" ? part : textOf(part(value)))).join("");
}

/** A field by its dotted path, and its reader; undefined where the message around it is absent. */
function compilePath(path: string, output: DescMessage): { last: DescField; read: (value: object) => unknown } {
  const [name, ...inner] = path.split(".");
  const field = output.fields.find((candidate) => candidate.name === name);
  if (field === undefined) throw new Error(`${output.typeName} has no field ${name}`);
  const own = (value: object) => (value as Members)[field.localName];
  if (inner.length === 0) return { last: field, read: own };
  if (field.fieldKind !== "message") throw new Error(`${field} has no fields of its own`);
  const { last, read } = compilePath(inner.join("."), field.message);
  return {
    last,
    read(value) {
      const member = own(value);
      return member === undefined ? undefined : read(member as object);
    },
  };
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
  return encodeURIComponent(value);
}
