import { bsonTypes, type Field, fieldsNamed, fieldsOf, numberOf, textOf } from "./protocol/fields.ts";
import { ProtocolError } from "./protocol/message.ts";
import type { Request } from "./protocol/request.ts";
import type { CommandError } from "./protocol/response.ts";
import { writesOf } from "./protocol/writes.ts";

/** Fields that every command may have. */
const common = [
  "$clusterTime",
  "$db",
  "$readPreference",
  "apiDeprecationErrors",
  "apiStrict",
  "apiVersion",
  "comment",
  "lsid",
  "maxTimeMS",
  "writeConcern",
];

/** Options that the engine has, of commands with others that it ignores without an error. */
const options: ReadonlyMap<string, readonly string[]> = new Map([
  ["create", ["autoIndexId", "idIndex"]],
  ["collMod", ["index"]],
]);

/**
 * The error for a command that the engine would answer with success, and then do something else than the command says;
 * undefined for others.
 */
export function unsupportedOf(request: Request): CommandError | undefined {
  return ignoredOption(request) ?? ignoredSort(request) ?? unmetConcern(request.fields) ?? wrongDates(request);
}

function ignoredOption({ command, fields }: Request): CommandError | undefined {
  const known = options.get(command);
  const ignored = known && fields.find((field) => !isKnown(field, [command, ...known, ...common]));
  return (
    ignored && notSupported(`The option ${ignored.name.slice(0, 100)} of ${command} is not available on this server.`)
  );
}

/** A document named `sort`, at any depth. */
const sort = Buffer.from("\u0003sort\0", "latin1");

/** The engine ignores the order of an update, and so may change another document. MongoDB has it since version 8.0. */
function ignoredSort(request: Request): CommandError | undefined {
  if (request.command !== "update" || !request.body.includes(sort)) return undefined;
  const hasSort = writesOf(request).some((write) => fieldsNamed(fieldsOf(write), "sort").length > 0);
  if (!hasSort) return undefined;
  return { code: 40_415, codeName: "Location40415", message: "BSON field 'update.updates.sort' is an unknown field." };
}

/** Also true for an option with the value that it has without the option. */
function isKnown(field: Field, known: readonly string[]): boolean {
  if (known.includes(field.name)) return true;
  if (field.name === "capped") return field.type === bsonTypes.boolean && field.value[0] === 0;
  if (field.type !== bsonTypes.document) return false;
  const inner = fieldsOf(field.value);
  if (field.name === "collation") return inner.every((each) => each.name === "locale" && textOf(each) === "simple");
  return field.name === "validator" && inner.length === 0;
}

/** The engine ignores write concerns. Its greetings are those of a standalone server, whose errors these are. */
function unmetConcern(fields: readonly Field[]): CommandError | undefined {
  const concerns = fieldsNamed(fields, "writeConcern").filter(({ type }) => type === bsonTypes.document);
  for (const w of concerns.flatMap(({ value }) => fieldsNamed(fieldsOf(value), "w"))) {
    const number = numberOf(w);
    if (number !== undefined && number > 1) return badValue("cannot use 'w' > 1 when a host is not replicated");
    if (number === undefined && textOf(w) !== "majority")
      return badValue("cannot use non-majority 'w' mode when a host is not a member of a replica set");
  }
  return undefined;
}

/** Commands that may have expressions. */
const computing = new Set([
  "aggregate",
  "count",
  "delete",
  "distinct",
  "explain",
  "find",
  "findAndModify",
  "findandmodify",
  "update",
]);
/** The type, document, and the name of the operator: the begin of its element in BSON at any depth. */
const dateTrunc = Buffer.from("\u0003$dateTrunc\0", "latin1");
/** Units for which the engine computes the right time. */
const rightUnits = ["hour", "minute", "second", "millisecond"];

/** The engine's $dateTrunc is wrong by days for days and longer units. */
function wrongDates({ command, body }: Request): CommandError | undefined {
  if (!computing.has(command)) return undefined;
  for (let at = body.indexOf(dateTrunc); at >= 0; at = body.indexOf(dateTrunc, at + 1))
    if (!hasRightUnit(body.subarray(at + dateTrunc.length)))
      return notSupported(
        `$dateTrunc has only the units ${rightUnits.join(", ")} on this server: others give wrong dates. Use $dateToString.`,
      );
  return undefined;
}

/** `bytes` begin with the operator's document. */
function hasRightUnit(bytes: Buffer): boolean {
  const size = bytes.length < 4 ? 0 : bytes.readInt32LE(0);
  if (size < 5 || size > bytes.length) return false;
  try {
    const units = fieldsNamed(fieldsOf(bytes.subarray(0, size)), "unit");
    return units.length > 0 && units.every((unit) => rightUnits.includes(textOf(unit) ?? ""));
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return false;
  }
}

/** The error for what this server lacks. */
export function notSupported(message: string): CommandError {
  return { code: 115, codeName: "CommandNotSupported", message };
}

function badValue(message: string): CommandError {
  return { code: 2, codeName: "BadValue", message };
}
