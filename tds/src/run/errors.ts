import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { type Databases, schemaPrefix } from "../bind/databases.ts";
import { moduleStates } from "../emit/module-body.ts";
import { DatabaseError } from "./backend.ts";
import { ProtocolError } from "../protocol/protocol-error.ts";
import { ValueOutOfRange } from "../protocol/type-value.ts";
import { SqlError } from "./sql-error.ts";

/** Error numbers of SQL Server by PostgreSQL's SQLSTATE; any other SQLSTATE is 50000 with PostgreSQL's message. */
// biome-ignore format: a table
const numbers: Readonly<Record<string, { readonly number: number; readonly severity: number }>> = {
  "23505": { number: 2627, severity: 14 },
  "23503": { number: 547,  severity: 16 },
  "23514": { number: 547,  severity: 16 },
  "23502": { number: 515,  severity: 16 },
  "42P01": { number: 208,  severity: 16 },
  "42703": { number: 207,  severity: 16 },
  "42702": { number: 209,  severity: 16 },
  "42601": { number: 102,  severity: 15 },
  "42803": { number: 8120, severity: 16 },
  "42883": { number: 195,  severity: 15 },
  "42P07": { number: 2714, severity: 16 },
  "42P06": { number: 2714, severity: 16 },
  "42723": { number: 2714, severity: 16 },
  "42710": { number: 2714, severity: 16 },
  "42P21": { number: 468,  severity: 16 },
  "42P22": { number: 468,  severity: 16 },
  "42704": { number: 3701, severity: 11 },
  "3F000": { number: 2760, severity: 16 },
  "42501": { number: 229,  severity: 14 },
  "22P02": { number: 245,  severity: 16 },
  "22007": { number: 241,  severity: 16 },
  "22008": { number: 242,  severity: 16 },
  "22003": { number: 8115, severity: 16 },
  "22012": { number: 8134, severity: 16 },
  "22001": { number: 2628, severity: 16 },
  "21000": { number: 512,  severity: 16 },
  "25006": { number: 3906, severity: 16 },
  "25P02": { number: 3930, severity: 16 },
  "40001": { number: 3960, severity: 16 },
  "40P01": { number: 1205, severity: 13 },
  "55P03": { number: 1222, severity: 16 },
  "53100": { number: 1105, severity: 17 },
  "3D000": { number: 4060, severity: 11 },
  "34000": { number: 16_917, severity: 16 },
  "2BP01": { number: 3729, severity: 16 },
  "28P01": { number: 18456, severity: 14 },
  "28000": { number: 18456, severity: 14 },
};

/** Number of a duplicate key in an index; in a constraint it is 2627. */
const uniqueIndex = 2601;
/** Name of an index by CREATE INDEX: table, dot, name. Constraints have no dot. */
const indexPattern = /^[^.]+\..+$/;

/** Translates an error for clients. The text has at most PostgreSQL's message and detail. */
export function sqlErrorOf(error: unknown, line: number): SqlError {
  if (error instanceof SqlError) {
    if (error.line === 0) error.line = line;
    return error;
  }
  if (error instanceof ValueOutOfRange)
    return new SqlError(8115, `The value does not fit the data type ${error.type.name}.`, { line });
  if (error instanceof ProtocolError) return new SqlError(8009, error.message, { line });
  if (!(error instanceof DatabaseError))
    return new SqlError(596, "The session with the database ended; connect again.", { severity: 21, line });
  const raised = raisedError(error, line);
  if (raised !== undefined) return raised;
  const known = overflowOf(error) ?? lookUp(numbers, error.code ?? "");
  const conflict = conflictMessage(error);
  // The details of other errors contain the values of all columns of the row.
  const detail = error.detail !== undefined && ["23505", "23503"].includes(error.code ?? "") ? ` ${error.detail}` : "";
  const message = conflict ?? `${sentence(error.message)}${detail}`;
  if (known === undefined) return new SqlError(50_000, message, { line });
  const isIndex = known.number === 2627 && indexPattern.test(error.constraint ?? "");
  return new SqlError(isIndex ? uniqueIndex : known.number, message, { severity: known.severity, line });
}

/** Error 220 for the types of one and two bytes, and 3623 for an argument outside of a function's domain. */
function overflowOf({ code, constraint, message }: InstanceType<typeof DatabaseError>) {
  if (code === "23514" && constraint === "tinyint_check") return { number: 220, severity: 16 };
  if (code === "22003" && message.startsWith("smallint")) return { number: 220, severity: 16 };
  return ["2201E", "2201F"].includes(code ?? "") ? { number: 3_623, severity: 16 } : undefined;
}

