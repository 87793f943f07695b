import { randomInt } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { filesKeyPrefixes } from "@holdfast/common/engine-catalog/files.ts";
import { FilesAccess, type FilesKey, FilesKeySchema } from "@holdfast/proto/holdfast/v1/files_pb.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf, newMetadata } from "#kernel/store/resource.ts";
import { type DatabaseUserObject, databaseUserId, databaseUserKind } from "../contents/user/database-user.ts";

/** Access of a key to the objects of its service. */
export type KeyAccess = keyof typeof filesKeyPrefixes;

/** A stored key: a user whose name is the access key id, and whose password is the secret. */
export type FilesKeyObject = DatabaseUserObject & {
  readonly spec: { readonly key: NonNullable<DatabaseUserObject["spec"]["key"]> };
};

export function isFilesKey(user: DatabaseUserObject): user is FilesKeyObject {
  return user.spec.key !== undefined;
}

const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const secretAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

function randomText(length: number, alphabet: string): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join("");
}

/** A new key with a random pair of the lengths that S3 has: 20 and 40 characters. */
export function newFilesKey(
  {
    serviceId,
    organizationId,
    keyId,
    name,
    access,
    consumerId,
  }: {
    readonly serviceId: string;
    readonly organizationId: string;
    readonly keyId: string;
    readonly name: string;
    readonly access: KeyAccess;
    readonly consumerId?: string | undefined;
  },
  sealer: Pick<Sealer, "seal">,
  now: number,
): { readonly key: FilesKeyObject; readonly secret: string } {
  const username = `${filesKeyPrefixes[access]}${randomText(16, idAlphabet)}`;
  const secret = randomText(40, secretAlphabet);
  const id = databaseUserId(serviceId, username);
  const key: FilesKeyObject = {
    metadata: newMetadata(id, now, { name: username, organizationId }),
    spec: {
      serviceId,
      username,
      role: access,
      sealedPassword: sealer.seal(secret, keyOf(databaseUserKind, id)),
      verifier: "",
      key: { id: keyId, name, ...(consumerId !== undefined && { consumerId }) },
    },
    status: {},
  };
  return { key, secret };
}

/** Message of a key; with its secret only in the response of its creation. */
export function filesKeyMessage({ metadata, spec }: FilesKeyObject, secret?: string): FilesKey {
  return create(FilesKeySchema, {
    id: spec.key.id,
    name: spec.key.name,
    access: spec.role === "readonly" ? FilesAccess.READONLY : FilesAccess.READWRITE,
    accessKeyId: spec.username,
    ...(secret !== undefined && { secretAccessKey: secret }),
    createdAt: timestampFromMs(metadata.createdAt),
  });
}
