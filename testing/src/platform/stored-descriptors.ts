import { join } from "node:path";
import { descriptorsPrefix } from "@holdfast/common/backup/object-names.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { readKeyring, createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { keyOf } from "@holdfast/controller/kernel/store/resource.ts";
import {
  openDescriptor,
  type ServiceDescriptor,
} from "@holdfast/controller/services/backup/objects/service-descriptor.ts";
import { databaseUserKind } from "@holdfast/controller/services/contents/user/database-user.ts";
import type { Platform } from "./platform.ts";

/** Descriptors of services in the object store, read with the master key. */
export function createStoredDescriptors({ directory }: Platform) {
  const objects = createDirectoryStore(join(directory, "objects"));
  const keyring = () => readKeyring(join(directory, "keys", "master-key.json"));
  return {
    /** Newest descriptor of a service; undefined while there is none. */
    async descriptorOf(serviceId: string): Promise<ServiceDescriptor | undefined> {
      const { objects: stored } = await objects.list(descriptorsPrefix(serviceId), { limit: 100 });
      const key = stored.at(-1)?.key;
      const sealed = key === undefined ? undefined : await objects.get(key);
      if (key === undefined || sealed === undefined) return undefined;
      return openDescriptor(sealed, key, await keyring());
    },
    async passwordIn(descriptor: ServiceDescriptor | undefined, username: string): Promise<string | undefined> {
      const user = descriptor?.users.find(({ spec }) => spec.username === username);
      return (
        user && createSealer(await keyring()).open(user.spec.sealedPassword, keyOf(databaseUserKind, user.metadata.id))
      );
    },
  };
}
