import { pino } from "pino";
import { createTokenBuckets } from "./token-bucket.ts";

export type LogFields = Readonly<Record<string, unknown>>;

/** Constant lower-case message plus key-value pairs. Never a secret: see the redacted names. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** An error is logged once, where it stops. */
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Log;
}

const secretNames = ["password", "secret", "token", "authorization", "verifier", "private_key", "privateKey"];

/** Warnings, and errors, of one message: so many at once, then one a second. */
const paceOfMessage = { burst: 200, perSecond: 1 };
/** Messages are constants of the code, and a few contain a name. */
const messagesMax = 1_000;

/** JSON lines on standard error; warnings and errors are bounded by message. */
export function createLog(name: string, level = "info"): Log {
  const redact = [...secretNames, ...secretNames.map((secret) => `*.${secret}`)];
  const options = { name, level, redact, base: { pid: process.pid }, serializers: { error: describeError } };
  const logger = pino(options, pino.destination({ dest: 2, sync: true }));
  return paceLog(wrap(logger), () => performance.now());
}

/** An error with what it says, where it comes from and why: none of that is enumerable, so JSON alone would show `{}`. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, cause } = error;
  const described = { name, message, stack, ...(cause === undefined ? {} : { cause: describeError(cause) }) };
  return Object.assign(described, Object.fromEntries(Object.entries(error)));
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog };

function wrap(logger: pino.Logger): Log {
  return {
    debug: (message, fields = {}) => logger.debug(fields, message),
    info: (message, fields = {}) => logger.info(fields, message),
    warn: (message, fields = {}) => logger.warn(fields, message),
    error: (message, fields = {}) => logger.error(fields, message),
    child: (fields) => wrap(logger.child(fields)),
  };
}

/**
 * Bounds the warnings and errors of each message, since requests cause most of them and a flood of requests must not fill the
 * log. A later line of the message has the number of those left out. What a process does of itself is logged as information,
 * which is not bounded.
 */
export function paceLog(log: Log, monotonicMs: () => number): Log {
  const buckets = createTokenBuckets(paceOfMessage, monotonicMs, messagesMax);
  const leftOut = new Map<string, number>();

  const bounded =
    (write: Log["warn"]): Log["warn"] =>
    (message, fields) => {
      const before = leftOut.get(message) ?? 0;
      if (!buckets.admits(message, 1)) {
        if (before > 0 || leftOut.size < messagesMax) leftOut.set(message, before + 1);
        return;
      }
      leftOut.delete(message);
      write(message, { ...fields, ...(before > 0 && { leftOut: before }) });
    };

  const paced = (inner: Log): Log => ({
    debug: inner.debug,
    info: inner.info,
    warn: bounded(inner.warn),
    error: bounded(inner.error),
    child: (fields) => paced(inner.child(fields)),
  });
  return paced(log);
}
