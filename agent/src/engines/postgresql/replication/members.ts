import { join } from "node:path";
import { optionsOf } from "@holdfast/common/postgresql/session-settings.ts";
import { effectiveParameters } from "../../effective-parameters.ts";
import type { Instance } from "../../engine-driver.ts";
import { leaderOf, ownMember } from "../../members.ts";
import { platform, replicaRole } from "../layout.ts";
import { keyFiles } from "../key-copy.ts";

/** Name of the map in pg_ident.conf from members' certificates to the role. */
export const memberMap = `${platform}_members`;

const prefix = `${platform}_member_`;

/** Name of a member's slot and of its session in pg_stat_replication, such as `holdfast_member_2`. */
export function memberName(number: number): string {
  return `${prefix}${number}`;
}

/** Number of the member with this name; undefined for other names. */
export function memberNumber(name: string): number | undefined {
  const digits = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  return /^\d+$/.test(digits) ? Number(digits) : undefined;
}

export const slotPrefix = prefix;

/** True if members copy logical slots that users created with FAILOVER. */
export function synchronizesSlots(instance: Instance): boolean {
  const { version, replication } = instance.spec;
  const isLogical = effectiveParameters(instance).get("wal_level") === "logical";
  return replication !== undefined && Number(version) >= 17 && isLogical;
}

/** Connection string of this replica to its primary; undefined without a primary. */
export function primaryConninfo(instance: Instance): string | undefined {
  const leader = leaderOf(instance);
  const member = ownMember(instance);
  if (leader === undefined || member === undefined) return undefined;
  const { paths, spec } = instance;
  return Object.entries({
    // Certificates contain host names, which the machine may be unable to resolve.
    host: leader.hostname,
    hostaddr: leader.address,
    port: String(spec.port),
    user: replicaRole,
    dbname: platform,
    application_name: memberName(member.number),
    // Only this setting: PostgreSQL truncates primary_conninfo at 1,023 bytes. pg_rewind sets the other limits itself.
    options: optionsOf({ idle_session_timeout: "0" }),
    sslmode: "verify-full",
    sslrootcert: join(paths.tls, "ca.crt"),
    sslcert: join(paths.tls, "server.crt"),
    sslkey: keyFiles(instance).copy,
    gssencmode: "disable",
    connect_timeout: "5",
    tcp_user_timeout: "5000",
  })
    .map(([name, value]) => `${name}='${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`)
    .join(" ");
}
