/** The three parts that a message is in one of, each with its own index; `m` is a row of messages. */
export const slices = {
  fresh: "m.attempt_count = 0 AND m.visible_at <= m.enqueued_at",
  due: "(m.attempt_count > 0 OR m.visible_at > m.enqueued_at) AND m.attempt_count < m.max_attempts",
  last: "m.attempt_count >= m.max_attempts",
} as const;

/**
 * Rows of a queue after an id, and their order: a name that is equated would make the order that of ids alone, which the primary key has
 * too, and statistics of other queues can make it look cheaper to pass the messages of all of them.
 */
export const inOrderAfter = (row: string, afterId: string): string =>
  `(${row}.queue_name, ${row}.id) > (queue, ${afterId}) AND ${row}.queue_name <= queue`;
export const orderOf = (row: string): string => `${row}.queue_name, ${row}.id`;
