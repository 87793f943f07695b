import { HoldfastError } from "@holdfast/common/errors.ts";
import { next } from "@holdfast/common/machine.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { newOperation, type OperationDefinition } from "#operation/operation-definition.ts";
import type { OperationObject } from "#operation/operation.ts";
import { serviceOperations } from "#services/service/service-operations.ts";
import { appKind } from "../app/app.ts";
import type { HostedApp } from "./hosted-app.ts";
import type { HostingSpec, HostingStatus } from "./hosting.ts";
import { hostingLifecycle } from "./hosting-lifecycle.ts";
import { hostingOperations } from "./hosting-operations.ts";

/** Time and id of the operation of a change. */
interface AsOf {
  readonly operationId: string;
  readonly now: number;
}

/** A hosted app after a change of its machines, with the operation that ends once they have it. */
export interface HostingChange {
  readonly app: HostedApp;
  readonly operation: OperationObject;
}

/** Throws WRONG_STATE for an app that is stopped. */
export function requireStarted({ spec }: HostedApp): void {
  if (spec.hosting.power === "off")
    throw new HoldfastError("WRONG_STATE", "The app is stopped. POST start to it first.");
}

/** Throws WRONG_STATE for an app that is stopped. */
export function stopped(app: HostedApp, asOf: AsOf): HostingChange {
  if (app.spec.hosting.power === "off") throw new HoldfastError("WRONG_STATE", "The app is stopped already.");
  return changed(app, serviceOperations.stop, { power: "off" }, {}, asOf);
}

/** Throws WRONG_STATE for an app that is not stopped. */
export function started(app: HostedApp, asOf: AsOf): HostingChange {
  const { power: _, ...hosting } = app.spec.hosting;
  if (_ !== "off") throw new HoldfastError("WRONG_STATE", "The app is not stopped.");
  const before = app.status.hosting.state;
  const [, , state = before] = next(hostingLifecycle, before, "startRequested") ?? [];
  const without = { ...app, spec: { ...app.spec, hosting } };
  return changed(without, serviceOperations.start, {}, { state, since: asOf.now }, asOf);
}

/** Throws NOT_POSSIBLE if the app has this number of machines already, and WRONG_STATE if it is stopped. */
export function scaled(app: HostedApp, replicas: number, asOf: AsOf): HostingChange {
  requireStarted(app);
  if (app.spec.hosting.replicas === replicas)
    throw new HoldfastError("NOT_POSSIBLE", `The app has ${replicas} replicas already. Choose another number.`);
  return changed(app, hostingOperations.scale, { replicas }, {}, asOf);
}

function changed(
  app: HostedApp,
  type: OperationDefinition,
  spec: Partial<HostingSpec>,
  status: Partial<HostingStatus>,
  { operationId, now }: AsOf,
): HostingChange {
  const { id, organizationId } = app.metadata;
  return {
    app: {
      ...app,
      metadata: nextMetadata(app.metadata, now),
      spec: { ...app.spec, hosting: { ...app.spec.hosting, ...spec } },
      status: { hosting: { ...app.status.hosting, ...status, operationId } },
    },
    operation: newOperation({ id: operationId, subject: { kind: appKind.name, id }, organizationId, type, now }),
  };
}
