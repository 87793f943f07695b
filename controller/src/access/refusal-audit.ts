import { type DescMethod, getOption } from "@bufbuild/protobuf";
import type { Call, RefusedCall, ServedService } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { rules } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import type { NewAudit } from "../store/outbox-entry.ts";

/** So many refusals a minute that nothing else bounds are recorded: without a good credential, and past the rate limit. */
const unboundedMax = 100;
const windowMs = 60_000;

/** Records changes that were refused before they came to their method. */
export function createRefusalAudit({
  record,
  clock,
  log,
}: {
  readonly record: (entry: NewAudit) => void;
  readonly clock: Clock;
  readonly log: Log;
}): (refused: RefusedCall) => void {
  let unbounded = 0;
  let endsAt = 0;
  return ({ method, principal, source, requestId, error, input = {} }) => {
    if (principal === undefined || error.key === "RATE_LIMITED") {
      const now = clock.monotonicMs();
      if (now >= endsAt) {
        if (unbounded > unboundedMax) log.warn("refused calls not recorded", { count: unbounded - unboundedMax });
        unbounded = 0;
        endsAt = now + windowMs;
      }
      unbounded += 1;
      if (unbounded > unboundedMax) return;
    }
    record(refusalOf(method, { principal, source, requestId }, error, input));
  };
}

function refusalOf(
  method: DescMethod,
  { principal, source, requestId }: Pick<Call, "principal" | "source" | "requestId">,
  error: HoldfastError,
  input: object,
): NewAudit {
  return {
    organizationId: principal?.organizationId ?? "",
    actor: principal === undefined ? "anonymous" : `${principal.kind}:${principal.name}`,
    source,
    action: `${method.name} ${error.code}`,
    objectKind: kinds[method.parent.typeName] ?? "managed-service",
    objectId: objectIdOf(input as Readonly<Record<string, unknown>>),
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
  "holdfast.admin.v1.HostService": "host",
  "holdfast.admin.v1.AgentRolloutService": "agent-rollout",
  "holdfast.admin.v1.MaintenanceService": "node-image",
  "holdfast.admin.v1.FleetService": "machine",
};

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
        record(refusalOf(method, call, HoldfastError.from(error), input));
        throw error;
      }
    };
  }
  return { ...served, handlers };
}

function objectIdOf(input: Readonly<Record<string, unknown>>): string {
  const { serviceId, id: own, userId, username, orgId, hostId, machineId, image } = input;
  const id = serviceId ?? own ?? userId ?? username ?? orgId ?? hostId ?? machineId ?? image;
  return typeof id === "string" ? id.slice(0, 64) : "";
}
