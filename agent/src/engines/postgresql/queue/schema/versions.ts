import { stats, redrive, purge } from "./administer.ts";
import { ackAndClaim, claim, sweep } from "./claim.ts";
import { enqueue, enqueueMany } from "./enqueue.ts";
import { functionSql } from "./function.ts";
import { grants } from "./grants.ts";
import { queueGroup, schema } from "./names.ts";
import { beginLook, endLook } from "./look.ts";
import { ack, cutError, extend, nack } from "./settle.ts";
import { tables } from "./tables.ts";
import { triggers } from "./triggers.ts";

const functions = [
  enqueue,
  enqueueMany,
  sweep,
  claim,
  ackAndClaim,
  cutError,
  ack,
  nack,
  extend,
  stats,
  redrive,
  purge,
].map(functionSql);

/** Claims remember where to begin. */
const looks = [beginLook, endLook, claim, ackAndClaim].map(functionSql);

/** Changes whose plans do not depend on statistics. */
const changes = [sweep, claim, ackAndClaim, redrive, purge].map(functionSql);

/** Orders that no other index has. */
const orders = [endLook, claim, redrive, purge].map(functionSql);

/**
 * Statements of each version, the first one's first. A version that was ever given out is never changed but for bodies of
 * functions that a later one puts again: a later one adds to it, so that older workers and statements of users go on.
 */
export const versions: readonly (readonly string[])[] = [
  [...tables, ...triggers, ...functions, ...grants],
  [...looks, `GRANT SELECT ON SEQUENCE ${schema}.messages_id_seq TO ${queueGroup}`, ...grants],
  changes,
  orders,
];
