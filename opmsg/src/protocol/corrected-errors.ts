import { deserialize, type Document, serialize } from "bson";
import { fieldsNamed, fieldsOf, numberOf } from "./fields.ts";
import type { CommandError } from "./response.ts";

/** State of the engine on which a correction depends. */
export interface EngineState {
  /** True if the engine follows a primary now. */
  isReplica(): Promise<boolean>;
}

/** Flags of OP_MSG and the kind of its first section. */
const prefixBytes = 5;
/** Codes of the engine: those of MongoDB, and PostgreSQL's SQLSTATE 40P01 as a number. */
const codes = { internal: 1, notPrimary: 10_107, duplicateKey: 11_000, deadlock: 16_908_292 } as const;

/** PostgreSQL's messages, without a code, while its process ends or starts. */
const restarting =
  /terminating connection due to administrator command|the database system is (in recovery mode|starting up|shutting down)/;

/**
 * The body of a response (OP_MSG) with those of its errors corrected whose codes would mislead drivers or users. It is
 * the same buffer if there are none.
 */
export async function withCorrectedErrors(body: Buffer, engine: EngineState): Promise<Buffer> {
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
  let isChanged = false;
  for (const error of errors) {
    const corrected = await correctionOf(Number(error["code"]), String(error["errmsg"]), engine);
    if (corrected === undefined) continue;
    const { code, codeName, message } = corrected;
    Object.assign(error, { code, errmsg: message, ...(error === response && { codeName }) });
    isChanged = true;
  }
  return isChanged ? Buffer.concat([body.subarray(0, prefixBytes), serialize(response)]) : body;
}

function arrayOf(value: unknown): Document[] {
  return Array.isArray(value) ? (value as Document[]) : [];
}

async function correctionOf(code: number, message: string, engine: EngineState): Promise<CommandError | undefined> {
  if (code === codes.deadlock)
    return { code: 112, codeName: "WriteConflict", message: `WriteConflict: ${message}: repeat the operation` };
  if (code === codes.duplicateKey && !message.startsWith("E11000"))
    return { code, codeName: "DuplicateKey", message: `E11000 duplicate key error: ${message}` };
  if (code === codes.internal && restarting.test(message))
    return { code: 91, codeName: "ShutdownInProgress", message: `The engine restarts or ends sessions: ${message}` };
  // The agent makes a primary read-only while its disk is full.
  if (code === codes.notPrimary && !(await engine.isReplica())) return outOfDiskSpace;
  return undefined;
}

const outOfDiskSpace: CommandError = {
  code: 14_031,
  codeName: "OutOfDiskSpace",
  message:
    "The disk of the service is full, so writes are blocked: expand its storage, or enable writes for a time and drop collections.",
};
