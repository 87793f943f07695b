import { type Collation, defaultCollation } from "../types/collation.ts";

/** Protocol versions and their numbers in LOGIN7 and LOGINACK (MS-TDS 2.2.6.4, 2.2.7.14). */
export const tdsVersions = {
  "7.1": 0x71000001,
  "7.2": 0x72090002,
  "7.3": 0x730b0003,
  "7.4": 0x74000004,
  "8.0": 0x08000000,
} as const;

/** Format of a session's tokens, which depends on the version of the protocol. */
export interface WireFormat {
  readonly version: number;
  /** 7.2: counts of 8 bytes, user types and lines of 4, `max` types as PLP, ALL_HEADERS. */
  readonly has72: boolean;
  /** 7.3: date, time, datetime2, datetimeoffset; NBCROW. */
  readonly has73: boolean;
  /** Collation of texts whose type names none. */
  readonly collation: Collation;
}

export function wireFormat(version: number, collation: Collation = defaultCollation): WireFormat {
  return { version, has72: rank(version) >= 2, has73: rank(version) >= 3, collation };
}

/** Highest version that both sides support; undefined for clients older than 7.1. */
export function negotiateVersion(requested: number, isStrict: boolean): number | undefined {
  if (isStrict) return tdsVersions["8.0"];
  const major = requested >>> 24;
  if (major < 0x71 || major > 0x7f) return undefined;
  if (major === 0x71) return tdsVersions["7.1"];
  if (major === 0x72) return tdsVersions["7.2"];
  return major === 0x73 ? requested : tdsVersions["7.4"];
}

function rank(version: number): number {
  const major = version >>> 24;
  return major === 0x08 ? 5 : major - 0x70;
}
