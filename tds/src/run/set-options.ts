import { lookUp } from "@holdfast/common/look-up.ts";
import { SqlError } from "./sql-error.ts";

/** Options of SET that change the session's behavior. */
export interface SetOptions {
  xactAbort: boolean;
  implicitTransactions: boolean;
  noCount: boolean;
  quotedIdentifier: boolean;
  noExec: boolean;
  fmtOnly: boolean;
  rowCount: number;
  lockTimeoutMs: number;
}

export function defaultOptions(): SetOptions {
  return {
    xactAbort: false,
    implicitTransactions: false,
    noCount: false,
    quotedIdentifier: true,
    noExec: false,
    fmtOnly: false,
    rowCount: 0,
    lockTimeoutMs: -1,
  };
}

const switches: Readonly<
  Record<
    string,
    keyof SetOptions & ("xactAbort" | "implicitTransactions" | "noCount" | "quotedIdentifier" | "noExec" | "fmtOnly")
  >
> = {
  XACT_ABORT: "xactAbort",
  IMPLICIT_TRANSACTIONS: "implicitTransactions",
  NOCOUNT: "noCount",
  QUOTED_IDENTIFIER: "quotedIdentifier",
  NOEXEC: "noExec",
  FMTONLY: "fmtOnly",
};

/** Options that drivers send. They are accepted and ignored: the session always behaves as with their default. */
const accepted = [
  "ANSI_DEFAULTS",
  "ANSI_NULLS",
  "ANSI_NULL_DFLT_ON",
  "ANSI_NULL_DFLT_OFF",
  "ANSI_PADDING",
  "ANSI_WARNINGS",
  "ARITHABORT",
  "ARITHIGNORE",
  "CONCAT_NULL_YIELDS_NULL",
  "CONTEXT_INFO",
  "CURSOR_CLOSE_ON_COMMIT",
  "DATEFIRST",
  "DATEFORMAT",
  "DEADLOCK_PRIORITY",
  "FORCEPLAN",
  "LANGUAGE",
  "NUMERIC_ROUNDABORT",
  "PARSEONLY",
  "QUERY_GOVERNOR_COST_LIMIT",
  "REMOTE_PROC_TRANSACTIONS",
  "SHOWPLAN_ALL",
  "SHOWPLAN_TEXT",
  "SHOWPLAN_XML",
  "STATISTICS IO",
  "STATISTICS TIME",
  "STATISTICS XML",
  "STATISTICS PROFILE",
  "TEXTSIZE",
];

export function setOption(options: SetOptions, name: string, value: string): void {
  const option = lookUp(switches, name);
  if (option !== undefined) {
    if (value !== "ON" && value !== "OFF")
      throw new SqlError(102, `Incorrect syntax near '${value}'.`, { severity: 15 });
    options[option] = value === "ON";
    return;
  }
  if (name === "ROWCOUNT" || name === "LOCK_TIMEOUT") {
    const number = Number(value);
    if (!Number.isSafeInteger(number)) throw new SqlError(102, `Incorrect syntax near '${value}'.`, { severity: 15 });
    if (name === "ROWCOUNT") options.rowCount = number;
    else options.lockTimeoutMs = number;
    return;
  }
  if (!accepted.includes(name)) throw new SqlError(195, `'${name}' is not a recognized SET option.`, { severity: 15 });
}
