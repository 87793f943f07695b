import { accessErrors } from "./errors/access-errors.ts";
import { appsErrors } from "./errors/apps-errors.ts";
import { backupsErrors } from "./errors/backups-errors.ts";
import { bundlesErrors } from "./errors/bundles-errors.ts";
import { consoleErrors } from "./errors/console-errors.ts";
import type { ErrorEntry } from "./errors/error-entry.ts";
import { exportsErrors } from "./errors/exports-errors.ts";
import { inferenceErrors } from "./errors/inference-errors.ts";
import { notifyErrors } from "./errors/notify-errors.ts";
import { operationsErrors } from "./errors/operations-errors.ts";
import { queuesErrors } from "./errors/queues-errors.ts";
import { requestErrors } from "./errors/request-errors.ts";
import { servicesErrors } from "./errors/services-errors.ts";

/**
 * Every error that users can receive, from the tables of all groups. The key in lower case is the stable `code` of the
 * problem document.
 */
export const CATALOG = mergeTables({
  requestErrors,
  accessErrors,
  operationsErrors,
  servicesErrors,
  backupsErrors,
  queuesErrors,
  appsErrors,
  notifyErrors,
  exportsErrors,
  bundlesErrors,
  inferenceErrors,
  consoleErrors,
});

/** The entries of the catalog with their keys, by HTTP status. */
export const errorsByStatus: readonly (readonly [key: string, entry: ErrorEntry])[] = Object.entries<ErrorEntry>(
  CATALOG,
).toSorted(([, a], [, b]) => a.status - b.status);

export type ErrorKey = keyof typeof CATALOG;

/** One fault of the input. `field` is a path such as `allowed_cidrs[0]`; `pointer` is null for a query parameter. */
export interface FieldFault {
  readonly field: string;
  readonly pointer: string | null;
  readonly code: string;
  readonly detail: string;
}

/** Maximum number of faults in an error, and their maximum size as JSON. The first fault is always included. */
export const errorsMax = 20;
const errorsBytesMax = 6 * 1024;
const detailBytesMax = 1_500;

interface Extra {
  readonly errors?: readonly FieldFault[];
  /** Number of faults that `errors` does not include. */
  readonly errorsOmitted?: number;
  /** Additional members of the problem document, such as `status` and `operation` of a 409. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly retryAfterS?: number;
  readonly allow?: readonly string[];
  readonly cause?: unknown;
}

/** The only error that reaches users: a catalog entry with a detail for this case. */
export class HoldfastError extends Error {
  readonly key: ErrorKey;
  readonly detail: string;
  /** Faults of the input, at most `errorsMax`. */
  readonly errors: readonly FieldFault[];
  readonly errorsOmitted: number;
  readonly members: Readonly<Record<string, unknown>>;
  readonly retryAfterS: number | undefined;
  readonly allow: readonly string[] | undefined;

  constructor(key: ErrorKey, detail: string, extra: Extra = {}) {
    super(`${key}: ${detail}`, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.name = "HoldfastError";
    this.key = key;
    this.detail = truncated(detail, detailBytesMax);
    const { errors = [], errorsOmitted = 0 } = extra;
    this.errors = boundedFaults(errors);
    this.errorsOmitted = errorsOmitted + errors.length - this.errors.length;
    this.members = extra.members ?? {};
    this.retryAfterS = extra.retryAfterS ?? (CATALOG[key].status === 503 ? 1 : undefined);
    this.allow = extra.allow;
  }

  /** Returns a HoldfastError unchanged; converts any other thrown value to INTERNAL without its cause. */
  static from(error: unknown): HoldfastError {
    if (error instanceof HoldfastError) return error;
    return new HoldfastError("INTERNAL", "The request could not be finished.", { cause: error });
  }

  get code(): string {
    return this.key.toLowerCase();
  }

  get entry(): ErrorEntry {
    return CATALOG[this.key];
  }
}

function boundedFaults(errors: readonly FieldFault[]): readonly FieldFault[] {
  let bytes = 0;
  const end = errors.slice(0, errorsMax).findIndex((fault, index) => {
    bytes += Buffer.byteLength(JSON.stringify(fault));
    return index > 0 && bytes > errorsBytesMax;
  });
  return errors.slice(0, end < 0 ? errorsMax : end);
}

/** Truncates to a number of UTF-8 bytes. */
function truncated(text: string, bytesMax: number): string {
  if (text.length <= bytesMax / 3 || Buffer.byteLength(text) <= bytesMax) return text;
  return `${new TextDecoder().decode(Buffer.from(text).subarray(0, bytesMax)).replace(/\uFFFD+$/, "")}…`;
}

/** INVALID_REQUEST about fields of a JSON body; `field` in dotted form with indices. */
export function invalid(...faults: { field: string; code: string; detail: string }[]): HoldfastError {
  const errors = faults.map((fault) => ({ ...fault, pointer: pointerOf(fault.field) }));
  return new HoldfastError("INVALID_REQUEST", errors.map((e) => `${e.field}: ${e.detail}`).join("; "), { errors });
}

/** RFC 6901 pointer of a dotted path: `allowed_cidrs[0]` -> `/allowed_cidrs/0`. */
export function pointerOf(field: string): string {
  const parts = field.replaceAll(/\[([^\]]*)\]/g, ".$1").split(".");
  return parts.map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

type Table = Readonly<Record<string, unknown>>;
/** The intersection of the members of a union. */
type IntersectionOf<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never;
type MergedTables<T> = { readonly [K in keyof IntersectionOf<T[keyof T]>]: IntersectionOf<T[keyof T]>[K] };

/** Merges tables of groups. Throws when two have a row of the same name, with the names of both tables. */
export function mergeTables<const T extends Readonly<Record<string, Table>>>(tables: T): MergedTables<T> {
  const owners = new Map<string, string>();
  for (const [table, rows] of Object.entries(tables)) {
    for (const name of Object.keys(rows)) {
      const owner = owners.get(name);
      if (owner !== undefined) throw new Error(`${owner} and ${table} both have ${name}`);
      owners.set(name, table);
    }
  }
  return Object.assign({}, ...Object.values(tables));
}
