import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type { Call, RefusedCall, ServedService } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";

export interface RefusalAuditDeps {
  /** Records an entry; the implementation limits the number of entries per caller. */
  readonly record: (entry: NewAudit) => void;
  /** Object kind of each RPC service that changes something, by its full name. */
  readonly kinds: Readonly<Record<string, string>>;
}

/** Writes refused changes to the audit log. */
export interface RefusalAudit {
  /** Records a change that was refused before it reached its method. */
  refused(call: RefusedCall): void;
  /** Wraps a service so that refused changes are recorded. Throws for a service whose object kind is not declared. */
  wrap(served: ServedService): ServedService;
}

export function createRefusalAudit({ record, kinds }: RefusalAuditDeps): RefusalAudit {
  const kindOf = ({ parent }: DescMethod) => lookUp(kinds, parent.typeName) ?? "";

  return {
    refused: ({ method, principal, source, requestId, error, input = {} }) =>
      record(refusalOf(method, kindOf(method), { principal, source, requestId }, error, input)),
    wrap(served) {
      const handlers: Record<string, (input: never, call: Call) => unknown> = {};
      for (const method of served.service.methods) {
        const handler = lookUp(served.handlers, method.localName);
        if (handler === undefined) throw new Error(`${served.service.typeName} has no ${method.localName}`);
        if (getOption(method, rules).readOnly || method.methodKind !== "unary") {
          handlers[method.localName] = handler;
          continue;
        }
        const kind = kindOf(method);
        if (kind === "")
          throw new Error(`no system declares the object kind of ${method.parent.typeName}: add it to audited`);
        handlers[method.localName] = async (input, call) => {
          try {
            return await handler(input, call);
          } catch (error) {
            record(refusalOf(method, kind, call, HoldfastError.from(error), input));
            throw error;
          }
        };
      }
      return { ...served, handlers };
    },
  };
}

function refusalOf(
  method: DescMethod,
  objectKind: string,
  { principal, source, requestId }: Pick<Call, "principal" | "source" | "requestId">,
  error: HoldfastError,
  input: object,
): NewAudit {
  return {
    organizationId: principal?.organizationId ?? "",
    actor: principal === undefined ? "anonymous" : `${principal.kind}:${principal.name}`,
    source,
    action: `${method.name} ${error.code}`,
    objectKind,
    objectId: objectIdOf(input as Readonly<Record<string, unknown>>),
    result: "refused",
    requestId,
  };
}

function objectIdOf(input: Readonly<Record<string, unknown>>): string {
  const { serviceId, id: own, userId, username, orgId, hostId, machineId, image } = input;
  const id = serviceId ?? own ?? userId ?? username ?? orgId ?? hostId ?? machineId ?? image;
  return typeof id === "string" ? id.slice(0, 64) : "";
}
