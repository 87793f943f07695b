import { type DescField, type DescMethod, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import type { Call, Checked, ServedService } from "@holdfast/common/call.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { http as httpOption } from "@holdfast/proto/google/api/annotations_pb.ts";
import { type AlsoStatus, BodyKind, rules as rulesOption } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { parseTemplate, type Segment } from "./routes.ts";

/** One method of the API with all that its descriptor says. */
export interface ApiMethod {
  /** "holdfast.v1.ManagedServiceService.GetManagedService". */
  readonly name: string;
  readonly description: DescMethod;
  /** "public" needs no credential. */
  readonly scope: string;
  readonly readOnly: boolean;
  /** False for a POST that only reads: it is done again for the same Idempotency-Key. */
  readonly keepsAnswer: boolean;
  /** Cost of a call in the caller's rate; more than 1 for expensive methods. */
  readonly weight: number;
  readonly maxBodyBytes: number;
  /** It finds its answer to an Idempotency-Key by itself. */
  readonly ownAnswers: boolean;
  /** Undefined for methods of gRPC alone. */
  readonly rest: RestRule | undefined;
  /** Faults of the values beyond the rules of the protos; undefined when these rules say all. */
  readonly check: ((input: Message, call: Call) => Checked) | undefined;
  handle(input: Message, call: Call): Promise<object>;
}

export interface RestRule {
  readonly verb: string;
  /** "/managed-services/{id}". */
  readonly path: string;
  readonly segments: readonly Segment[];
  readonly status: number;
  readonly also: readonly AlsoStatus[];
  readonly location: string | undefined;
  /** Content type of an answer that is the text of its one field; undefined for JSON. */
  readonly text: string | undefined;
  /** Answers as server-sent events when asked with follow=true. */
  readonly events: boolean;
  readonly pathFields: readonly DescField[];
  readonly queryFields: readonly DescField[];
  readonly bodyFields: readonly DescField[];
  /** The update_mask, filled from the keys of the body. */
  readonly maskField: DescField | undefined;
}

/** Of a method that needs a credential, and of one that needs none. */
const usualBodyBytes = 64 * 1024;
export const publicBodyBytes = 8 * 1024;

/** Reads the methods of the services; throws for a method without a scope or an implementation. */
export function describeMethods(services: readonly ServedService[]): ApiMethod[] {
  return services.flatMap((served) =>
    served.service.methods.map((description) => {
      const name = `${description.parent.typeName}.${description.name}`;
      const rules = getOption(description, rulesOption);
      const handler = lookUp(served.handlers, description.localName);
      if (rules.scope === "") throw new Error(`${name} declares no scope`);
      if (handler === undefined) throw new Error(`${name} has no implementation`);
      if (description.methodKind !== "unary") throw new Error(`${name} is a stream, which the gateway does not serve`);
      return {
        name,
        description,
        scope: rules.scope,
        readOnly: rules.readOnly,
        ownAnswers: rules.ownAnswers,
        weight: rules.weight || 1,
        keepsAnswer: !rules.readOnly && !rules.unkept,
        maxBodyBytes: rules.maxBodyBytes || (rules.scope === "public" ? publicBodyBytes : usualBodyBytes),
        rest: restRule(description),
        check: lookUp(served.checks, description.localName) as ApiMethod["check"],
        handle: (input: Message, call: Call) => handler(input as never, call) as Promise<object>,
      };
    }),
  );
}

/** The path of a method in REST, and the place of each field of its request; undefined for methods of gRPC alone. */
export function restRule(description: DescMethod): RestRule | undefined {
  if (!hasOption(description, httpOption)) return undefined;
  const { pattern, body } = getOption(description, httpOption);
  const rules = getOption(description, rulesOption);
  if (pattern.case === undefined || pattern.case === "custom" || (body !== "" && body !== "*")) {
    throw new Error(`${description} has an HTTP rule of a kind that the gateway does not serve`);
  }
  const segments = parseTemplate(pattern.value);
  const { fields } = description.input;
  const pathFields = segments
    .filter((segment) => segment.kind === "variable")
    .map(({ text }) => {
      const field = fields.find((candidate) => candidate.name === text);
      if (field === undefined) throw new Error(`${description}: ${text} of the path is not a field of the request`);
      return field;
    });
  const maskField = fields.find((field) => field.message?.typeName === "google.protobuf.FieldMask");
  const others = fields.filter((field) => field !== maskField && !pathFields.includes(field));
  return {
    verb: pattern.case.toUpperCase(),
    path: pattern.value,
    segments,
    status: rules.success || 200,
    also: rules.also,
    location: rules.location === "" ? undefined : rules.location,
    text: rules.text === "" ? undefined : rules.text,
    events: rules.bodyKind === BodyKind.EVENTS,
    pathFields,
    queryFields: body === "*" ? [] : others,
    bodyFields: body === "*" ? others : [],
    maskField,
  };
}
