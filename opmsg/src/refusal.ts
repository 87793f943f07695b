import { type Access, classOf, sequenceOf } from "./commands.ts";
import { bsonTypes, documentsOf, type Field, fieldsNamed, fieldsOf } from "./protocol/fields.ts";
import { ProtocolError } from "./protocol/message.ts";
import type { Request } from "./protocol/request.ts";
import type { CommandError } from "./protocol/response.ts";
import { notSupported, unsupportedOf } from "./unsupported.ts";

/** Fields by which a command belongs to a transaction. */
const transactionFields = ["autocommit", "startTransaction"];
/** Field of a transaction or, alone, of a retryable write. */
const numberField = "txnNumber";

/** Stages that write the result of a pipeline. */
const writingStages = ["$merge", "$out"];

/**
 * The error for a command that is not forwarded; undefined if it is. The engine behind the front end authorizes
 * nothing, and would do a part of some commands, so a command is forwarded only if the tables have it.
 * `user`: the one who began to sign in; undefined before.
 */
export function refusalOf(
  request: Request,
  user: { readonly access: Access; readonly isReplica: boolean } | undefined,
): CommandError | undefined {
  const { command, fields, sequences } = request;
  const commandClass = classOf(command);
  if (commandClass !== undefined && sequences.some(({ identifier }) => identifier !== sequenceOf.get(command)))
    throw new ProtocolError(`the command ${command} has no such document sequence`);
  // The engine keeps a session for half an hour.
  if (user === undefined && fieldsNamed(fields, "lsid").length > 0)
    return unauthorized("there are no users authenticated");
  if (commandClass === "anonymous") return undefined;
  if (user === undefined) return unauthorized(`Command ${command} requires authentication`);
  if (commandClass === undefined)
    return { code: 59, codeName: "CommandNotFound", message: `no such command: '${command.slice(0, 100)}'` };
  if (commandClass === "users")
    return unauthorized(`The command ${command} is not available: use the platform's API to manage users and roles.`);
  const has = (name: string) => fieldsNamed(fields, name).length > 0;
  if (commandClass === "transaction" || transactionFields.some(has))
    return illegalOperation("Transactions are not available on this server.");
  // Drivers recognize this text, and advise their users to turn retryable writes off.
  if (has(numberField))
    return illegalOperation("Transaction numbers are only allowed on a replica set member or mongos");
  const stages = stagesOf(request);
  if (stages.includes("$changeStream"))
    return {
      code: 40_573,
      codeName: "Location40573",
      message: "The $changeStream stage is only supported on replica sets",
    };
  if (commandClass !== "writing" && !stages.some((stage) => writingStages.includes(stage)))
    return unsupportedOf(request);
  if (user.access === "readonly")
    return unauthorized(`not authorized to execute command ${command}: the user may only read`);
  // Drivers that get this code close their connections and look the primary up again.
  if (user.isReplica) return { code: 10_107, codeName: "NotWritablePrimary", message: "not primary" };
  // The engine would return the documents, and write none of them.
  if (commandClass !== "writing" && stages.includes("$documents"))
    return notSupported("A pipeline that begins with $documents has neither $merge nor $out on this server.");
  return unsupportedOf(request);
}

function illegalOperation(message: string): CommandError {
  return { code: 20, codeName: "IllegalOperation", message };
}

function unauthorized(message: string): CommandError {
  return { code: 13, codeName: "Unauthorized", message };
}

/** Names of the stages of all pipelines of the command, or of the command that it explains. */
function stagesOf({ command, fields }: Pick<Request, "command" | "fields">): string[] {
  const explained = command === "explain" ? fields.filter(({ type }) => type === bsonTypes.document) : [];
  return [fields, ...explained.map(({ value }) => fieldsOf(value))].flatMap(stagesIn);
}

function stagesIn(fields: readonly Field[]): string[] {
  return fieldsNamed(fields, "pipeline")
    .flatMap(documentsOf)
    .flatMap((stage) => stage.map(({ name }) => name));
}
