import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { openStream, sealStream } from "@holdfast/common/sealed/sealed-stream.ts";
import { storedFormat, storedNamesUnder } from "@holdfast/common/stored-names.ts";
import { type Keyring, subkey } from "#kernel/secrets/sealer.ts";
import type { DatabaseUserObject } from "../../contents/user/database-user.ts";
import { type ManagedServiceObject, managedServiceStoredNames } from "../../service/managed-service.ts";
import { type ArchiveObject, archiveStoredNames } from "../archive/archive.ts";
import { type BackupObject, isVisible } from "../backup.ts";

/**
 * All data that a recovery needs besides the contents of backups. The descriptor is stored with the backups, encrypted
 * under the master key.
 */
export interface ServiceDescriptor {
  /** `ownName`: the name is not unique, so the organization is matched by its id alone. */
  readonly organization: { readonly id: string; readonly name: string; readonly ownName?: true };
  /** Null for a deleted service with backups. */
  readonly service: ManagedServiceObject | null;
  readonly users: readonly DatabaseUserObject[];
  readonly archive: ArchiveObject;
  /** Completed backups, oldest first. */
  readonly backups: readonly BackupObject[];
}

const format = "holdfast service descriptor 1";
const json = storedFormat<ServiceDescriptor>({
  ...storedNamesUnder("service", managedServiceStoredNames),
  ...storedNamesUnder("archive", archiveStoredNames),
});

/** The descriptor of a service. Completed backups and users are sorted, so that equal contents have equal digests. */
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
    backups: backups.filter((backup) => isVisible(backup) && backup.status.state === "completed"),
  };
}

/**
 * SHA-256 (hex) of the descriptor's contents without the log's end, observed state and timestamps: the object store has
 * newer ones, or a recovery does not need them.
 */
export function digestOf({ organization, service, users, archive, backups }: ServiceDescriptor): string {
  const { firstDueAt: _, lastAutomatedAt: __, requests: ___, log, ...archived } = archive.status;
  const content = {
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
      log: log.map(({ archiveId, term, firstSequence, keys, checkpoints, holes, tail }) => {
        return { archiveId, term, firstSequence, keys, since: checkpoints.at(-1)?.at, holes, tail };
      }),
    },
    backups: backups.map(({ metadata, spec, status }) => {
      const { manifestSha256, isDamaged } = status;
      return [metadata.id, spec.keyVersion, manifestSha256, ...(isDamaged === true ? ["damaged"] : [])];
    }),
  };
  return createHash("sha256").update(JSON.stringify(content)).digest("hex");
}

/** The descriptor as encrypted bytes, bound to the name of its object. */
export function sealDescriptor(
  descriptor: ServiceDescriptor,
  object: string,
  keyring: Keyring,
): AsyncGenerator<Buffer> {
  async function* text() {
    yield Buffer.from(json.format(descriptor));
  }
  return sealStream(text(), { format, object, keyVersion: keyring.current }, keyOf(keyring));
}

/** Decrypts a descriptor. Throws if the bytes were sealed for another object, or under an unknown master key. */
export async function openDescriptor(
  sealed: AsyncIterable<Uint8Array>,
  object: string,
  keyring: Keyring,
): Promise<ServiceDescriptor> {
  const text = await buffer(openStream(sealed, { format, object }, keyOf(keyring)));
  return json.parse(text.toString("utf8"));
}

function keyOf(keyring: Keyring): (version: string) => Uint8Array {
  return (version) => {
    const key = keyring.keys.get(version);
    if (key === undefined)
      throw new Error(`it is encrypted under master key ${version}, which this installation lacks`);
    return subkey(key, "service descriptor");
  };
}