interface FailedStatement {
  readonly kind: string;
  readonly databases: Databases & { readonly databaseName: string };
}

/** Statements that failed, by their errors. */
const failedStatements = new WeakMap<Error, FailedStatement>();

/** Notes the kind of the statement and its current database, which messages of SQL Server have. */
export function nameStatement(error: unknown, { kind, databases }: FailedStatement): void {
  if (error instanceof DatabaseError) failedStatements.set(error, { kind: kind.toUpperCase(), databases });
}

/** Name of the database and of the schema for T-SQL clients, by the schema of PostgreSQL. */
function placeOf(error: InstanceType<typeof DatabaseError>): { readonly database: string; readonly schema: string } {
  const schema = error.schema ?? "";
  const databases = failedStatements.get(error)?.databases;
  if (databases?.layoutMode !== "multi-db") return { database: defaultDatabase, schema };
  const prefix = schemaPrefix(databases.database);
  if (schema.startsWith(prefix)) return { database: databases.databaseName, schema: schema.slice(prefix.length) };
  // Schemas of other databases: underscores of the name are doubled, and a single one follows it.
  const [, name = defaultDatabase, own = schema] = /^\$?((?:[^_]|__)*)_(?!_)(.*)$/s.exec(schema) ?? [];
  return { database: name.replaceAll("__", "_"), schema: own };
}

/** The text of SQL Server for a violated constraint: clients read names and values in it. */
function conflictMessage(error: InstanceType<typeof DatabaseError>): string | undefined {
  const { code, constraint = "", table = "", column = "", detail = "" } = error;
  const { database, schema } = placeOf(error);
  const object = `${schema}.${table}`;
  const statement = failedStatements.get(error)?.kind ?? "INSERT";
  const [, key = "", value = ""] = /^Key \((.*?)\)=\((.*)\)/s.exec(detail) ?? [];
  switch (code) {
    case "23505":
      if (indexPattern.test(constraint))
        return `Cannot insert duplicate key row in object '${object}' with unique index '${constraint.slice(constraint.indexOf(".") + 1)}'. The duplicate key value is (${value}).`;
      return `Violation of ${/_pkey$|^pk/i.test(constraint) ? "PRIMARY" : "UNIQUE"} KEY constraint '${constraint}'. Cannot insert duplicate key in object '${object}'. The duplicate key value is (${value}).`;
    case "23503": {
      const isReference = / on table "(?:[^"]|"")*" violates .* on table "/.test(error.message);
      const [, other = ""] = /table "((?:[^"]|"")*)"\.$/.exec(detail) ?? [];
      const kind = isReference ? "REFERENCE" : "FOREIGN KEY";
      const verb = isReference && statement === "INSERT" ? "DELETE" : statement;
      return `The ${verb} statement conflicted with the ${kind} constraint "${constraint}". The conflict occurred in database "${database}", table "${schema}.${other}", column '${key}'.`;
    }
    case "23514":
      if (table === "") return undefined;
      return `The ${statement} statement conflicted with the CHECK constraint "${constraint}". The conflict occurred in database "${database}", table "${object}".`;
    case "23502":
      if (column === "") return undefined;
      return `Cannot insert the value NULL into column '${column}', table '${object}'; column does not allow nulls. ${statement} fails.`;
    default:
      return undefined;
  }
}

/** An error that a trigger raised: its number, severity and state are the detail. */
function raisedError(
  { code, detail, message }: InstanceType<typeof DatabaseError>,
  line: number,
): SqlError | undefined {
  if (code !== moduleStates.error && code !== moduleStates.rollback) return undefined;
  const [number = 50_000, severity = 16, state = 1] = (detail ?? "").split(",").map(Number);
  const error = new SqlError(number, message, { severity, state, line });
  error.isThrown = true;
  // Triggers run with XACT_ABORT.
  error.endsTransaction = true;
  return error;
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

/** Errors that end the batch outside of TRY; after any other error the next statement runs. */
const batchEnding = new Set([
  102, 105, 137, 156, 191, 195, 207, 208, 241, 242, 245, 1087, 1205, 2715, 3930, 3960, 4104, 4121, 8114,
]);

export function endsBatch({ number, severity }: SqlError): boolean {
  return severity >= 19 || batchEnding.has(number);
}

/** Errors that roll back the transaction: failed conversions, deadlocks and conflicts. */
export function endsTransaction({ number, severity, endsTransaction: isRaised }: SqlError): boolean {
  return isRaised || severity >= 19 || [241, 242, 245, 1205, 3960].includes(number);
}
