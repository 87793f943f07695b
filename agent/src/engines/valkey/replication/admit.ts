import { createHash } from "node:crypto";
import type { Instance } from "../../engine-driver.ts";
import { leaderOf, roleOf } from "../../members.ts";
import { applyAuthority, applyMembers } from "../listener.ts";
import { parseInfo } from "../info.ts";
import { type Session, withSession } from "../session.ts";
import { holdUsersTo } from "../users.ts";
import { peerPort, replicaUser } from "./peer-way.ts";

/** Opens the peer way to exactly the members, and has a replica follow the primary of now. */
export async function admit(instance: Instance, signal: AbortSignal): Promise<void> {
  await applyAuthority(instance, signal);
  await applyMembers(instance, signal);
  await withSession(instance, signal, async (session) => {
    await admitReplicas(instance, session);
    if (roleOf(instance.spec) === "replica") await holdUsersTo(session, instance.spec.users);
    await followLeader(instance, session);
  });
}

/** The user is on each member, so that a promotion needs nothing of it. */
async function admitReplicas({ spec }: Instance, session: Session): Promise<void> {
  const hash = createHash("sha256")
    .update(spec.replication?.secret ?? "")
    .digest("hex");
  const before = (await session.call("ACL", "GETUSER", replicaUser)) as unknown[] | null;
  const passwords = before === null ? [] : (before[before.indexOf("passwords") + 1] as string[]);
  if (passwords.length === 1 && passwords[0] === hash) return;
  const rights = ["-@all", "+psync", "+replconf", "+ping"];
  await session.call("ACL", "SETUSER", replicaUser, "reset", "on", `#${hash}`, ...rights);
  await session.call("ACL", "SAVE");
}

async function followLeader(instance: Instance, session: Session): Promise<void> {
  const leader = leaderOf(instance);
  if (leader === undefined) return;
  const info = parseInfo(String(await session.call("INFO", "replication")));
  const port = String(peerPort(instance));
  if (info.get("master_host") === leader.address && info.get("master_port") === port) return;
  await session.call("REPLICAOF", leader.address, port);
}
