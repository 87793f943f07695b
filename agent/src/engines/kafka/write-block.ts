import type { Instance } from "../engine-driver.ts";
import { blockedWrites, keyOfAcl } from "./access.ts";
import { addAcls, listAcls, removeAcls } from "./acls.ts";
import type { Connection } from "./protocol/connection.ts";

/** Denies all users' writes while the disk is nearly full, and allows them again afterwards. */
export async function settleWriteBlock({ writesBlocked }: Instance, session: Connection): Promise<void> {
  const keys = new Set(blockedWrites.map(keyOfAcl));
  const present = (await listAcls(session, "User:*")).filter((acl) => keys.has(keyOfAcl(acl)));
  if (writesBlocked === true) {
    if (present.length < blockedWrites.length) await addAcls(session, blockedWrites);
  } else await removeAcls(session, present);
}
