import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Call, ServedService } from "@holdfast/common/call.ts";

/** A call of a user of organization `o`, with changes. */
export function testCall(change: Partial<Call> = {}): Call {
  return {
    principal: { kind: "user", id: "anna", name: "anna", organizationId: "o", scopes: new Set() },
    source: "127.0.0.1",
    requestId: "r",
    signal: new AbortController().signal,
    idempotency: undefined,
    ifMatch: undefined,
    minRevision: undefined,
    setHeader() {},
    ...change,
  };
}

/** The methods of a service, without a gateway before them. */
export type MethodsOf<S extends DescService> = {
  readonly [N in keyof S["method"]]: S["method"][N] extends DescMethod
    ? (input: MessageInitShape<S["method"][N]["input"]>, call: Call) => Promise<MessageShape<S["method"][N]["output"]>>
    : never;
};

export function methodsOf<S extends DescService>(service: S, { handlers }: ServedService): MethodsOf<S> {
  const methods = service.methods.map(({ localName, input, output }) => {
    const handle = handlers[localName] as (input: object, call: Call) => Promise<Init>;
    return [localName, async (init: Init, call: Call) => create(output, await handle(create(input, init), call))];
  });
  return Object.fromEntries(methods) as MethodsOf<S>;
}

type Init = MessageInitShape<DescMessage>;
