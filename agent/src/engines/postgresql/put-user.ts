import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import type { EngineUser } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { EngineRefused } from "../engine-errors.ts";
import { groups, hasReservedPrefix, isReserved } from "./layout.ts";
import { identifier, literal } from "./session.ts";

/** SCRAM verifier (RFC 5803, as PostgreSQL stores it). PostgreSQL would take any other string as a plain password. */
const scramVerifier = /^SCRAM-SHA-256\$\d+:[A-Za-z0-9+/]+={0,2}\$[A-Za-z0-9+/]+={0,2}:[A-Za-z0-9+/]+={0,2}$/;

/**
 * Statements that give a user exactly its role and password, for one transaction. Throws EngineRefused for
 * reserved names.
 *
 * Admins are members of the default user, so that they can use its objects. The default user is a member of all other
 * users with ADMIN OPTION, so that it can drop their objects.
 */
export function putUserSql(user: EngineUser, exists: boolean, version: string): string {
  const { username, role, verifier, replication = exists ? undefined : false } = user;
  if (isReserved(username) || (!exists && hasReservedPrefix(username)))
    throw new EngineRefused(`The name ${username} is reserved for the platform.`);
  const name = identifier(username);
  const fixed = "LOGIN NOBYPASSRLS INHERIT CONNECTION LIMIT -1 VALID UNTIL 'infinity'";
  const attributes = [fixed, ...replicationOf(replication), passwordOf(verifier)].join(" ");
  const password = `${exists ? "ALTER" : "CREATE"} ROLE ${name} NOSUPERUSER ${attributes}`;
  if (username === defaultUser) return `${password}; GRANT ${groups.admin} TO ${name}`;
  const statements = [password];
  switch (role) {
    case "admin":
      statements.push(
        `ALTER ROLE ${name} CREATEDB ${createRole(version)}`,
        ...(exists
          ? [`REVOKE ${name} FROM ${defaultUser}`, revoke(groups.readonly, name), revoke(groups.readwrite, name)]
          : []),
        `GRANT ${groups.admin}, ${defaultUser} TO ${name}`,
        writes(name),
        ...(user.sessionRole === undefined ? [] : [`ALTER ROLE ${name} SET role = ${literal(user.sessionRole)}`]),
      );
      break;
    case "readwrite":
    case "readonly":
      statements.push(
        `ALTER ROLE ${name} NOCREATEDB NOCREATEROLE`,
        ...(exists ? [revoke(`${groups.admin}, ${groups.readonly}, ${groups.readwrite}, ${defaultUser}`, name)] : []),
        `GRANT ${groups[role]} TO ${name}`,
        `GRANT ${name} TO ${defaultUser} WITH ADMIN OPTION`,
        role === "readonly" ? onlyReads(name) : writes(name),
      );
      break;
    default:
      throw new EngineRefused(`Unknown role ${role}. Roles: admin, readwrite, readonly.`);
  }
  return statements.join("; ");
}

/**
 * The statement that sets the requested password and attribute of an existing user, and leaves its role and its
 * other attributes as they are.
 */
export function changeUserSql({
  username,
  verifier,
  replication,
}: Pick<EngineUser, "username" | "verifier" | "replication">): string {
  const changes = [...replicationOf(replication), ...(verifier === "" ? [] : [passwordOf(verifier)])];
  return `ALTER ROLE ${identifier(username)} ${changes.join(" ")}`;
}

function replicationOf(replication: boolean | undefined): string[] {
  if (replication === undefined) return [];
  return [replication ? "REPLICATION" : "NOREPLICATION"];
}

function passwordOf(verifier: string): string {
  if (!scramVerifier.test(verifier)) throw new Error("the verifier is not a SCRAM verifier");
  return `PASSWORD ${literal(verifier)}`;
}

/**
 * Option CREATEROLE or NOCREATEROLE of an admin. Before PostgreSQL 16 CREATEROLE gives privileges over every role that
 * is not a superuser, including predefined roles.
 */
export function createRole(version: string): string {
  return Number(version) >= 16 ? "CREATEROLE" : "NOCREATEROLE";
}

const revoke = (group: string, name: string) => `REVOKE ${group} FROM ${name}`;

/** Makes a reader's session report that it is read-only. The missing privileges are the protection. */
const onlyReads = (name: string) => `ALTER ROLE ${name} SET default_transaction_read_only = on`;

const writes = (name: string) => `ALTER ROLE ${name} RESET default_transaction_read_only`;
