import { isDeepStrictEqual } from "node:util";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { CreateAttachmentRequest } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { type HostedApp, isHosted, requireHosted } from "../hosting/hosted-app.ts";
import { type AppObject, appKind } from "./app.ts";

/** Port that is reserved for HTTPS of clients. */
const reservedPort = 80;

/**
 * Checks that an app can be attached to another one, and writes it unchanged in the unit of work, so that a concurrent
 * deletion of it conflicts. Throws INVALID_REQUEST, APP_NOT_HOSTED, PORT_80_RESERVED and WRONG_STATE.
 */
export function attachApp(
  unit: Changes,
  { databaseName, access }: CreateAttachmentRequest,
  consumer: AppObject,
  target: Stored<AppObject>,
  portOf: (app: HostedApp) => number | undefined,
): void {
  const { metadata } = target.object;
  if (metadata.id === consumer.metadata.id)
    throw invalid({ field: "service_id", code: "invalid_value", detail: "is the app itself" });
  if (databaseName !== undefined)
    throw invalid({ field: "database_name", code: "invalid_value", detail: "is only for a database; omit it" });
  if (access !== undefined)
    throw invalid({ field: "access", code: "invalid_value", detail: "is only for a files service; omit it" });
  requireHosted(consumer);
  if (portOf(requireHosted(target.object)) === reservedPort) throw portReserved(metadata.name);
  if (metadata.deletionRequestedAt !== undefined) throw new HoldfastError("WRONG_STATE", "The app is being deleted.");
  unit.update(appKind, target, target.object);
}

/** Throws PORT_80_RESERVED for a change of an app to the port 80 while it is attached. */
export function requireOpenPort(apps: Pick<Collection<AppObject>, "page">, app: AppObject, port?: number): void {
  if (port === reservedPort && consumerOf(apps, app) !== undefined) throw portReserved(app.metadata.name);
}

/** Throws ATTACHMENT_IN_USE while an app is attached to another one. */
export async function requireUnattached(
  apps: Pick<Collection<AppObject>, "page" | "untilRevision">,
  { object, modRevision }: Stored<AppObject>,
): Promise<void> {
  // A transaction that attaches an app also writes it.
  await apps.untilRevision(modRevision, 1_000);
  const detail = attachedToText(object, consumerOf(apps, object));
  if (detail !== undefined) throw new HoldfastError("ATTACHMENT_IN_USE", detail);
}

/** The reason why a bundle's app cannot be removed: one outside of the bundle uses it; undefined without one. */
export function foreignConsumer(apps: Pick<Collection<AppObject>, "page">, app: AppObject): string | undefined {
  const { managedBy } = app.metadata;
  const isForeign = (other: AppObject) =>
    managedBy === undefined || !isDeepStrictEqual(other.metadata.managedBy, managedBy);
  return attachedToText(app, consumerOf(apps, app, isForeign));
}

function attachedToText({ metadata }: AppObject, consumer: AppObject | undefined): string | undefined {
  if (consumer === undefined) return undefined;
  const { id } = consumer.spec.attachments.find(({ serviceId }) => serviceId === metadata.id) ?? {};
  return `The app is attached to app ${consumer.metadata.name}. Detach it first (attachment ${id}).`;
}

/** An app to which this one is attached; undefined if there is none. */
function consumerOf(
  apps: Pick<Collection<AppObject>, "page">,
  { metadata }: AppObject,
  counts: (consumer: AppObject) => boolean = () => true,
): AppObject | undefined {
  return ofOrganization(apps, metadata.organizationId).find(
    (each) =>
      counts(each) &&
      isHosted(each) &&
      each.spec.attachments.some(({ app, serviceId }) => app && serviceId === metadata.id),
  );
}

function portReserved(name: string): HoldfastError {
  const detail = `${name} listens on port 80, which is reserved for HTTPS: choose another port.`;
  return new HoldfastError("PORT_80_RESERVED", detail);
}
