import { pino } from "pino";

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

/** JSON lines on standard error. */
export function createLog(name: string, level = "info"): Log {
  const redact = [...secretNames, ...secretNames.map((secret) => `*.${secret}`)];
  const options = { name, level, redact, base: { pid: process.pid }, serializers: { error: describeError } };
  const logger = pino(options, pino.destination({ dest: 2, sync: true }));
  return wrap(logger);
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
