import { stats, redrive, purge } from "./administer.ts";
import { ackAndClaim, claim, sweep } from "./claim.ts";
import { enqueue, enqueueMany } from "./enqueue.ts";
import { functionSql } from "./function.ts";
import { dumpGrants, grants } from "./grants.ts";
import { queueGroup, schema } from "./names.ts";
import { beginScan, endScan } from "./scan-position.ts";
import { ack, truncateError, extend, nack } from "./settle.ts";
import { tables } from "./tables.ts";
import { triggers } from "./triggers.ts";

const functions = [
  enqueue,
  enqueueMany,
  sweep,
  claim,
  ackAndClaim,
  truncateError,
  ack,
  nack,
  extend,
  stats,
  redrive,
  purge,
].map(functionSql);

/** Version 2: sessions store where the next claim begins. */
const scanPositions = [beginScan, endScan, claim, ackAndClaim].map(functionSql);

/** Version 3: changes whose plans do not depend on statistics. */
const fixedPlans = [sweep, claim, ackAndClaim, redrive, purge].map(functionSql);

/** Version 4: orders that no other index has. */
const fixedOrders = [endScan, claim, redrive, purge].map(functionSql);

/**
 * Statements of each schema version, in order. A released version is never changed, except for bodies of functions that
 * a later version replaces. Later versions only add to it, so that older workers and users' statements keep working.
 */
export const versions: readonly (readonly string[])[] = [
  [...tables, ...triggers, ...functions, ...grants],
  [...scanPositions, `GRANT SELECT ON SEQUENCE ${schema}.messages_id_seq TO ${queueGroup}`, ...grants],
  fixedPlans,
  fixedOrders,
  // Version 5: the default user's pg_dump.
  dumpGrants,
];
