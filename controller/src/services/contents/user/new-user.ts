import { keyOf, newMetadata } from "#kernel/store/resource.ts";
import { makePassword } from "#kernel/secrets/engine-password.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";
import { databaseUserId, databaseUserKind, type DatabaseUserObject } from "./database-user.ts";

export interface NewUserArgs {
  readonly serviceId: string;
  readonly organizationId: string;
  readonly username: string;
  readonly role: DatabaseUserObject["spec"]["role"];
  readonly engine: string;
  readonly sealer: Sealer;
  readonly now: number;
}

/** A user with a new random password: the object has it encrypted, and its verifier for the engine. */
export function newUser({ serviceId, organizationId, username, role, engine, sealer, now }: NewUserArgs): {
  user: DatabaseUserObject;
  password: string;
} {
  const id = databaseUserId(serviceId, username);
  const password = makePassword();
  const user: DatabaseUserObject = {
    metadata: newMetadata(id, now, { name: username, organizationId }),
    spec: {
      serviceId,
      username,
      role,
      sealedPassword: sealer.seal(password, keyOf(databaseUserKind, id)),
      verifier: engineProfileOf(engine).verifierOf(password),
    },
    status: {},
  };
  return { user, password };
}
