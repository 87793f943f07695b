import { HoldfastError } from "@holdfast/common/errors.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { type ManagedServiceObject, managedServiceKind } from "./managed-service.ts";

/** One attachment of a service: an object, such as an app, uses it. */
export interface ServiceConsumer {
  /** Id of the attachment. A key of a files service belongs to it. */
  readonly attachmentId: string;
  /** The attached database; empty for a files service. */
  readonly database: string;
  /** The object for texts, such as `app shop`. */
  readonly text: string;
  /** Parent of the object, such as a project; absent without one. */
  readonly managedBy?: { readonly kind: string; readonly id: string };
  /** Store key of the object, and its revision that has the attachment. */
  readonly key: string;
  readonly modRevision: bigint;
}

/** Objects of one kind to which services are attached. */
export interface ServiceConsumers {
  /** Name of the kind. */
  readonly kind: string;
  /** The memory that `of` reads. */
  readonly memory: Pick<Collection<unknown>, "untilRevision">;
  /** Attachments of a service, which may not exist any more. */
  of(organizationId: string, serviceId: string): readonly ServiceConsumer[];
}

export const serviceConsumers = contributionPoint<ServiceConsumers>("consumers of services", {
  key: ({ kind }) => kind,
});

/**
 * The attachments of a service up to a revision of it. A transaction that attaches a service also writes the service
 * (`attachService`), so all attachments up to the service's revision are in memory.
 */
export async function consumersOf(
  kinds: readonly ServiceConsumers[],
  { id, organizationId }: { readonly id: string; readonly organizationId: string },
  modRevision: bigint,
): Promise<readonly ServiceConsumer[]> {
  await Promise.all(kinds.map(({ memory }) => memory.untilRevision(modRevision, 1_000)));
  return kinds.flatMap((kind) => kind.of(organizationId, id));
}

/** Writes the service unchanged, so that a concurrent deletion of it conflicts. Throws WRONG_STATE if it is deleted. */
export function attachService(unit: Changes, service: Stored<ManagedServiceObject>): void {
  if (service.object.metadata.deletionRequestedAt !== undefined)
    throw new HoldfastError("WRONG_STATE", "The service is being deleted.");
  unit.update(managedServiceKind, service, service.object);
}

/** The reason why a service, or one of its databases, cannot be deleted; undefined if nothing is attached. */
export function attachmentText(consumers: readonly ServiceConsumer[], database?: string): string | undefined {
  const found = consumers.find((each) => database === undefined || each.database === database);
  if (found === undefined) return undefined;
  const what = found.database === "" ? "The service" : `The database ${found.database}`;
  return `${what} is attached to ${found.text}. Detach it first (attachment ${found.attachmentId}).`;
}
