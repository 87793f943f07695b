import { type DescField, type DescMethod, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import type { Call, Checked, ServedService } from "@holdfast/common/call.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { http as httpOption } from "@holdfast/proto/google/api/annotations_pb.ts";
import { type OtherStatus, BodyKind, Rate, rules as rulesOption } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import type { RateName } from "./rate-limit.ts";
import { parseTemplate, type Segment } from "./routes.ts";

/** One method of the API, compiled from its descriptor and options. */
export interface ApiMethod {
  /** Full name, such as `holdfast.v1.ManagedServiceService.GetManagedService`. */
  readonly name: string;
  readonly description: DescMethod;
  /** Required scope; `public` needs no credential, `signed-in` needs a credential and no scope. */
  readonly scope: string;
  /** Additional required scopes. */
  readonly additionalScopes: readonly string[];
  readonly readOnly: boolean;
  /** True if responses are stored by Idempotency-Key; false for reads and for the option `response_not_stored`. */
  readonly storesResponse: boolean;
  readonly rate: RateName;
  /** Number of requests that a call costs of the caller's rate; above 1 for expensive methods. */
  readonly weight: number;
  readonly maxBodyBytes: number;
  /** True if the handler handles the Idempotency-Key itself. */
  readonly handlesIdempotency: boolean;
  /** Kind of owner that the method is limited to, at a path of that kind; undefined at the declared path. */
  readonly ownerKind?: string;
  /** Undefined for methods without an HTTP rule, which are served over gRPC only. */
  readonly rest: RestRule | undefined;
  /** Additional checks besides the validation rules of the protos; undefined if there are none. */
  readonly check: ((input: Message, call: Call) => Checked) | undefined;
  handle(input: Message, call: Call): Promise<object>;
}

export interface RestRule {
  readonly verb: string;
  /** Path template, such as `/managed-services/{id}`. */
  readonly path: string;
  readonly segments: readonly Segment[];
  readonly status: number;
  readonly otherStatuses: readonly OtherStatus[];
  readonly location: string | undefined;
  /** Content type of a response that is the text of the output's only field; undefined for JSON. */
  readonly text: string | undefined;
  /** True if the parameter follow=true selects a response of server-sent events. */
  readonly events: boolean;
  readonly pathFields: readonly DescField[];
  readonly queryFields: readonly DescField[];
  readonly bodyFields: readonly DescField[];
  /** The field update_mask, filled from the keys of the body. */
  readonly maskField: DescField | undefined;
}

/** Default limits of bodies in bytes, for methods that need a credential and for public ones. */
const defaultBodyBytes = 64 * 1024;
export const publicBodyBytes = 8 * 1024;

/** Describes the methods of the services; throws for a method without a scope or an implementation. */
export function describeMethods(services: readonly ServedService[]): ApiMethod[] {
  return services.flatMap((served) =>
    served.service.methods.map((description) => {
      const name = `${description.parent.typeName}.${description.name}`;
      const rules = getOption(description, rulesOption);
      const handler = lookUp(served.handlers, description.localName);
      if (rules.scope === "") throw new Error(`${name} declares no scope`);
      if (handler === undefined) throw new Error(`${name} has no implementation`);
      if (description.methodKind !== "unary")
        throw new Error(`${name} is a stream, which the gateway does not support`);
      return {
        name,
        description,
        scope: rules.scope,
        additionalScopes: rules.furtherScopes,
        readOnly: rules.readOnly,
        handlesIdempotency: rules.storesOwnResponses,
        rate: rules.rate === Rate.MESSAGES ? "messages" : rules.readOnly ? "reads" : "changes",
        weight: rules.weight || 1,
        storesResponse: !rules.readOnly && !rules.responseNotStored,
        maxBodyBytes: rules.maxBodyBytes || (rules.scope === "public" ? publicBodyBytes : defaultBodyBytes),
        rest: restRule(description),
        check: lookUp(served.checks, description.localName) as ApiMethod["check"],
        handle: (input: Message, call: Call) => handler(input as never, call) as Promise<object>,
      };
    }),
  );
}

/** The HTTP rule of a method, with the fields of path, query and body; undefined without a rule. */
export function restRule(description: DescMethod): RestRule | undefined {
  if (!hasOption(description, httpOption)) return undefined;
  const { pattern, body } = getOption(description, httpOption);
  const rules = getOption(description, rulesOption);
  if (pattern.case === undefined || pattern.case === "custom" || (body !== "" && body !== "*")) {
    throw new Error(`${description} has an HTTP rule of an unsupported kind`);
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
    otherStatuses: rules.otherStatuses,
    location: rules.location === "" ? undefined : rules.location,
    text: rules.text === "" ? undefined : rules.text,
    events: rules.bodyKind === BodyKind.EVENTS,
    pathFields,
    queryFields: body === "*" ? [] : others,
    bodyFields: body === "*" ? others : [],
    maskField,
  };
}
