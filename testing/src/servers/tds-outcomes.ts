import { Request } from "tedious";
import type { TdsClient } from "./tds-client.ts";

/** A result of a batch: rows of a result set, a count of changed rows, an error or a warning. */
export type Outcome =
  | { readonly kind: "rows"; readonly types: readonly string[]; readonly rows: readonly (readonly string[])[] }
  | { readonly kind: "count"; readonly count: number }
  | { readonly kind: "error"; readonly number: number; readonly message: string };

interface ColumnMetadata {
  readonly type: { readonly name: string };
  readonly dataLength?: number | undefined;
  readonly scale?: number | undefined;
}

/** Runs a batch, and returns its outcomes as the JDBC driver of SQL Server prints them. */
export async function outcomesOfBatch({ connection }: TdsClient, sql: string, limitMs: number): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  let set: { types: string[]; rows: string[][] } | undefined;
  const onError = ({ number, message }: { number: number; message: string }) => {
    outcomes.push({ kind: "error", number, message });
  };
  connection.on("errorMessage", onError);
  try {
    await new Promise<void>((resolve, reject) => {
      const request = new Request(sql, (error) => {
        const isOfServer = error == null || outcomes.some(({ kind }) => kind === "error");
        if (isOfServer) resolve();
        else reject(error);
      });
      request.setTimeout(limitMs);
      request.on("columnMetadata", (columns) => {
        const list: ColumnMetadata[] = Array.isArray(columns) ? columns : Object.values(columns);
        set = { types: list.map(typeName), rows: [] };
        outcomes.push({ kind: "rows", ...set });
      });
      request.on("row", (columns: { metadata: ColumnMetadata; value: unknown }[]) => {
        set?.rows.push(columns.map(({ metadata, value }) => text(metadata, value)));
      });
      const onDone = (count: number | undefined) => {
        if (set === undefined && count !== undefined && count > 0) outcomes.push({ kind: "count", count });
        set = undefined;
      };
      request.on("done", onDone);
      request.on("doneInProc", onDone);
      request.on("doneProc", () => {
        set = undefined;
      });
      connection.execSqlBatch(request);
    });
  } finally {
    connection.off("errorMessage", onError);
  }
  return outcomes;
}

/** Name of a column's type, as the JDBC driver returns it. */
function typeName({ type, dataLength }: ColumnMetadata): string {
  switch (type.name) {
    case "IntN":
      return dataLength === 8 ? "bigint" : dataLength === 4 ? "int" : dataLength === 2 ? "smallint" : "tinyint";
    case "BitN":
      return "bit";
    case "FloatN":
      return dataLength === 4 ? "real" : "float";
    case "MoneyN":
      return dataLength === 4 ? "smallmoney" : "money";
    case "DateTimeN":
      return dataLength === 4 ? "smalldatetime" : "datetime";
    case "DecimalN":
    case "NumericN":
    case "Decimal":
      return "numeric";
    case "Variant":
      return "sql_variant";
    default:
      return type.name.toLowerCase();
  }
}

function text(metadata: ColumnMetadata, value: unknown): string {
  if (value === null || value === undefined) return "<NULL>";
  const name = typeName(metadata);
  if (typeof value === "boolean") return value ? "1" : "0";
  if (Buffer.isBuffer(value)) return value.toString("hex").toUpperCase();
  if (value instanceof Date) return dateText(name, value, metadata.scale ?? 7);
  if (typeof value === "number" && (name === "numeric" || name === "money" || name === "smallmoney"))
    return value.toFixed(name === "numeric" ? (metadata.scale ?? 0) : 4);
  const written = typeof value === "object" ? JSON.stringify(value) : String(value as string | number | bigint);
  return written.replaceAll(/[\r\n]+/g, "<newline>");
}

function dateText(name: string, value: Date & { nanosecondsDelta?: number }, scale: number): string {
  const iso = value.toISOString();
  const day = iso.slice(0, 10);
  const ticks = Math.round((value.getUTCMilliseconds() / 1000 + (value.nanosecondsDelta ?? 0)) * 1e7);
  const fraction = String(ticks).padStart(7, "0").slice(0, Math.max(1, scale));
  if (name === "date") return day;
  if (name === "time") return `${iso.slice(11, 19)}.${fraction}`;
  return `${day} ${iso.slice(11, 19)}.${fraction}`;
}
