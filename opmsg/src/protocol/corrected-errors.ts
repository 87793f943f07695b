import { deserialize, type Document, serialize } from "bson";
import { fieldsNamed, fieldsOf, numberOf } from "./fields.ts";
import { describeDuplicate, type IndexReference, isDuplicateKey, type UniqueIndex } from "./duplicate-keys.ts";
import type { Request } from "./request.ts";

/** State of the engine on which a correction depends. */
export interface EngineState {
  /** True if the engine follows a primary now. */
  isReplica(): Promise<boolean>;
  /** Undefined if the index does not exist, or the engine does not respond. */
  index(reference: IndexReference): Promise<UniqueIndex | undefined>;
}

/** Flags of OP_MSG and the kind of its first section. */
const prefixBytes = 5;
/** Codes of the engine: those of MongoDB, and PostgreSQL's SQLSTATE 40P01 as a number. */
const codes = { internal: 1, notPrimary: 10_107, deadlock: 16_908_292, tooLarge: 285_999_133 } as const;

/** Messages without a code while PostgreSQL ends or starts: its own, and those of FerretDB's sessions. */
const restarting = [
  /terminating connection due to (administrator command|crash of another server process)/,
  /the database system is (in recovery mode|starting up|shutting down|not yet accepting connections)/,
  /unexpected EOF$|broken pipe$|connection reset by peer$|conn closed$/,
  /failed to connect to .*: (connection refused|no such file or directory)/s,
];

/**
 * The body of a response (OP_MSG) with those of its errors corrected whose codes would mislead drivers or users. It is
 * the same buffer if there are none.
 */
export async function withCorrectedErrors(request: Request, body: Buffer, engine: EngineState): Promise<Buffer> {
  if (!body.includes("errmsg\0") || body[4] !== 0) return body;
  const fields = fieldsOf(body.subarray(prefixBytes));
  const [ok] = fieldsNamed(fields, "ok");
  const failed = ok !== undefined && numberOf(ok) === 0;
  if (!failed && fieldsNamed(fields, "writeErrors").length === 0) return body;
  const response = deserialize(body.subarray(prefixBytes), {
    promoteValues: false,
    bsonRegExp: true,
    validation: { utf8: false },
  });
  const errors = [...(failed ? [response] : []), ...arrayOf(response["writeErrors"])];
  const indexes = new Map<string, Promise<UniqueIndex | undefined>>();
  const index = (reference: IndexReference) => {
    const key = JSON.stringify(reference);
    const found = indexes.get(key) ?? engine.index(reference);
    indexes.set(key, found);
    return found;
  };
  let isChanged = false;
  for (const error of errors) {
    const corrected = await correctionOf(request, error, { ...engine, index });
    if (corrected === undefined) continue;
    const { codeName, message, ...others } = corrected;
    Object.assign(error, { ...others, errmsg: message, ...(error === response && { codeName }) });
    isChanged = true;
  }
  return isChanged ? Buffer.concat([body.subarray(0, prefixBytes), serialize(response)]) : body;
}

function arrayOf(value: unknown): Document[] {
  return Array.isArray(value) ? (value as Document[]) : [];
}

interface Correction {
  readonly code: number;
  readonly codeName: string;
  readonly message: string;
  readonly keyPattern?: Document;
  readonly keyValue?: Document;
}

async function correctionOf(request: Request, error: Document, engine: EngineState): Promise<Correction | undefined> {
  const [code, message] = [Number(error["code"]), String(error["errmsg"])];
  if (code === codes.deadlock)
    return { code: 112, codeName: "WriteConflict", message: `WriteConflict: ${message}: repeat the operation` };
  if (isDuplicateKey(code, message)) {
    const described = await describeDuplicate(request, message, Number(error["index"] ?? 0), engine.index);
    return { code: 11_000, codeName: "DuplicateKey", ...described };
  }
  if (code === codes.tooLarge) return { code: 10_334, codeName: "BSONObjectTooLarge", message };
  if (code === codes.internal && restarting.some((pattern) => pattern.test(message)))
    return { code: 91, codeName: "ShutdownInProgress", message: `The engine restarts or ends sessions: ${message}` };
  // The agent makes a primary read-only while its disk is full.
  if (code === codes.notPrimary && !(await engine.isReplica())) return outOfDiskSpace;
  return undefined;
}

const outOfDiskSpace: Correction = {
  code: 14_031,
  codeName: "OutOfDiskSpace",
  message:
    "The disk of the service is full, so writes are blocked: expand its storage, or enable writes for a time and drop collections.",
};
