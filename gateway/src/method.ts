import { type DescField, type DescMethod, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import type { Call, ServedService } from "@holdfast/common/call.ts";
import type { FieldFault } from "@holdfast/common/errors.ts";
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
  readonly maxBodyBytes: number;
  /** Undefined for what only gRPC has. */
  readonly rest: RestRule | undefined;
  /** What is wrong with the values beyond the rules of the protos; undefined when these say all. */
  readonly check: ((input: Message, call: Call) => readonly FieldFault[]) | undefined;
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
  /** Answers as server-sent events when asked with follow=true. */
  readonly events: boolean;
  readonly pathFields: readonly DescField[];
  readonly queryFields: readonly DescField[];
  readonly bodyFields: readonly DescField[];
  /** The update_mask, filled from the keys of the body. */
  readonly maskField: DescField | undefined;
}

export const defaultMaxBodyBytes = 1024 * 1024;

/** Reads the methods of the services; throws for one that declares no scope or has no implementation. */
export function describeMethods(services: readonly ServedService[]): ApiMethod[] {
  return services.flatMap((served) =>
    served.service.methods.map((description) => {
      const name = `${description.parent.typeName}.${description.name}`;
      const rules = getOption(description, rulesOption);
      const handler = served.handlers[description.localName];
      if (rules.scope === "") throw new Error(`${name} declares no scope`);
      if (handler === undefined) throw new Error(`${name} has no implementation`);
      if (description.methodKind !== "unary") throw new Error(`${name} is a stream, which the gateway does not serve`);
      return {
        name,
        description,
        scope: rules.scope,
        readOnly: rules.readOnly,
        maxBodyBytes: rules.maxBodyBytes || defaultMaxBodyBytes,
        rest: restRule(description),
        check: served.checks[description.localName] as ApiMethod["check"],
        handle: (input: Message, call: Call) => handler(input as never, call) as Promise<object>,
      };
    }),
  );
}

function restRule(description: DescMethod): RestRule | undefined {
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
    events: rules.bodyKind === BodyKind.EVENTS,
    pathFields,
    queryFields: body === "*" ? [] : others,
    bodyFields: body === "*" ? others : [],
    maskField,
  };
}
