import { getOption } from "@bufbuild/protobuf";
import type { Call, Principal, ServedService } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import type { NewAudit } from "../store/unit-of-work.ts";
import { actorOf } from "./caller.ts";

/** The audit entry of a change that was refused for want of a scope, before its input was looked at. */
export function refusedCall(method: string, principal: Principal, source: string, requestId: string): NewAudit {
  const dot = method.lastIndexOf(".");
  return {
    organizationId: principal.organizationId ?? "",
    actor: `${principal.kind}:${principal.name}`,
    source,
    action: `${method.slice(dot + 1)} scope_missing`,
    objectKind: kindOf(method.slice(0, dot)),
    objectId: "",
    result: "refused",
    requestId,
  };
}

const kinds: Readonly<Record<string, NewAudit["objectKind"]>> = {
  "holdfast.v1.OrganizationService": "organization",
  "holdfast.v1.UserService": "user",
  "holdfast.v1.ApiKeyService": "api-key",
  "holdfast.v1.TokenService": "token",
  "holdfast.v1.DatabaseUserService": "database-user",
  "holdfast.v1.WebhookService": "webhook",
  "holdfast.admin.v1.OrganizationService": "organization",
  "holdfast.admin.v1.OperatorService": "user",
};

function kindOf(service: string): NewAudit["objectKind"] {
  return kinds[service] ?? "managed-service";
}

/** Wraps a service so that refused mutations are in the audit log beside the ones that were carried out. */
export function auditRefusals(served: ServedService, record: (entry: NewAudit) => void): ServedService {
  const handlers: Record<string, (input: never, call: Call) => unknown> = {};
  for (const method of served.service.methods) {
    const handler = served.handlers[method.localName];
    if (handler === undefined) throw new Error(`${served.service.typeName} has no ${method.localName}`);
    if (getOption(method, rules).readOnly || method.methodKind !== "unary") {
      handlers[method.localName] = handler;
      continue;
    }
    handlers[method.localName] = async (input, call) => {
      try {
        return await handler(input, call);
      } catch (error) {
        const { key } = HoldfastError.from(error);
        record({
          organizationId: call.principal?.organizationId ?? "",
          actor: actorOf(call),
          source: call.source,
          action: `${method.name} ${key.toLowerCase()}`,
          objectKind: kindOf(served.service.typeName),
          objectId: objectIdOf(input),
          result: "refused",
          requestId: call.requestId,
        });
        throw error;
      }
    };
  }
  return { ...served, handlers };
}

function objectIdOf(input: Readonly<Record<string, unknown>>): string {
  const id = input.serviceId ?? input.id ?? input.userId ?? input.username ?? input.orgId;
  return typeof id === "string" ? id.slice(0, 64) : "";
}
