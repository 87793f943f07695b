/**
 * Milliseconds after which a call, or a transaction that waits for its turn, is given up; its caller gets
 * STORE_UNAVAILABLE. etcd elects a new leader in about one second, which is then a delay and no error; and it is well
 * below the lease of a controller (5 s), which ends its work when etcd stays away.
 */
export const answerWithinMs = 2_000;

/** Bytes of one answer: the 4 MiB that the client takes by itself are less than a page of large objects. */
export const answerBytesMax = 64 * 1024 * 1024;

/** Keys of one answer to a list. */
export const pageKeysMax = 500;

/** Keys of one transaction: etcd takes no more (`--max-txn-ops`). */
export const transactionKeysMax = 128;
