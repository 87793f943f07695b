import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { agentRole, queueGroup, schema } from "./names.ts";

/** Privileges of users' group and the agent's role. PUBLIC has none, so users outside the group see nothing. */
export const grants: readonly string[] = [
  `REVOKE ALL ON SCHEMA ${schema} FROM PUBLIC`,
  `REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ${schema} FROM PUBLIC`,
  `GRANT USAGE ON SCHEMA ${schema} TO ${queueGroup}, ${agentRole}`,
  `GRANT SELECT ON ${schema}.queues TO ${queueGroup}`,
  `GRANT SELECT, INSERT, UPDATE, DELETE ON ${schema}.messages, ${schema}.dead_messages TO ${queueGroup}`,
  `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} TO ${queueGroup}, ${agentRole}`,
  `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${agentRole}`,
  `GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ${schema} TO ${agentRole}`,
];

/** Privileges of the default user in addition to its group's, so that its `pg_dump` reads the complete schema. */
export const dumpGrants: readonly string[] = [
  `GRANT USAGE ON SCHEMA ${schema} TO ${defaultUser}`,
  `GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${defaultUser}`,
  `GRANT SELECT ON ALL SEQUENCES IN SCHEMA ${schema} TO ${defaultUser}`,
];

/** Grants between roles, which belong to the engine and not the database: done with the first queue. */
export const roles: readonly string[] = [
  `GRANT ${queueGroup} TO ${defaultUser} WITH ADMIN OPTION`,
  // Required to see which session has an old snapshot.
  `GRANT pg_read_all_stats TO ${agentRole}`,
];
