import { pino } from "pino";
import { createTokenBuckets } from "./concurrency/token-buckets.ts";

export type LogFields = Readonly<Record<string, unknown>>;

/** A structured log: constant lower-case messages with key-value pairs. Fields named like a secret are redacted. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** Log an error once, where it is handled. */
  error(message: string, fields?: LogFields): void;
  child(fields: LogFields): Log;
}

const secretNames = ["password", "secret", "token", "authorization", "verifier", "private_key", "privateKey"];

/** Rate of warnings, and of errors, for one message. */
const messageRate = { burst: 200, perSecond: 1 };
/** Messages are constants in the code; a few of them contain a name. */
const messagesMax = 1_000;

/** A log of JSON lines on standard error. Warnings and errors are rate limited by message. */
export function createLog(name: string, level = "info"): Log {
  const redact = [...secretNames, ...secretNames.map((secret) => `*.${secret}`)];
  const options = { name, level, redact, base: { pid: process.pid }, serializers: { error: describeError } };
  const logger = pino(options, pino.destination({ dest: 2, sync: true }));
  return rateLimitedLog(wrap(logger), () => performance.now());
}

/** Serializes an error: its name, message, stack and cause are not enumerable, so JSON.stringify returns `{}`. */
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
 * Limits the rate of warnings and errors of each message: most are caused by requests, and a flood of requests must not
 * fill the log. The next line of a limited message has `suppressed`, the number of dropped lines. Information about the
 * process itself is not limited.
 */
export function rateLimitedLog(log: Log, monotonicMs: () => number): Log {
  const buckets = createTokenBuckets(messageRate, monotonicMs, messagesMax);
  const suppressed = new Map<string, number>();

  const bounded =
    (write: Log["warn"]): Log["warn"] =>
    (message, fields) => {
      const before = suppressed.get(message) ?? 0;
      if (!buckets.admits(message, 1)) {
        if (before > 0 || suppressed.size < messagesMax) suppressed.set(message, before + 1);
        return;
      }
      suppressed.delete(message);
      write(message, { ...fields, ...(before > 0 && { suppressed: before }) });
    };

  const limited = (inner: Log): Log => ({
    debug: inner.debug,
    info: inner.info,
    warn: bounded(inner.warn),
    error: bounded(inner.error),
    child: (fields) => limited(inner.child(fields)),
  });
  return limited(log);
}
