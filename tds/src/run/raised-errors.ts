import type { Expression } from "../parse/ast.ts";
import { isInteger, type TsqlType, type Value } from "../types/tsql-type.ts";
import { evaluate } from "./evaluation.ts";
import type { RequestContext } from "./request-context.ts";
import { SqlError } from "./sql-error.ts";

const nvarcharMax: TsqlType = { name: "nvarchar", length: "max" };
const int: TsqlType = { name: "int" };
const placeholder = /%([-+ 0#]*)(\d*)(?:\.(\d+))?([diosuxX%])/g;
const messageLengthMax = 2_047;

/** RAISERROR: a message up to severity 10, else an error. */
export async function raise(
  list: readonly Expression[],
  options: readonly string[],
  line: number,
  request: RequestContext,
): Promise<void> {
  const [first, severity, state, ...parameters] = list;
  if (first === undefined || severity === undefined || state === undefined)
    throw new SqlError(102, "Incorrect syntax near 'RAISERROR'.", { severity: 15, line });
  const isNumber = first.kind === "literal" && isInteger(first.type);
  const format = isNumber ? "" : ((await evaluate(first, request, nvarcharMax)) ?? "");
  const values: Value[] = [];
  for (const parameter of parameters) values.push(await evaluate(parameter, request, nvarcharMax));
  const level = Math.min(25, Math.max(0, Number((await evaluate(severity, request, int)) ?? 0)));
  const number = isNumber ? Number(first.value) : 50_000;
  const message = isNumber ? `Error ${number}.` : formatMessage(format, values);
  const stateNumber = Math.min(255, Math.max(0, Number((await evaluate(state, request, int)) ?? 0)));
  if (level > 10) throw new SqlError(number, message, { severity: level, state: stateNumber, line });
  request.results.message({ number, state: stateNumber, severity: level, message, line });
  if (options.includes("SETERROR")) request.session.lastError = number;
}

/** The error of THROW; without arguments, the one that the CATCH around it handles. */
export async function thrownError(
  list: readonly Expression[],
  line: number,
  request: RequestContext,
): Promise<SqlError> {
  const caught = request.session.caught.at(-1);
  if (list.length === 0) {
    return (
      caught ??
      new SqlError(10_704, "To rethrow an error, a THROW statement must be used inside a CATCH block.", {
        severity: 15,
        line,
      })
    );
  }
  const [number, message, state] = list;
  if (number === undefined || message === undefined || state === undefined)
    return new SqlError(102, "Incorrect syntax near 'THROW'.", { severity: 15, line });
  const errorNumber = Number((await evaluate(number, request, int)) ?? 0);
  if (errorNumber < 50_000)
    return new SqlError(35_100, `Error number ${errorNumber} in the THROW statement must be 50000 or higher.`, {
      line,
    });
  const text = (await evaluate(message, request, nvarcharMax)) ?? "";
  return new SqlError(errorNumber, text, { state: Number((await evaluate(state, request, int)) ?? 1), line });
}

/** Formats the message of RAISERROR: parameters replace %s, %d and the like. */
function formatMessage(format: string, values: readonly Value[]): string {
  let index = 0;
  const text = format.replaceAll(
    placeholder,
    (_, flags: string, width: string, precision: string | undefined, kind: string) => {
      if (kind === "%") return "%";
      const value = values[index] ?? null;
      index += 1;
      const printed = value === null ? "(null)" : kind.toLowerCase() === "x" ? Number(value).toString(16) : value;
      const cut = precision !== undefined && kind === "s" ? printed.slice(0, Number(precision)) : printed;
      const size = Math.min(Number(width || 0), messageLengthMax);
      if (flags.includes("-")) return cut.padEnd(size);
      return cut.padStart(size, flags.includes("0") && kind !== "s" ? "0" : " ");
    },
  );
  return text.slice(0, messageLengthMax);
}
