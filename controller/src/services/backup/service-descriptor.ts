import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { openStream, sealStream } from "@holdfast/common/sealed/sealed-stream.ts";
import { type Keyring, subkey } from "#kernel/secrets/sealer.ts";
import type { DatabaseUserObject } from "../contents/user/database-user.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ArchiveObject } from "./archive.ts";
import { type BackupObject, isShown } from "./backup.ts";

/** All that brings a service back besides its bytes: it lies beside them in the store, sealed under the master key. */
export interface ServiceDescriptor {
  /** `ownName`: others may have the name too, so the organization is found by its id alone. */
  readonly organization: { readonly id: string; readonly name: string; readonly ownName?: true };
  /** Null for one that is gone and has left backups. */
  readonly service: ManagedServiceObject | null;
  readonly users: readonly DatabaseUserObject[];
  readonly archive: ArchiveObject;
  /** Completed ones, oldest first. */
  readonly backups: readonly BackupObject[];
}

const format = "holdfast service descriptor 1";

/** Pure: the descriptor without what is known otherwise, or does not matter afterwards. */
export function descriptorOf(parts: {
  readonly organization: ServiceDescriptor["organization"];
  readonly service: ManagedServiceObject | undefined;
  readonly users: readonly DatabaseUserObject[];
  readonly archive: ArchiveObject;
  readonly backups: readonly BackupObject[];
}): ServiceDescriptor {
  const { organization, service, users, archive, backups } = parts;
  return {
    organization,
    service: service ?? null,
    users: users.toSorted((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1)),
    archive,
    backups: backups.filter((backup) => isShown(backup) && backup.status.state === "completed"),
  };
}

/**
 * Pure: equal for descriptors that bring back the same. How far the log is, what is observed of the service, and when anything
 * was touched last is not part of it: the store tells the first better, and nobody needs the rest.
 */
export function digestOf({ organization, service, users, archive, backups }: ServiceDescriptor): string {
  const { firstDueAt: _, lastAutomatedAt: __, requests: ___, log, ...archived } = archive.status;
  const what = {
    organization,
    service: service && {
      name: service.metadata.name,
      isGoing: service.metadata.deletionRequestedAt !== undefined,
      spec: service.spec,
      term: service.status.term,
    },
    users: users.map(({ metadata, spec }) => ({ id: metadata.id, spec })),
    archive: {
      spec: archive.spec,
      ...archived,
      log: log.map(({ archiveId, term, firstSequence, keys, checkpoints }) => {
        return { archiveId, term, firstSequence, keys, since: checkpoints.at(-1)?.at };
      }),
    },
    backups: backups.map(({ metadata, spec, status }) => [metadata.id, spec.keyVersion, status.manifestSha256]),
  };
  return createHash("sha256").update(JSON.stringify(what)).digest("hex");
}

/** The descriptor as it is stored as this object. */
export function sealDescriptor(
  descriptor: ServiceDescriptor,
  object: string,
  keyring: Keyring,
): AsyncGenerator<Buffer> {
  async function* text() {
    yield Buffer.from(JSON.stringify(descriptor));
  }
  return sealStream(text(), { format, object, keyVersion: keyring.current }, keyOf(keyring));
}

/** Throws for what is not this very object, or is sealed under another master key. */
export async function openDescriptor(
  sealed: AsyncIterable<Uint8Array>,
  object: string,
  keyring: Keyring,
): Promise<ServiceDescriptor> {
  const text = await buffer(openStream(sealed, { format, object }, keyOf(keyring)));
  return JSON.parse(text.toString("utf8")) as ServiceDescriptor;
}

function keyOf(keyring: Keyring): (version: string) => Uint8Array {
  return (version) => {
    const key = keyring.keys.get(version);
    if (key === undefined) throw new Error(`it is sealed under master key ${version}, which is not here`);
    return subkey(key, "service descriptor");
  };
}
