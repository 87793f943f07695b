import { createHash } from "node:crypto";
import { readIfExists } from "@holdfast/common/durable-file.ts";
import { lookUp } from "@holdfast/common/look-up.ts";

/**
 * File that the compute provider writes into a machine at each start: the controllers, the authority to trust and a
 * single-use token.
 */
export interface EnrollmentFile {
  readonly installationId: string;
  readonly machineId: string;
  /** host:port. */
  readonly controllers: readonly string[];
  /** SHA-256 of the authority's certificate in DER, hex. */
  readonly caFingerprint: string;
  readonly token: string;
}

/** Reads the file; undefined if it does not exist. Throws if it is invalid. */
export async function readEnrollment(path: string): Promise<EnrollmentFile | undefined> {
  const bytes = await readIfExists(path);
  if (bytes === undefined) return undefined;
  const parsed = JSON.parse(bytes.toString("utf8")) as Record<string, unknown>;
  const controllers = parsed["controllers"];
  if (!Array.isArray(controllers)) throw new Error("the enrollment names no controllers");
  return {
    installationId: textOf(parsed, "installation_id"),
    machineId: textOf(parsed, "machine_id"),
    controllers: controllers.map(String),
    caFingerprint: textOf(parsed, "ca_fingerprint").replaceAll(":", "").toLowerCase(),
    token: textOf(parsed, "token"),
  };
}

/** Digest of a token, to recognize a used token without storing it. */
export function tokenDigest(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function textOf(parsed: Record<string, unknown>, name: string): string {
  const value = lookUp(parsed, name);
  if (typeof value !== "string" || value === "") throw new Error(`the enrollment has no ${name}`);
  return value;
}
